"""CREATE TABLE ... USING hbase: what the options mean, and what is refused in which words."""

from __future__ import annotations

import pytest

import belvedere
from belvedere.database import Database
from belvedere.errors import BelvedereError
from belvedere.stores.base import MappedColumn, MappedKey
from belvedere.stores.memory.foreign import ForeignBase
from belvedere.types import BIGINT, INT, STRING


@pytest.fixture
def db() -> Database:
    opened = belvedere.open("memory:", foreign=True)
    assert isinstance(opened.store.base, ForeignBase)
    opened.store.base.sources["shop:orders"] = {}
    return opened


def _create(columns: str, options: str) -> str:
    return f"CREATE TABLE t ({columns}) USING hbase OPTIONS ({options})"


def test_options_place_columns_and_key(db: Database) -> None:
    db.sql(
        _create(
            "region STRING, id INT, amount BIGINT, note STRING, PRIMARY KEY (region, id)",
            "table = 'shop:orders', family = 'd', columns = 'Note = x:n', text = 'amount, id,"
            " region', separator = '|'",
        )
    )
    mapping = db.state().table("t").mapping
    assert mapping is not None
    assert mapping.source == "shop:orders"
    assert mapping.key == MappedKey((STRING, INT), "text", b"|")
    assert mapping.families == (b"x", b"d")
    assert mapping.columns == (
        MappedColumn(BIGINT, 1, b"amount", "text"),
        MappedColumn(STRING, 0, b"n"),
    )


def test_what_is_shown_creates_the_same_table(db: Database) -> None:
    db.sql(
        _create(
            "id STRING, amount BIGINT, PRIMARY KEY (id)",
            "table = 'shop:orders', columns = 'amount = d:it''s', format = 'text'",
        ).replace("''", "\\'")
    )
    before = db.state().table("t")
    text = str(db.sql("SHOW CREATE TABLE t"))
    db.sql("DROP TABLE t")
    db.sql(text)
    after = db.state().table("t")
    assert (after.schema, after.mapping) == (before.schema, before.mapping)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("id STRING, a INT, PRIMARY KEY (id)", "family = 'd'", "needs the name of a table"),
        ("id STRING, a INT, PRIMARY KEY (id)", "table = 'shop:orders'", "a has no place"),
        ("id STRING, PRIMARY KEY (id)", "table = 'shop:orders', family = 'd'", "keys only"),
        ("id STRING, a INT", "table = 'shop:orders', family = 'd'", "PRIMARY KEY"),
        (
            "id STRING, a INT, PRIMARY KEY (id)",
            "table = 'shop:orders', famly = 'd'",
            "unknown option famly",
        ),
        (
            "id STRING, a INT, PRIMARY KEY (id)",
            "table = 'shop:orders', columns = 'a d:a'",
            "column = family:qualifier",
        ),
        (
            "id STRING, a INT, PRIMARY KEY (id)",
            "table = 'shop:orders', family = 'd', columns = 'id = d:id'",
            "leave it out",
        ),
        (
            "id STRING, a INT, b INT, PRIMARY KEY (id)",
            "table = 'shop:orders', columns = 'a = d:x, b = d:x'",
            "the same place",
        ),
        (
            "id STRING, k INT, a INT, PRIMARY KEY (id, k)",
            "table = 'shop:orders', family = 'd'",
            "separator",
        ),
        (
            "id STRING, a INT, PRIMARY KEY (id)",
            "table = 'shop:orders', family = 'd', format = 'json'",
            "use 'bytes' or 'text'",
        ),
        ("id STRING, a INT, PRIMARY KEY (id)", "table = 'nowhere', family = 'd'", "nowhere"),
    ],
)
def test_what_cannot_be_mapped_is_refused(
    db: Database, columns: str, options: str, said: str
) -> None:
    with pytest.raises(BelvedereError, match=said):
        db.sql(_create(columns, options))
    assert db.state().tables == {}


def test_a_table_of_its_own_is_refused_where_all_are_foreign(db: Database) -> None:
    with pytest.raises(BelvedereError, match="USING hbase"):
        db.sql("CREATE TABLE t (id STRING, a INT, PRIMARY KEY (id))")


def test_a_foreign_table_is_refused_where_none_are() -> None:
    own = belvedere.open("memory:")
    with pytest.raises(BelvedereError, match="no foreign tables"):
        own.sql(
            _create("id STRING, a INT, PRIMARY KEY (id)", "table = 'shop:orders', family = 'd'")
        )


def test_complete_views_need_an_order_of_transactions(db: Database) -> None:
    db.sql(_create("id STRING, a INT, PRIMARY KEY (id)", "table = 'shop:orders', family = 'd'"))
    with pytest.raises(BelvedereError, match="transactions have an order"):
        db.sql("CREATE MATERIALIZED VIEW v WITH (consistency = 'complete') AS SELECT id FROM t")
    assert db.state().views == {}


def test_statements_that_read_and_write_are_refused(db: Database) -> None:
    db.sql(_create("id STRING, a INT, PRIMARY KEY (id)", "table = 'shop:orders', family = 'd'"))
    db.sql("INSERT INTO t VALUES ('x', 1)")
    for text in ("UPDATE t SET a = 2", "DELETE FROM t WHERE id = 'x'"):
        with pytest.raises(BelvedereError, match="foreign table"):
            db.sql(text)
    db.table("t").delete("x")
    assert db.table("t").get("x") is None
