"""What the store keeps does not grow with what was written, if rows are written over and over: files
of runs, run lists, segments of the log, and bytes.

Counted after every epoch of a long history, and compared with what the first part of it needed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from belvedere.database import Database
from belvedere.readers.cut import open_cut
from belvedere.stores.embedded import (
    EmbeddedStore,
    disk,
    log_file,
    merging,
    run_files,
    run_lists,
    settling,
    shard,
)
from belvedere.stores.embedded.merging_thread import Merging
from belvedere.stores.embedded.places import Place
from tests.unit.stores.test_power_loss import filled, merge_now, opened

KEYS, WRITTEN, EPOCHS = 200, 80, 30


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "FULL", 6000)
    monkeypatch.setattr(log_file, "_AHEAD", 3000)
    monkeypatch.setattr(settling, "FEW", 1)
    for module in (settling, shard):
        monkeypatch.setattr(module, "SMALL_BYTES", 300)
    monkeypatch.setattr(run_files, "OWN_FILE", 3000)
    monkeypatch.setattr(merging, "INLINE_ROWS", 20)
    monkeypatch.setattr(Merging, "go_on", merge_now)


@dataclass(frozen=True)
class Kept:
    files: int
    lists: int
    segments: int
    size: int

    @classmethod
    def of(cls, path: Path, db: Database) -> Kept:
        files = list(path.glob("base/*.run")) + list(path.glob("slots/*/*.run"))
        segments = list(path.glob("base/log/*.log"))
        lists = sum(
            place.environment.read(lambda t: len(list(run_lists.every(t)))) for place in places(db)
        )
        size = sum(each.stat().st_size for each in [*files, *segments])
        return cls(len(files), lists, len(segments), size)


def places(db: Database) -> Sequence[Place]:
    assert isinstance(db.store, EmbeddedStore)
    return db.store.places


def largest(kept: list[Kept]) -> tuple[int, ...]:
    return tuple(max(numbers) for numbers in zip(*map(astuple, kept), strict=True))


def write(db: Database, seed: random.Random) -> None:
    rows = [{"id": i, "v": seed.randrange(9)} for i in seed.sample(range(KEYS), WRITTEN)]
    db.table("t").put_many(rows)
    db.catch_up()


def merge(db: Database) -> None:
    """As a coordinator does after an epoch; there is nothing to collect below the first one."""
    db.store.state.collect(0)


def trim(db: Database) -> None:
    base = db.store.base
    base.trim("log", base.end()["log"])
    merge(db)


def test_rows_that_are_overwritten_take_no_more_room_after_four_times_the_epochs(
    tmp_path: Path,
) -> None:
    path, seed = tmp_path / "db", random.Random(1)
    filled(path)
    kept = []
    with opened(path) as db:
        for _ in range(4 * EPOCHS):
            write(db, seed)
            trim(db)
            kept.append(Kept.of(path, db))
    first, later = largest(kept[:EPOCHS]), largest(kept[EPOCHS:])
    assert all(after <= before + before // 4 for before, after in zip(first, later, strict=True))


def test_what_a_pin_has_kept_goes_with_it(tmp_path: Path) -> None:
    path, seed = tmp_path / "db", random.Random(2)
    filled(path)
    with opened(path) as db:
        write(db, seed)
        free = []
        for _ in range(EPOCHS):
            write(db, seed)
            trim(db)
            free.append(Kept.of(path, db))
        with open_cut(db.store):
            pinned = []
            for _ in range(EPOCHS):
                write(db, seed)
                pinned.append(Kept.of(path, db))
        after = []
        for _ in range(EPOCHS):
            write(db, seed)
            trim(db)
            after.append(Kept.of(path, db))
    assert largest(pinned)[1] > largest(free)[1]  # else the pin has kept nothing
    usual = largest(free)
    assert all(
        now <= before + before // 4 for before, now in zip(usual, astuple(after[-1]), strict=True)
    )


def test_runs_wait_to_be_merged_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, seed = tmp_path / "db", random.Random(3)
    filled(path)
    with opened(path) as db:
        with monkeypatch.context() as patch:
            patch.setattr(disk, "free", lambda path: 1 << 20)
            for _ in range(6):
                write(db, seed)
            merge(db)
            waiting = [place.environment.read(merging.next_merge) for place in places(db)]
            assert any(waiting)
            assert "are not merged: the disk is nearly full" in caplog.text
        merge(db)
        for place in places(db):
            assert place.environment.read(merging.next_merge) is None
