"""DROP TABLE: a write that is acknowledged is in the table, or the table was dropped after it.

Whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
import belvedere.epochs.coordinator
import belvedere.waiting
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, Dropped

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"


@pytest.fixture(params=["memory", "embedded"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with belvedere.open(
        "memory:" if request.param == "memory" else str(tmp_path / "db"), slots=2
    ) as opened:
        opened._runner = LocalRunner(opened.store)
        yield opened


def calls(table: Any) -> list[Callable[[], Any]]:
    row = {"id": 2, "v": 2}
    writes = [
        lambda: table.put(row),
        lambda: table.put_many([row]),
        lambda: table.delete(1),
        lambda: table.delete_many([1]),
    ]
    return [
        *writes,
        lambda: table.get(1),
        lambda: list(table.scan()),
        table.to_arrow,
        lambda: table.write_many([row], [True]),
    ]


def test_a_held_table_that_was_dropped_refuses_writes_and_reads(db: Database) -> None:
    db.sql(CREATE)
    old = db.table("t")
    old.put({"id": 1, "v": 1})
    db.sql("DROP TABLE t")
    for call in calls(old):
        with pytest.raises(
            Dropped, match=r"table t was dropped: nothing was read or written\. .*db\.table\('t'\)"
        ):
            call()
    db.sql(CREATE)
    for call in calls(old):
        with pytest.raises(Dropped):
            call()
    assert db.sql("SELECT * FROM t").to_pylist() == []
    db.table("t").put({"id": 3, "v": 3})
    assert db.sql("SELECT * FROM t").to_pylist() == [{"id": 3, "v": 3}]


def broken_off(db: Database, monkeypatch: pytest.MonkeyPatch, marked: bool) -> None:
    """A DROP TABLE that ends before or after the mark in the base tables."""
    drop = db.store.base.drop

    def die(table: int) -> None:
        if marked:
            drop(table)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(db.store.base, "drop", die)
        with pytest.raises(KeyboardInterrupt):
            db.sql("DROP TABLE t")


@pytest.mark.parametrize("marked", [False, True])
def test_a_drop_that_was_broken_off_is_finished_by_the_next_one(
    db: Database, monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    db.sql(CREATE)
    held = db.table("t")
    held.put({"id": 1, "v": 1})
    broken_off(db, monkeypatch, marked)
    assert db.sql("SHOW TABLES").to_pylist() == [{"name": "t", "kind": "table, being dropped"}]
    if marked:
        with pytest.raises(Dropped):
            held.put({"id": 2, "v": 2})
    else:
        held.put({"id": 2, "v": 2})
        assert [row["id"] for row in db.table("t").scan()] == [1, 2]
    for refused in ("CREATE MATERIALIZED VIEW w AS SELECT id FROM t", CREATE):
        with pytest.raises(
            CatalogError, match="table t is being dropped: DROP TABLE t finishes that"
        ):
            db.sql(refused)
    assert db.catch_up() is not None
    db.sql("DROP TABLE t")
    assert db.sql("SHOW TABLES").to_pylist() == []
    with pytest.raises(Dropped):
        held.put({"id": 3, "v": 3})
    db.sql(CREATE)
    assert list(db.table("t").scan()) == []


def test_two_drops_at_once_leave_a_table_that_was_created_after_the_first(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql(CREATE)
    drop = db.store.base.drop

    def slow(table: int) -> None:
        monkeypatch.setattr(db.store.base, "drop", drop)
        db.sql("DROP TABLE t")
        db.sql(CREATE)
        drop(table)

    monkeypatch.setattr(db.store.base, "drop", slow)
    db.sql("DROP TABLE t")
    db.table("t").put({"id": 1, "v": 1})
    assert db.sql("SELECT * FROM t").to_pylist() == [{"id": 1, "v": 1}]


def test_an_update_meets_a_drop_with_the_tables_name(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql(CREATE)
    db.table("t").put({"id": 1, "v": 1})
    broken_off(db, monkeypatch, marked=True)
    for statement in (
        "UPDATE t SET v = 2",
        "DELETE FROM t",
        "INSERT INTO t VALUES (2, 2)",
        "SELECT * FROM t",
    ):
        with pytest.raises(Dropped, match="table t was dropped"):
            db.sql(statement).to_arrow()


def test_an_epoch_that_loads_from_a_table_that_is_dropped_meanwhile_goes_on(db: Database) -> None:
    db.sql(CREATE)
    db.sql("CREATE TABLE other (id INT PRIMARY KEY)")
    db.sql("CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    db.sql("CREATE MATERIALIZED VIEW o AS SELECT count(*) AS n FROM other")
    db.table("t").put_many([{"id": i, "v": i} for i in range(100)])
    db.table("other").put({"id": 1})
    local = LocalRunner(db.store)

    class Dropping:
        def run(self, intent: Any) -> Any:
            if intent.load is not None and "t" in db.state().tables:
                db.sql("DROP MATERIALIZED VIEW w")
                db.sql("DROP TABLE t")
            return local.run(intent)

    db._runner = Dropping()
    db.catch_up(max_rows=10)
    assert "t" not in db.state().tables
    assert list(db.view("o").scan()) == [{"n": 1}]


# ---------------------------------------------------------------- rows that are nobody's


def left(path: Path) -> bool:
    """Whether there are files of base rows, whoever may read them."""
    return bool(list(path.glob("base/*.run")))


def large(path: Path, **options: Any) -> Database:
    """A database in which a table was dropped, and nobody has removed its rows."""
    db = belvedere.open(str(path), slots=2, **options)
    db._runner = LocalRunner(db.store)
    db.sql(CREATE)
    db.table("t").put_many([{"id": i, "v": i} for i in range(20_000)])
    db.store.base.trim("log", 20_000)
    assert left(path)
    db.store.base.drop(db.table("t")._definition.id)
    assert left(path)
    return db


def test_what_a_drop_leaves_is_removed_by_a_pipeline(tmp_path: Path) -> None:
    with large(tmp_path / "db") as db:
        pipeline = db.start()
        gone = belvedere.waiting.wait_until(lambda: not left(tmp_path / "db") or None, 60)
        pipeline.stop()
        assert gone


def test_what_a_drop_leaves_is_removed_by_further_drops(tmp_path: Path) -> None:
    with large(tmp_path / "db") as db:
        db.sql("DROP TABLE IF EXISTS other")
        assert not left(tmp_path / "db")


def test_the_tables_of_a_dropped_view_are_gone_after_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little time there is: their files go with the next collection."""
    monkeypatch.setattr("belvedere.epochs.coordinator._CLEANING", 0.0)
    with belvedere.open(str(tmp_path / "db"), slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql(CREATE)
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT id, v FROM t")
        db.table("t").put_many([{"id": i, "v": i} for i in range(200_000)])
        db.catch_up()
        table = db.state().view("w").planned.sink.table
        assert db.store.state.count(0, table)[0] > 90_000
        assert list(tmp_path.glob("db/slots/*/*.run"))
        db.sql("DROP MATERIALIZED VIEW w")
        coordinator = db._coordinator(belvedere.epochs.settings.Settings())
        assert coordinator.acquire()
        coordinator.step()
        assert not db.store.catalog.read(lambda t: t.scan("garbage/"))
        coordinator.release()
        assert [db.store.state.count(slot, table) for slot in (0, 1)] == [(0, 0), (0, 0)]
        for number in range(8):  # history is kept for some epochs
            db.table("t").put({"id": number, "v": 0})
            db.catch_up()
        db.sql("CREATE MATERIALIZED VIEW x AS SELECT count(*) AS n FROM t")
        for number in range(8):
            db.table("t").put({"id": number, "v": 1})
            db.catch_up()
        assert not list(tmp_path.glob("db/slots/*/*.run"))
