"""Why a record is there, by examples: what the laws do not say about texts, limits and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import HistoryGone, SchemaError, SqlError, ViewInError
from belvedere.graph import registered_operators
from belvedere.operators.base import Operator
from belvedere.operators.select import Select
from belvedere.why import Why, operations

_SETUP = """
CREATE TABLE orders (id INT, region STRING, customer INT, amount BIGINT, PRIMARY KEY (id));
CREATE TABLE customers (id INT, name STRING, PRIMARY KEY (id));
INSERT INTO orders VALUES
    (1, 'emea', 1, 5), (2, 'emea', 1, 7), (3, 'apac', 9, 0), (4, 'emea', 3, 9), (5, 'apac', 1, 2);
INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bob')
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "d", slots=2) as opened:
        opened._runner = LocalRunner(opened.store)
        for statement in _SETUP.split(";"):
            opened.sql(statement)
        yield opened


def why(db: belvedere.Database, select: str, *key: Any, named: str = "") -> Why:
    options = f" WITH (key = '{named}')" if named else ""
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v{options} AS {select}")
    db.catch_up()
    return db.view("v").why(key)


def ids(answer: Why, table: str, decides: bool | None = None) -> list[Any]:
    rows = answer.rows(table).to_pylist()
    return sorted(row["id"] for row in rows if decides in (None, row["_decides"]))


def last_line(answer: Why) -> str:
    lines = [line for line in str(answer).splitlines() if not line.startswith("(")]
    return lines[-1].strip(" └─├│")


def test_every_operator_says_of_which_rows_its_rows_are_made() -> None:
    """Ours: those of others may leave it to the base class."""
    ours = [kind for kind in registered_operators() if kind.__module__.startswith("belvedere.")]
    assert len(ours) > 5
    for kind in ours:
        for name in ("sought", "made_of", "why_not"):
            assert getattr(kind, name) is not getattr(Operator, name), f"{kind.__name__}.{name}"


def test_all_rows_of_a_group_make_its_record_and_the_only_greatest_decides(
    db: belvedere.Database,
) -> None:
    answer = why(db, "SELECT region, max(amount) AS m FROM orders GROUP BY region", "emea")
    assert answer.row == {"region": "emea", "m": 9}
    assert ids(answer, "orders") == [1, 2, 4]
    assert ids(answer, "orders", True) == [4]


def test_an_operator_that_says_nothing_is_made_of_all_rows(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sought", "made_of", "why_not"):
        monkeypatch.setattr(Select, name, getattr(Operator, name))
    answer = why(db, "SELECT region, max(amount) AS m FROM orders GROUP BY region", "emea")
    assert ids(answer, "orders") == [1, 2, 3, 4, 5]
    assert "Select does not say of which rows its rows are made" in str(answer)
    assert "Select emits no such row" in str(why(db, "SELECT id + 1 AS id FROM orders", 77))


def test_a_record_of_counted_rows_says_how_often_it_is_there(db: belvedere.Database) -> None:
    answer = why(db, "SELECT customer FROM orders", 1)
    assert answer.count == 3
    assert ids(answer, "orders") == [1, 2, 5]
    assert "3 times" in str(answer)


def test_the_one_row_of_all_is_made_of_all(db: belvedere.Database) -> None:
    answer = why(db, "SELECT count(*) AS n FROM orders")
    assert answer.row == {"n": 5}
    assert ids(answer, "orders", True) == [1, 2, 3, 4, 5]


def test_a_pair_is_made_of_both_rows(db: belvedere.Database) -> None:
    select = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"
    answer = why(db, select, 2)
    assert (ids(answer, "orders"), ids(answer, "customers")) == ([2], [1])


def test_a_row_without_a_match_says_what_is_not_there(db: belvedere.Database) -> None:
    select = "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id"
    answer = why(db, select, 4)
    assert answer.row == {"id": 4, "name": None}
    assert "no row with c.id = 3 is there to match" in str(answer)


@pytest.mark.parametrize(
    ("select", "key", "said"),
    [
        ("SELECT region, count(*) AS n FROM orders GROUP BY region", ("mars",), "region = 'mars'"),
        (
            "SELECT region, count(*) AS n FROM orders GROUP BY region HAVING count(*) > 2",
            ("apac",),
            "COUNT(*) > 2 is not true of it",
        ),
        ("SELECT id FROM orders WHERE amount > 0", (3,), "amount > 0 is not true of it"),
        (
            "SELECT o.id FROM orders o JOIN customers c ON o.customer = c.id",
            (3,),
            "customers: no row with id = 9",
        ),
        (
            "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders)",
            (1,),
            "a match keeps it out",
        ),
        (
            "SELECT id FROM orders ORDER BY amount DESC LIMIT 2",
            (1,),
            "it stands at place 3, and only the first 2 are taken",
        ),
        ("SELECT customer FROM orders EXCEPT SELECT id FROM customers", (1,), "takes it away"),
        (
            "SELECT customer FROM orders INTERSECT SELECT id FROM customers",
            (9,),
            "the right side of INTERSECT has no such row",
        ),
        (
            "SELECT id FROM orders UNION ALL SELECT id FROM customers",
            (77,),
            "none of 2 branches has it",
        ),
    ],
)
def test_it_says_what_is_missing(
    db: belvedere.Database, select: str, key: tuple[Any, ...], said: str
) -> None:
    answer = why(db, select, *key)
    assert answer.row is None
    assert said in str(answer)
    assert answer.to_dict()["missing"]


def test_a_view_on_a_view_leads_to_the_tables(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW sums AS SELECT region, sum(amount) s FROM orders GROUP BY 1")
    answer = why(db, "SELECT s, count(*) AS n FROM sums GROUP BY s", 2)
    assert ids(answer, "orders") == [3, 5]


def test_the_text_shows_a_hundred_rows_and_the_answer_has_all(db: belvedere.Database) -> None:
    db.table("orders").put_many(
        [{"id": i, "region": "many", "customer": 0, "amount": 1} for i in range(100, 350)]
    )
    answer = why(db, "SELECT region, count(*) AS n FROM orders GROUP BY region", "many")
    assert answer.rows("orders").num_rows == 250
    assert answer.operations("orders").num_rows == 250
    assert last_line(answer) == "and 150 more"


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[31m", "l" * 100_000, "q'\u2028"])
def test_a_value_stands_on_the_line_of_its_row(db: belvedere.Database, text: str) -> None:
    db.table("customers").put({"id": 3, "name": text})
    select = "SELECT name, max(id) AS last FROM customers GROUP BY name"
    for key in (text, text + "?"):
        lines = str(why(db, select, key)).split("\n")
        assert all(line.isprintable() and len(line) < 700 for line in lines), lines
        assert any("name " in line for line in lines)


def test_operations_are_those_up_to_the_epoch(db: belvedere.Database) -> None:
    why(db, "SELECT id, amount FROM orders", 1)
    db.keep_history(epochs=10)
    epoch = db.state().head.epoch
    db.table("orders").put({"id": 1, "region": "emea", "customer": 1, "amount": 6})
    db.catch_up()
    now, before = db.view("v").why(1), db.view("v").why(1, as_of=epoch)
    assert [a.row and a.row["amount"] for a in (now, before)] == [6, 5]
    assert [a.operations("orders").num_rows for a in (now, before)] == [2, 1]


def test_what_the_log_has_no_more_is_said_to_be_before(db: belvedere.Database) -> None:
    why(db, "SELECT id, amount FROM orders", 1)
    db.catch_up()
    for stream, position in db.state().head.vector.items():
        db.store.base.trim(stream, position)
    answer = db.view("v").why(1)
    assert answer.operations("orders").num_rows == 0
    assert "before log:" in str(answer)


def test_sql_and_python_say_the_same(db: belvedere.Database) -> None:
    answer = why(db, "SELECT region, id FROM orders", "emea", 2, named="region")
    for text, values in (
        ("EXPLAIN WHY v WHERE region = 'emea' AND id = 2", None),
        ("explain why v where id = 2 and region = ?", ["emea"]),
    ):
        assert str(db.sql(text, values)) == str(answer)


@pytest.mark.parametrize("end", ["", " WHERE region = 'emea'", " WHERE id > 1", " LIMIT 1"])
def test_sql_wants_one_key(db: belvedere.Database, end: str) -> None:
    why(db, "SELECT region, id FROM orders", "emea", 2, named="region")
    with pytest.raises(SqlError, match=r"EXPLAIN WHY v WHERE region = \.\.\. AND id = \.\.\."):
        db.sql(f"EXPLAIN WHY v{end}")


def test_it_refuses_what_a_read_refuses(db: belvedere.Database) -> None:
    with pytest.raises(SchemaError, match=r"the key of view v is \(id\): give 1 value"):
        why(db, "SELECT id FROM orders", 1, 2)
    with pytest.raises(HistoryGone):
        db.view("v").why(1, as_of=1)
    with pytest.raises(ViewInError):
        why(db, "SELECT id, 1 / amount AS part FROM orders", 1)


def test_a_table_that_the_view_does_not_read_is_an_error(db: belvedere.Database) -> None:
    answer = why(db, "SELECT id FROM orders", 1)
    with pytest.raises(SchemaError, match="does not read a table customers: it reads orders"):
        answer.rows("customers")


def _scanned(answer: Why) -> bool:
    return any(note.startswith("read all rows") for note in answer.notes)


@pytest.mark.parametrize(
    ("columns", "scanned"),
    [
        ("min(id) AS a", False),
        ("max(amount) AS a, sum(amount) AS b", False),
        ("sum(amount) AS a", True),
        ("min(customer) AS a", True),  # one row of emea has none
        ("min(customer) AS a, max(id) AS b", False),
    ],
)
def test_rows_of_a_group_are_found_by_those_in_order_if_these_are_all(
    db: belvedere.Database, columns: str, scanned: bool
) -> None:
    db.sql("INSERT INTO orders VALUES (6, 'emea', NULL, 1)")
    answer = why(db, f"SELECT region, {columns} FROM orders GROUP BY region", "emea")
    assert ids(answer, "orders") == [1, 2, 4, 6]
    assert _scanned(answer) == scanned


@pytest.mark.parametrize(
    ("index", "named", "scanned"),
    [
        ("SELECT region, id FROM orders", "region, id", False),
        ("SELECT region, id, amount FROM orders", "region", False),
        ("SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.region = c.name", "", False),
        ("SELECT region, id FROM orders WHERE amount > 5", "region, id", True),
        ("SELECT customer, id, region FROM orders", "customer", True),
        ("SELECT region, id, 1 / amount AS part FROM orders", "region, id", True),
        ("SELECT lower(region) AS region, id FROM orders", "region, id", True),
    ],
)
def test_an_index_of_another_view_finds_the_rows_if_it_has_all(
    db: belvedere.Database, index: str, named: str, scanned: bool
) -> None:
    options = f" WITH (key = '{named}')" if named else ""
    db.sql(f"CREATE MATERIALIZED VIEW i{options} AS {index}")
    answer = why(db, "SELECT region, count(*) AS n FROM orders GROUP BY region", "emea")
    assert ids(answer, "orders") == [1, 2, 4]
    assert _scanned(answer) == scanned


def test_an_index_is_used_from_the_epoch_on_in_which_it_is_live(db: belvedere.Database) -> None:
    why(db, "SELECT region, count(*) AS n FROM orders GROUP BY region", "emea")
    db.keep_history(epochs=10)
    epoch = db.state().head.epoch
    db.sql("CREATE MATERIALIZED VIEW i WITH (key = 'region') AS SELECT region, id FROM orders")
    db.sql("INSERT INTO orders VALUES (6, 'emea', 1, 1)")
    before = db.view("v").why("emea")
    db.catch_up()
    now, past = db.view("v").why("emea"), db.view("v").why("emea", as_of=epoch)
    assert [_scanned(each) for each in (before, now, past)] == [True, False, True]
    assert [ids(each, "orders") for each in (now, past)] == [[1, 2, 4, 6], [1, 2, 4]]


def test_the_log_is_read_back_so_far(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    why(db, "SELECT id, amount FROM orders", 1)
    db.keep_history(epochs=10)
    for amount in (6, 7, 8):
        db.table("orders").put({"id": 1, "region": "emea", "customer": 1, "amount": amount})
    db.catch_up()
    whole = db.view("v").why(1)
    monkeypatch.setattr(operations, "MOST_READ", 2)
    near, other = db.view("v").why(1), db.view("v").why(2)
    (since,) = near.logged("orders").since.values()
    assert near.operations("orders").to_pylist() == whole.operations("orders").to_pylist()[-2:]
    assert f"before log:{since}, which is not read" in str(other)
