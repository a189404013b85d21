"""Power is lost at any moment: what was acknowledged is there, and views are what their definitions
give.

BELVEDERE_POWER_LOSSES sets the number of histories (`make soak-power`).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs import lease
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreFull
from belvedere.inspection import inspect
from belvedere.stores.embedded import disk, log_file, merging, run_files, settling, shard
from belvedere.stores.embedded.merging_thread import Merging
from tests.unit.stores.losing_disk import LosingDisk, PowerLost

HISTORIES = int(os.environ.get("BELVEDERE_POWER_LOSSES", "24"))
SELECT = "SELECT v, count(*) AS n FROM t GROUP BY v"


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


def filled(path: Path) -> None:
    with opened(path) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        db.sql(f"CREATE MATERIALIZED VIEW w AS {SELECT}")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything happens with few rows, and in one thread: segments, runs in files, merges."""
    monkeypatch.setattr(log_file, "FULL", 6000)
    monkeypatch.setattr(log_file, "_AHEAD", 3000)
    monkeypatch.setattr(settling, "FEW", 1)
    for module in (settling, shard):
        monkeypatch.setattr(module, "SMALL_BYTES", 300)
    monkeypatch.setattr(run_files, "OWN_FILE", 3000)
    monkeypatch.setattr(merging, "INLINE_ROWS", 20)
    monkeypatch.setattr(Merging, "go_on", merge_now)


def merge_now(merging: Merging) -> None:
    for place in merging._places:
        merging._merge(place)


def rows_of(db: Database) -> dict[int, int]:
    return {row["id"]: row["v"] for row in db.sql("SELECT id, v FROM t").to_pylist()}


class History:
    """What was acknowledged, and what was under way when power was lost."""

    def __init__(self, db: Database, seed: random.Random) -> None:
        self.db, self._seed = db, seed
        self.rows: dict[int, int] = {}
        self._is_together = False
        self.maybe: list[dict[int, int]] = []  # one of these, if not what was acknowledged

    def step(self) -> None:
        self._seed.choice(
            [self.put, self.put, self.put, self.put_many, self.together, self.maintain, self.trim]
        )()

    def put(self) -> None:
        self._write(1)

    def put_many(self) -> None:
        self._write(self._seed.choice([2, 30, 400]))

    def _write(self, count: int) -> None:
        rows = {self._seed.randrange(500): self._seed.randrange(5) for _ in range(count)}
        self.maybe.append((self.maybe or [self.rows])[-1] | rows)
        self.db.table("t").put_many([{"id": i, "v": v} for i, v in rows.items()])
        if not self._is_together:
            self._acknowledge()

    def together(self) -> None:
        """Transactions that are durable when all of them are written."""
        self._is_together = True
        with self.db.store.base.together():
            for _ in range(self._seed.choice([1, 3, 20])):
                self._write(self._seed.choice([1, 30]))
        self._is_together = False
        self._acknowledge()

    def _acknowledge(self) -> None:
        self.rows, self.maybe = self.maybe[-1], []

    def go_on(self) -> NoReturn:
        while True:
            self.step()

    def maintain(self) -> None:
        self.db.catch_up()

    def trim(self) -> None:
        self.db.catch_up()
        base = self.db.store.base
        base.trim("log", base.end()["log"])


@pytest.mark.parametrize("number", range(HISTORIES))
def test_what_was_acknowledged_outlives_a_loss_of_power(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = random.Random(number)
    filled(tmp_path / "0")
    known: dict[int, int] = {}
    for loss in range(2):  # also of what the first one has left
        path, left = tmp_path / str(loss), tmp_path / str(loss + 1)
        with monkeypatch.context() as patch:
            LosingDisk(path, seed, seed.randrange(150), left).install(patch)
            with opened(path) as db:
                history = History(db, seed)
                history.rows = known
                with pytest.raises(PowerLost):
                    history.go_on()
        known = check(left, history)


def check(path: Path, history: History) -> dict[int, int]:
    assert inspect(path).findings == ()
    with opened(path) as db:
        lease.clear(db.store)  # who had it is this process, which lives on here
        found = rows_of(db)
        assert found in (history.rows, *history.maybe)
        for _ in range(2):
            db.catch_up()
            kept = Counter(tuple(row.items()) for row in db.view("w").scan())
            computed = Counter(tuple(row.items()) for row in db.sql(SELECT).to_pylist())
            assert kept == computed
            db.table("t").put({"id": 1000, "v": 7})
    return found | {1000: 7}


@pytest.mark.parametrize("call", ["sync", "sync_folder"])
@pytest.mark.parametrize("number", range(5))
def test_what_a_failed_sync_has_given_up_is_written_again_before_anything_behind_it_counts(
    number: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system forgets what it could not write, and the next sync says nothing of it."""
    seed = random.Random(number)
    filled(tmp_path / "db")
    with monkeypatch.context() as patch:
        losing = LosingDisk(tmp_path / "db", seed, 10_000, tmp_path / "left")
        losing.install(patch)
        with opened(tmp_path / "db") as db:
            table, refused = db.table("t"), 0
            written: dict[int, int] = {}
            for i in range(60):
                losing.failing = seed.choice([call, call, ""])
                try:
                    table.put_many([{"id": j, "v": i} for j in range(10 * i, 10 * i + 10)])
                    written |= dict.fromkeys(range(10 * i, 10 * i + 10), i)
                except StoreFull:
                    refused += 1
                assert table.get(10 * i) in (None, {"id": 10 * i, "v": i})
            losing.leave(tmp_path / "left")
    assert refused or call == "sync_folder"  # that is rare
    assert inspect(tmp_path / "left").findings == ()
    with opened(tmp_path / "left") as db:
        found = rows_of(db)
        assert {i: found.get(i) for i in written} == written
        assert set(found.values()) <= set(range(60))


NOT_DONE = {
    "the log": ("sync", ".log", "put"),
    "runs": ("sync", ".run", "trim"),
    "the names of runs": ("sync_folder", "base", "trim"),
}


@pytest.mark.parametrize("what", NOT_DONE)
def test_a_disk_that_promises_what_it_does_not_keep_is_found_out(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of these tests can lose what was acknowledged, if nobody syncs it."""
    call, ending, step = NOT_DONE[what]
    filled(tmp_path / "db")
    lost = 0
    for number in range(10):
        seed, left = random.Random(number), tmp_path / f"after-{number}"
        with monkeypatch.context() as patch:
            losing = LosingDisk(tmp_path / "db", seed, 10_000, left)
            losing.install(patch)
            kept = getattr(disk, call)

            def forgetful(about: int | str, kept: Any = kept) -> None:
                path = about if isinstance(about, str) else os.readlink(f"/proc/self/fd/{about}")
                if not path.endswith(ending):
                    kept(about)

            patch.setattr(disk, call, forgetful)
            with opened(tmp_path / "db") as db:
                db.table("t").put_many([{"id": i, "v": number} for i in range(100)])
                if step == "trim":
                    History(db, seed).trim()
                losing.leave(left)
        try:
            with opened(left) as db:
                lost += set(rows_of(db).values()) != {number}
        except belvedere.BelvedereError:
            lost += 1
    assert lost
