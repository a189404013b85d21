"""A closed database answers no call, also through objects that were made before and while others
use the same files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreError
from belvedere.table import Table
from belvedere.view import View

CALLS: dict[str, Callable[[belvedere.Database, Table, View, Any], object]] = {
    "view.get": lambda db, t, v, q: v.get(1),
    "view.scan": lambda db, t, v, q: list(v.scan()),
    "view.to_arrow": lambda db, t, v, q: v.to_arrow(),
    "view.problems": lambda db, t, v, q: v.problems(),
    "view.schema": lambda db, t, v, q: v.schema,
    "len(view)": lambda db, t, v, q: len(v),
    "table.get": lambda db, t, v, q: t.get(1),
    "table.scan": lambda db, t, v, q: list(t.scan()),
    "table.to_arrow": lambda db, t, v, q: t.to_arrow(),
    "table.put": lambda db, t, v, q: t.put({"id": 2, "v": 2}),
    "table.put_many": lambda db, t, v, q: t.put_many([{"id": 2, "v": 2}]),
    "table.delete": lambda db, t, v, q: t.delete(1),
    "query.to_arrow": lambda db, t, v, q: q.to_arrow(),
    "query.to_pylist": lambda db, t, v, q: q.to_pylist(),
    "db.table": lambda db, t, v, q: db.table("t"),
    "db.view": lambda db, t, v, q: db.view("w"),
    "db.sql": lambda db, t, v, q: db.sql("SHOW TABLES"),
    "db.state": lambda db, t, v, q: db.state(),
    "db.status": lambda db, t, v, q: db.status(),
    "db.catch_up": lambda db, t, v, q: db.catch_up(),
    "db.start": lambda db, t, v, q: db.start(),
}


@pytest.mark.parametrize("kind", ["memory", "embedded", "embedded, and another has it open"])
def test_every_call_says_that_the_database_is_closed(tmp_path: Path, kind: str) -> None:
    url = "memory:" if kind == "memory" else str(tmp_path / "d")
    db = belvedere.open(url, slots=2)
    other = belvedere.open(url) if kind.endswith("open") else None
    db._runner = LocalRunner(db.store)
    db.sql(
        "CREATE TABLE t (id INT, v INT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW w AS SELECT v,"
        " count(*) AS n FROM t GROUP BY v"
    )
    db.table("t").put({"id": 1, "v": 1})
    db.catch_up()
    table, view, query = db.table("t"), db.view("w"), db.sql("SELECT * FROM w")
    with db.session() as session:
        own = session.view("w")
    assert view.get(1) == own.get(1) == {"v": 1, "n": 1}  # the fast way is prepared
    db.close()
    for name, call in CALLS.items():
        with pytest.raises(StoreError, match="is closed: open the store again"):
            pytest.fail(f"{name} answered {call(db, table, view, query)!r}")
    with pytest.raises(StoreError, match="is closed"):
        own.get(1)
    assert all(db.store.url in repr(each) for each in (db, table, view))
    db.close()
    if other is not None:
        assert other.view("w").get(1) == {"v": 1, "n": 1}
        other.close()


@pytest.mark.parametrize("kind", ["memory", "embedded", "embedded, and another has it open"])
def test_a_read_that_is_under_way_when_the_database_is_closed_can_be_given_up(
    tmp_path: Path, kind: str
) -> None:
    url = "memory:" if kind == "memory" else str(tmp_path / "d")
    db = belvedere.open(url, slots=2)
    other = belvedere.open(url) if kind.endswith("open") else None
    db.sql("CREATE TABLE t (id INT, PRIMARY KEY (id))")
    db.table("t").put_many([{"id": i} for i in range(10)])
    batches = db.table("t").batches(size=3)
    assert next(batches).num_rows == 3
    db.close()
    batches.close()
    if other is not None:
        assert len(list(other.table("t").scan())) == 10
        other.close()
