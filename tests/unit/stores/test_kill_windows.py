"""Processes that are killed at every moment of what they do to a store: appending, segments of the
log, settling, epochs, merging, trimming, dropping, and bringing an older database to this format.

After each kill nothing is damaged, what was acknowledged is there, what was not is there whole or
not at all, and views are what their definitions give.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.inspection import inspect
from belvedere.stores.embedded import (
    layout,
    log_file,
    merging,
    older_log,
    run_files,
    settling,
    shard,
)
from belvedere.stores.embedded.merging_thread import Merging
from tests.formats.test_formats import KEPT, check, opened, unpacked
from tests.unit.stores.moments import Tell, killed
from tests.unit.stores.test_power_loss import SELECT, filled, merge_now, rows_of

BATCHES, ROWS = 6, 60


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything happens with few rows, and in one thread."""
    monkeypatch.setattr(log_file, "FULL", 2500)
    monkeypatch.setattr(log_file, "_AHEAD", 1000)
    monkeypatch.setattr(settling, "FEW", 1)
    for module in (settling, shard):
        monkeypatch.setattr(module, "SMALL_BYTES", 300)
    monkeypatch.setattr(run_files, "OWN_FILE", 3000)
    monkeypatch.setattr(merging, "INLINE_ROWS", 20)
    monkeypatch.setattr(older_log, "_AT_ONCE", 5)
    monkeypatch.setattr(Merging, "go_on", merge_now)


def batch(number: int) -> dict[int, int]:
    return {(7 * number + 3 * i) % 150: number for i in range(ROWS)}


def rows_after(batches: int) -> dict[int, int]:
    rows: dict[int, int] = {}
    for number in range(batches):
        rows |= batch(number)
    return rows


def put(db: Database, number: int) -> None:
    db.table("t").put_many([{"id": i, "v": v} for i, v in batch(number).items()])


def trim(db: Database) -> None:
    base = db.store.base
    base.trim("log", base.end()["log"])


def write_maintain_and_trim(path: Path) -> Callable[[Tell], None]:
    def work(tell: Tell) -> None:
        with opened(path) as db:
            for number in range(BATCHES):
                put(db, number)
                tell(str(number))
                if number % 3 != 1:
                    db.catch_up()
            trim(db)
            db.sql("DROP MATERIALIZED VIEW other")
            db.catch_up()

    return work


@pytest.mark.slow
def test_who_is_killed_in_a_write_an_epoch_a_merge_or_a_trim_leaves_a_whole_store(
    tmp_path: Path,
) -> None:
    filled(tmp_path / "new")
    with opened(tmp_path / "new") as db:
        db.sql("CREATE MATERIALIZED VIEW other AS SELECT id, v + 1 AS w FROM t")
        db.catch_up()
    for moment in itertools.count(1):
        path = tmp_path / "db"
        shutil.copytree(tmp_path / "new", path)
        said, was_killed = killed(write_maintain_and_trim(path), moment)
        assert not was_killed or inspect(path).findings == (), moment
        with opened(path) as db:
            assert rows_of(db) in (rows_after(len(said)), rows_after(len(said) + 1)), moment
            db.catch_up()
            put(db, BATCHES)
            db.catch_up()
            kept = Counter(tuple(row.items()) for row in db.view("w").scan())
            assert kept == Counter(tuple(row.items()) for row in db.sql(SELECT).to_pylist()), moment
            trim(db)
            assert rows_of(db)[0] in range(BATCHES + 1)
        shutil.rmtree(path)
        if not was_killed:
            break
    assert moment > 60


@pytest.mark.slow
def test_who_is_killed_while_the_log_becomes_files_opens_it_again_and_loses_nothing(
    tmp_path: Path,
) -> None:
    archive = next(each for each in KEPT if each.name == "format-5.tar.xz")
    unpacked(archive, tmp_path / "old")
    with opened(shutil.copytree(tmp_path / "old", tmp_path / "whole")) as db:
        names = list(db.state().tables)
        expected = {name: rows(db, name) for name in names}
    for moment in itertools.count(1):
        path = shutil.copytree(tmp_path / "old", tmp_path / "db")
        others = [(older_log, "_note"), (older_log, "_remove_some"), (layout, "_publish")]
        _, was_killed = killed(open_it(path), moment, others)
        with opened(path) as db:
            assert {name: rows(db, name) for name in names} == expected, moment
            db.catch_up()
            check(db)
        assert inspect(path).findings == (), moment
        shutil.rmtree(path)
        if not was_killed:
            break
    assert moment > 10


def open_it(path: Path) -> Callable[[Tell], None]:
    return lambda tell: belvedere.open(path).close()


def rows(db: Database, table: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in db.table(table).scan()]
