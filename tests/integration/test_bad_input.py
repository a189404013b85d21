"""Bad input: a clear error that says what to do, nothing half-written, and the pipeline goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import (
    BelvedereError,
    CatalogError,
    SchemaError,
    SqlError,
    StoreError,
    StoreFull,
    Unsupported,
)
from belvedere.table import Table

TABLE = (
    "CREATE TABLE orders (id STRING, region STRING, amount BIGINT, price DECIMAL(6,2), day DATE,"
    " PRIMARY KEY (id))"
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "shop") as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql(TABLE)
        opened.table("orders").put({"id": "good", "region": "emea", "amount": 1})
        yield opened


def only_the_good_row(db: belvedere.Database) -> bool:
    return [row["id"] for row in db.table("orders").scan()] == ["good"] and db.status().written == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"id": "a"}, {"id": "b", "amount": "seven"}],
            "row 1: 'seven' is not a bigint for column amount",
        ),
        ([{"id": "a", "amount": 2**63}], "row 0: 9223372036854775808 is not a bigint"),
        ([{"id": "a", "amount": True}], "row 0: True is not a bigint"),
        ([{"id": "a"}, {"id": None}], "row 1: the key id must not be NULL"),
        ([{"id": "a"}, {"region": "emea"}], "row 1: the key id must not be NULL"),
        ([{"id": "a", "colour": "red"}], "unknown column 'colour': the columns are id, region"),
        ([{"id": "a", "price": Decimal("12345.67")}], "is not a decimal"),
        ([{"id": 7}], "row 0: 7 is not a string for column id"),
        ("a,b,c", "expected rows"),
        ([["a", "b"]], "row 0 is a list, not a dict"),
        (pa.table({"id": ["a"], "amount": ["7"]}), "column amount is bigint, the data has string"),
        (pa.table({"id": ["a"], "size": [7]}), "unknown column 'size'"),
    ],
)
def test_rows_that_do_not_fit_are_refused_as_a_whole(
    db: belvedere.Database, rows: Any, message: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        db.table("orders").put_many(rows)
    assert message in str(refused.value)
    assert only_the_good_row(db)


def test_a_key_that_is_longer_than_the_store_takes_is_refused(db: belvedere.Database) -> None:
    """By every way to give one, before anything is written."""
    db.store.capabilities = replace(db.store.capabilities, longest_key=503)
    orders = Table(db.store, db.state().table("orders"))  # made after that, as in such a store
    fits, too_long = "k" * 501, "k" * 502
    with pytest.raises(SchemaError, match="row 1: the key is longer than 503 bytes"):
        orders.put_many([{"id": "a"}, {"id": too_long}])
    for give in (orders.get, orders.delete, lambda key: orders.put({"id": key})):
        with pytest.raises(SchemaError, match="is 504 bytes long, at most 503 are possible"):
            give(too_long)
    with pytest.raises(SchemaError, match="at most 503"):
        orders.delete_many(["good", too_long])
    assert only_the_good_row(db)
    orders.put_many([{"id": fits}])
    row = orders.get(fits)
    assert row is not None
    assert row["id"] == fits


@pytest.mark.parametrize(
    "row",
    [
        {"id": "a", "amount": "x"},
        {"id": "a", "amount": 2**70},
        {"id": None},
        {"amount": 1},
        {"id": "a", "b": 1},
    ],
)
def test_a_single_row_that_does_not_fit_is_refused(
    db: belvedere.Database, row: dict[str, Any]
) -> None:
    with pytest.raises(SchemaError):
        db.table("orders").put(row)
    assert only_the_good_row(db)


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("SELEC 1", SqlError, "not"),
        ("CREATE TABLE t (a INT)", SchemaError, "add PRIMARY KEY"),
        ("CREATE TABLE t (a INT, a INT, PRIMARY KEY (a))", SchemaError, "two columns a"),
        ("CREATE TABLE t (a ARRAY<INT>, PRIMARY KEY (a))", BelvedereError, "not supported"),
        (
            "CREATE TABLE t (a TINYINT, PRIMARY KEY (a))",
            SchemaError,
            "column a: type 'TINYINT' is not supported: use one of",
        ),
        ("CREATE TABLE orders (a INT, PRIMARY KEY (a))", CatalogError, "exists already"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", SchemaError, "no column 'b'"),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH (colour = 'red')",
            SqlError,
            "unknown option",
        ),
        ("CREATE VIEW v AS SELECT id FROM orders", SqlError, "MATERIALIZED"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT nope FROM orders",
            SqlError,
            "there is no column nope",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM nowhere",
            SqlError,
            "there is no table nowhere",
        ),
        ("CREATE MATERIALIZED VIEW v AS SELECT id, rand() AS r FROM orders", Unsupported, "rand"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM orders ORDER BY id",
            Unsupported,
            "ORDER BY",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a.id FROM orders a JOIN orders b ON a.id < b.id",
            Unsupported,
            "equality",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT region, amount FROM orders GROUP BY region",
            SqlError,
            "GROUP BY",
        ),
        (
            "CREATE MATERIALIZED VIEW v WITH (key = 'nope') AS SELECT id FROM orders",
            SqlError,
            "key column nope",
        ),
        (
            "CREATE MATERIALIZED VIEW v WITH (consistency = 'eventual') AS SELECT id FROM orders",
            SqlError,
            "strong",
        ),
        (
            "CREATE MATERIALIZED VIEW orders AS SELECT id FROM orders",
            CatalogError,
            "exists already",
        ),
        ("DROP MATERIALIZED VIEW nope", CatalogError, "there is no view nope"),
        ("DROP TABLE nope", CatalogError, "there is no table nope"),
        ("INSERT INTO orders (id, amount) VALUES ('a', 'x')", SqlError, ""),
        ("INSERT INTO orders (id) VALUES ('a', 1)", SqlError, "2 value(s), 1 are needed"),
        ("INSERT INTO nope VALUES (1)", CatalogError, "there is no table nope"),
        ("UPDATE orders SET id = 'x'", SqlError, "part of the key"),
        ("UPDATE orders SET amount = 1 / 0", SqlError, "nothing was changed"),
        ("DELETE FROM orders WHERE nope = 1", SqlError, "there is no column nope"),
        ("DELETE FROM orders LIMIT 0", Unsupported, "LIMIT is not supported in DELETE"),
        ("DELETE FROM other.orders", CatalogError, "there is no table other.orders"),
        ("DELETE orders", SqlError, "DELETE FROM"),
        ("INSERT INTO orders (id, id) VALUES ('a', 'b')", SqlError, "column id is listed twice"),
        ("CREATE TABLE t (a INT DEFAULT 5, PRIMARY KEY (a))", Unsupported, "DEFAULT 5 of column a"),
        ("SELECT * FROM nowhere", CatalogError, "no table or view nowhere"),
        ("REFRESH MATERIALIZED VIEW nope", CatalogError, "there is no view nope"),
        ("", SqlError, "no statement"),
    ],
)
def test_statements_that_cannot_be_done_say_why_and_change_nothing(
    db: belvedere.Database, statement: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as refused:
        db.sql(statement)
    assert message.lower() in str(refused.value).lower()
    assert only_the_good_row(db)
    assert not db.state().views


def test_a_view_that_another_one_reads_is_not_dropped(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM orders")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT id FROM v")
    with pytest.raises(CatalogError, match="it is used by w: drop these views first"):
        db.sql("DROP MATERIALIZED VIEW v")
    assert str(db.sql("DROP MATERIALIZED VIEW w")) == "view w dropped"
    assert str(db.sql("DROP MATERIALIZED VIEW IF EXISTS w")) == "there is no view w"
    assert str(db.sql("DROP MATERIALIZED VIEW v")) == "view v dropped"


def test_a_full_store_refuses_a_write_as_a_whole_and_stays_usable(tmp_path: Path) -> None:
    with belvedere.open(tmp_path / "small", max_size=2 << 20) as db:
        db._runner = LocalRunner(db.store)
        db.sql(TABLE)
        db.sql(
            "CREATE MATERIALIZED VIEW totals AS SELECT region, sum(amount) AS total FROM orders"
            " GROUP BY region"
        )
        orders, written = db.table("orders"), 0
        batches = (
            [{"id": f"o{b}-{i}", "region": "emea", "amount": 1} for i in range(500)]
            for b in range(1000)
        )
        with pytest.raises(StoreFull):  # noqa: PT012  # the loop counts what was acknowledged before
            for batch in batches:
                orders.put_many(batch)
                written += 500
        assert written
        assert db.status().written == written
        assert len(list(orders.scan())) == written
        assert orders.get("o0-1") is not None


def test_a_directory_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError):
        belvedere.open(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"] or (
        tmp_path / "notes.txt"
    ).read_text() == "mine"


def test_rows_that_raise_do_not_stop_the_epochs(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW shares AS SELECT id, 10 / amount AS share FROM orders")
    db.sql(
        "CREATE MATERIALIZED VIEW sums AS SELECT region, sum(amount) AS total FROM orders GROUP BY"
        " region"
    )
    orders = db.table("orders")
    orders.put_many([{"id": f"z{i}", "region": "emea", "amount": 0} for i in range(3)])
    orders.put_many([{"id": f"big{i}", "region": "apac", "amount": 2**62} for i in range(3)])
    db.catch_up()
    by_name = {v.name: v for v in db.status().views}
    assert by_name["shares"].errors == 3
    assert by_name["sums"].errors == 1
    orders.delete_many(["z0", "z1", "z2", "big0", "big1"])
    db.catch_up()
    assert {v.name: v.errors for v in db.status().views} == {"shares": 0, "sums": 0}
    assert db.view("sums").get("apac") == {"region": "apac", "total": 2**62}
    assert len(db.view("shares")) == 2


@pytest.mark.spark
@pytest.mark.parametrize("name", ["v w.x", "größe", "a`b", "select", "on"])
def test_spark_reads_and_verifies_relations_with_odd_names(
    tmp_path: Path, spark: Any, name: str
) -> None:
    odd = "`" + name.replace("`", "``") + "`"
    with belvedere.open(tmp_path / "odd", spark=spark) as db:
        db._runner = LocalRunner(db.store)
        db.sql(
            f"CREATE TABLE base ({odd} INT PRIMARY KEY, a INT); INSERT INTO base VALUES (1, 5),"
            " (2, 5)"
        )
        db.sql(f"CREATE MATERIALIZED VIEW {odd} AS SELECT {odd}, a FROM base ORDER BY a LIMIT 1")
        db.catch_up()
        read = db.sql(
            f"SELECT {odd}.*, base.{odd} AS other FROM {odd} JOIN base ON {odd}.{odd} = base.{odd}"
        ).to_spark()
        assert [row.asDict() for row in read.collect()] == [{name: 1, "a": 5, "other": 1}]
        assert db.verify(name).ok
