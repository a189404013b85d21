"""`salvage`: whatever runs of a table are damaged, all rows outside of the keys that it names are
what they were, those of these keys are as they were at some time, and views are right again.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import belvedere
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.state import read_state
from belvedere.cli.app import app
from belvedere.database import Database
from belvedere.encoding import slot_of
from belvedere.encoding.one_key import encoder
from belvedere.epochs.local import LocalRunner
from belvedere.errors import Damaged, StoreError
from belvedere.inspection import inspect
from belvedere.salvage import _store, salvage
from belvedere.stores.embedded import layout, merging, run_files, settling, shard
from belvedere.stores.embedded.salvaging import find_lost
from belvedere.stores.embedded.store import EmbeddedStore

VIEWS = {
    "counted": "SELECT v, count(*) AS n FROM t GROUP BY v",
    "above": "SELECT v, n FROM counted WHERE n > 1",
    "apart": "SELECT id, w FROM other WHERE w > 3",
}
READERS = {"table t": ("counted", "above"), "table other": ("apart",)}


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


@pytest.fixture
def histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, set[Any]]:
    """A database at `tmp_path / "db"`; all values that a row had, with None for a deleted one."""
    monkeypatch.setattr(settling, "FEW", 1)
    monkeypatch.setattr(settling, "SMALL_BYTES", 100)
    monkeypatch.setattr(shard, "SMALL_BYTES", 0)
    monkeypatch.setattr(run_files, "SECTION_ROWS", 50)
    monkeypatch.setattr(run_files, "OWN_FILE", 500)
    monkeypatch.setattr(merging, "INLINE_ROWS", 30)
    seed = random.Random(3)
    had: dict[int, set[Any]] = {}
    with opened(tmp_path / "db") as db:
        for name, value in (("t", "v"), ("other", "w")):
            db.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY, {value} INT)")
        for name, select in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")
        db.table("other").put_many([{"id": i, "w": i} for i in range(20)])
        for size in (400, 120, 40, 10):
            rows = {seed.randrange(500): seed.randrange(20) for _ in range(size)}
            gone = {seed.randrange(500) for _ in range(size // 8)}
            db.table("t").put_many([{"id": i, "v": v} for i, v in rows.items()])
            db.table("t").delete_many(sorted(gone))
            for i, v in [*rows.items(), *((i, None) for i in gone)]:
                had.setdefault(i, {None}).add(v)
            db.catch_up()
        base = db.store.base
        base.trim("log", base.end()["log"])
    return had


def rows_of(db: Database) -> dict[int, int]:
    return {row["id"]: row["v"] for row in db.table("t").scan()}


def check_views(db: Database) -> None:
    for name, select in VIEWS.items():
        kept = Counter(tuple(row.items()) for row in db.view(name).scan())
        assert kept == Counter(tuple(row.items()) for row in db.sql(select).to_pylist()), name


def damage(path: Path, seed: random.Random) -> None:
    """Some runs of base rows: a flipped byte, an end that is missing, or all of it."""
    files = sorted((path / "base").glob("*.run"))
    for file in seed.sample(files, seed.choice([1, 1, 2])):
        data = bytearray(file.read_bytes())
        match seed.choice(["flip", "flip", "cut", "missing"]):
            case "flip":
                data[seed.randrange(len(data))] ^= 1 << seed.randrange(8)
                file.write_bytes(data)
            case "cut":
                file.write_bytes(data[: seed.randrange(len(data))])
            case "missing":
                file.unlink()


@pytest.mark.parametrize("number", range(12))
def test_rows_outside_of_the_lost_keys_stay_and_views_are_right(
    number: int, tmp_path: Path, histories: dict[int, set[Any]]
) -> None:
    path = tmp_path / "db"
    with opened(path) as db:
        before = rows_of(db)
    damage(path, random.Random(number))
    with_lost = keys_that_are_lost(path, set(histories))
    told = salvage(path)
    assert not told.done
    again = salvage(path, really=True)
    assert (again.lost, again.done) == (told.lost, True)
    readers = {view for each in told.lost for view in READERS[each.table]}
    assert set(told.views) == set(again.views) == readers
    assert salvage(path).lost == ()
    with opened(path) as db:
        found = rows_of(db)
        for i, values in histories.items():
            assert found.get(i) in values
            assert i in with_lost or found.get(i) == before.get(i), i
        assert db.store.base.count(db.table("t")._definition.id) == len(found)
        db.catch_up()
        check_views(db)
        for row in [{"id": 3, "v": 1}, {"id": 499, "v": 2}]:
            db.table("t").put(row)
        db.table("t").delete_many(sorted(with_lost)[:5])
        db.catch_up()
        check_views(db)
    assert inspect(path).findings == ()


def keys_that_are_lost(path: Path, ids: set[int]) -> set[int]:
    """Ids whose keys, in their slot, are in a stretch that salvage gives up."""
    with _store(path, layout.read_format(path)) as store:
        lost = find_lost(store.places[0]).values()
        definition = next(table for table in read_tables(store) if table.name == "t")
    encode = encoder([column.type for column in definition.schema.key_columns], True)
    found = set()
    for i in ids:
        key = encode([i])
        for each in lost:
            is_inside = each.low <= key and (each.high is None or key < each.high)
            if is_inside and (each.table, each.slot) == (definition.id, slot_of(key, 2)):
                found.add(i)
    return found


def read_tables(store: EmbeddedStore) -> list[TableDefinition]:
    return list(store.catalog.read(read_state).tables.values())


def test_the_command_says_what_is_lost_and_does_it_only_when_it_is_told_to(
    tmp_path: Path, histories: dict[int, set[Any]]
) -> None:
    path = tmp_path / "db"
    file = max((path / "base").glob("*.run"), key=lambda each: each.stat().st_size)
    file.write_bytes(b"\0" * file.stat().st_size)
    run = CliRunner().invoke
    found = run(app, ["--db", str(path), "inspect", "--json"])
    assert "belvedere salvage keeps all other rows" in found.stdout
    command = ["--db", str(path), "salvage", "--json"]
    first = run(app, command)
    assert first.exit_code == 1
    with opened(path) as db, pytest.raises(Damaged):
        rows_of(db)
    with opened(path), pytest.raises(StoreError, match="can only be salvaged alone"):
        salvage(path, really=True)
    done = run(app, [*command, "--yes"])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["lost"] == json.loads(first.stdout)["lost"]
    assert "table t" in done.stdout
    after = run(app, ["--db", str(path), "salvage"])
    assert "no runs are damaged" in after.stdout
    assert after.exit_code == 0


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_a_damaged_run_of_a_view_is_taken_out_and_the_view_built_anew(
    how: str, tmp_path: Path, histories: dict[int, set[Any]]
) -> None:
    """Also where the database cannot be opened, so that the view cannot be built anew as usual."""
    path = tmp_path / "db"
    with opened(path) as db:
        before = rows_of(db)
    file = max(path.glob("slots/*/*.run"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 8
    file.write_bytes(data[: len(data) // 2] if how == "cut" else data)
    if how == "missing":
        file.unlink()
    findings = inspect(path).findings
    for each in findings:
        assert each.remedy.partition(" ")[2].startswith(
            "rebuild" if how == "flipped" else "salvage"
        )
    views = {view for each in findings for view in each.views}
    assert views
    assert set(salvage(path).views) >= views
    found = salvage(path, really=True)
    assert (found.lost, salvage(path).views) == ((), ())
    assert set(found.views) >= views
    with opened(path) as db:
        db.catch_up()
        assert rows_of(db) == before
        check_views(db)
    assert inspect(path).findings == ()


def test_a_database_that_is_whole_is_left_as_it_is(
    tmp_path: Path, histories: dict[int, set[Any]]
) -> None:
    path = tmp_path / "db"
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    found = salvage(path, really=True)
    assert (found.lost, found.views) == ((), ())
    with opened(path) as db, opened(copy) as same:
        assert rows_of(db) == rows_of(same)
