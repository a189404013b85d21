"""Histories of small databases, copied at many moments, and directories whose parts are from
different ones of these copies.

    python -m tests.integration.mixtures FOLDER FIRST LAST

judges the cases of the histories with these seeds and says a line for each: what was done, and
`refused`, `right` or what is wrong.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import belvedere
from belvedere.catalog.state import read_state
from belvedere.database import Database
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import Intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.epochs.settings import Settings
from belvedere.errors import BelvedereError

SLOTS, STEPS, CASES = 2, 14, 10
PARTS = ("base", "catalog", *(f"slots/{slot:03}" for slot in range(SLOTS)))
VIEWS = (
    "SELECT v, count(*) AS n, sum(id) AS s FROM {a} GROUP BY v",
    "SELECT id, v + 1 AS w FROM {a} WHERE v > 1",
    "SELECT x.id AS i, y.id AS j FROM {a} x JOIN {b} y ON x.v = y.v",
    "SELECT DISTINCT v FROM {a}",
    "SELECT id FROM {a} EXCEPT SELECT id FROM {b}",
)
Rows = dict[int, list[dict[str, Any]]]


@dataclass
class History:
    """A database and copies of its directory: between any two steps, inside epochs, and inside
    drops.
    """

    folder: Path
    seed: random.Random
    copies: list[Path] = field(default_factory=list)

    def live(self, steps: int) -> None:
        self.db = belvedere.open(self.folder / "db", slots=SLOTS)
        drop = self.db.store.base.drop

        def copying(table: int) -> None:
            self.copy()
            drop(table)
            self.copy()

        self.db.store.base.drop = copying  # type: ignore[method-assign]  # to be there between its steps
        self.create()
        for _ in range(steps):
            self.copy()
            self.seed.choice(
                [
                    self.write,
                    self.write,
                    self.write,
                    self.epochs,
                    self.epochs,
                    self.create,
                    self.define,
                    self.drop,
                ]
            )()
        self.copy()
        self.db.close()

    def copy(self) -> None:
        self.copies.append(self.folder / f"copy-{len(self.copies)}")
        shutil.copytree(self.folder / "db", self.copies[-1])

    def run(self, intent: Intent) -> list[Ack]:
        """An epoch, with copies before and after its slots are written."""
        if self.seed.random() < 0.3:
            self.copy()
        acks = LocalRunner(self.db.store).run(intent)
        if self.seed.random() < 0.3:
            self.copy()
        return acks

    def tables(self) -> list[str]:
        return sorted(self.db.state().tables)

    def create(self) -> None:
        name = f"t{self.seed.randrange(3)}"
        images = self.seed.choice(["true", "true", "false"])
        self.db.sql(
            f"CREATE TABLE IF NOT EXISTS {name} (id INT PRIMARY KEY, v INT) WITH (before_images ="
            f" {images})"
        )

    def write(self) -> None:
        if self.tables():
            write_some(self.db, self.seed.choice(self.tables()), self.seed)

    def define(self) -> None:
        if self.tables():
            a, b = self.seed.choice(self.tables()), self.seed.choice(self.tables())
            select = self.seed.choice(VIEWS).format(a=a, b=b)
            self.db.sql(
                f"CREATE OR REPLACE MATERIALIZED VIEW v{self.seed.randrange(3)} AS {select}"
            )

    def drop(self) -> None:
        state = self.db.state()
        used = {source for view in state.definitions() for source in view.planned.sources}
        free = [name for name, table in state.tables.items() if table.id not in used]
        if free and self.seed.random() < 0.6:
            self.db.sql(f"DROP TABLE {self.seed.choice(free)}")
        elif state.views:
            self.db.sql(f"DROP MATERIALIZED VIEW {self.seed.choice(sorted(state.views))}")

    def epochs(self) -> None:
        """Old versions are collected and the log is trimmed as soon as can be."""
        run_epochs(self.db, self, self.seed.choice([3, 1000]), self.seed.choice([1, 2, 99]))


def write_some(db: Database, table: str, seed: random.Random) -> None:
    held, count = db.table(table), seed.choice([1, 5, 40])
    if seed.random() < 0.25:
        held.delete_many([seed.randrange(60) for _ in range(count)])
    else:
        held.put_many([{"id": seed.randrange(60), "v": seed.randrange(5)} for _ in range(count)])


def run_epochs(db: Database, runner: Any, rows: int, most: int, ahead: float = 0.0) -> None:
    """Some epochs; with a clock that is ahead, a lease that was copied with the directory has
    expired.
    """
    settings = Settings(max_rows=rows, load_rows=max(rows, 10), history=1, trim_after=1)
    coordinator = Coordinator(db.store, runner, settings, now=lambda: time.time() + ahead)
    assert coordinator.acquire()
    try:
        while most and coordinator.step() is not None:
            most -= 1
    finally:
        coordinator.release()


# ---------------------------------------------------------------- what is done to a copy


def cases(own: list[Path], other: Path, seed: random.Random) -> Iterator[tuple[str, Path]]:
    """Directories with one part that is not what it was, and what was done.

    `.../case` is used again.
    """
    target = own[0].parent / "case"
    for _ in range(CASES):
        shutil.rmtree(target, ignore_errors=True)
        at, source = seed.randrange(len(own)), seed.randrange(len(own))
        shutil.copytree(own[at], target)
        kind = seed.choice(
            ["time"] * 6
            + ["missing", "empty", "short", "stranger", "format", "swap", "locks", "nothing"]
        )
        yield (
            (
                f"copy {at} of {len(own)}: {KINDS[kind](target, own[source], other, seed)}"
                f" {source if kind == 'time' else ''}"
            ),
            target,
        )


def _time(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    part = seed.choice(PARTS)
    return f"time, {part} {_replace(target / part, source / part, seed)} as of copy"


def _stranger(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    part = seed.choice(PARTS)
    return f"stranger, {part} {_replace(target / part, other / part, seed)}"


def _replace(target: Path, source: Path, seed: random.Random) -> str:
    if seed.random() < 0.5:
        shutil.copy(source / "data.mdb", target / "data.mdb")
        return "(data)"
    shutil.rmtree(target)
    shutil.copytree(source, target)
    return "(all)"


def _missing(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    part = seed.choice([*PARTS, "slots"])
    if part != "slots" and seed.random() < 0.5:
        (target / part / "data.mdb").unlink()
    else:
        shutil.rmtree(target / part)
    return f"missing, {part}"


def _empty(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    part = seed.choice(PARTS)
    (target / part / "data.mdb").write_bytes(b"")
    return f"empty, {part}"


def _short(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    path = target / (part := seed.choice(PARTS)) / "data.mdb"
    size = path.stat().st_size
    left = seed.choice([size // 2, size - 1, size - 4096, 8192, 4096, 100, seed.randrange(size)])
    with path.open("r+b") as file:
        file.truncate(max(left, 1))
    return f"short, {part} has {left} of {size} bytes"


def _format(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    path, how = (
        target / "format.json",
        seed.choice(["removed", "another store's", "empty", "of format 2"]),
    )
    if how == "removed":
        path.unlink()
    elif how == "another store's":
        shutil.copy(other / "format.json", path)
    else:
        path.write_text(
            ""
            if how == "empty"
            else f'{{"belvedere": "embedded store", "format": 2, "slots": {SLOTS}}}'
        )
    return f"format, {how}"


def _swap(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    one, two = seed.sample(PARTS, 2)
    (target / one).rename(target / "aside")
    (target / two).rename(target / one)
    (target / "aside").rename(target / two)
    return f"swap, {one} and {two}"


def _locks(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    part, name = seed.choice(PARTS), seed.choice(["lock.mdb", "holder"])
    path, how = target / part / name, seed.choice(["removed", "empty", "old", "other"])
    path.unlink()
    if how == "empty":
        path.write_bytes(b"")
    elif how != "removed":
        shutil.copy((source if how == "old" else other) / part / name, path)
    return f"locks, {part}/{name} {how}"


def _nothing(target: Path, source: Path, other: Path, seed: random.Random) -> str:
    return "nothing"


KINDS = {
    "time": _time,
    "stranger": _stranger,
    "missing": _missing,
    "empty": _empty,
    "short": _short,
    "format": _format,
    "swap": _swap,
    "locks": _locks,
    "nothing": _nothing,
}


# ---------------------------------------------------------------- judging


def judge(folder: Path, seed: random.Random) -> str:
    """`refused` if the store is not opened, or `right` if all views are,
    now and after more writes.
    """
    try:
        db = belvedere.open(folder)
    except BelvedereError:
        return "refused"
    with db:
        try:
            for _ in range(2):
                run_epochs(db, LocalRunner(db.store), 1000, 99, ahead=3600.0)
                found = wrong_view(db)
                if found:
                    return found
                for table in db.state().tables.values():
                    if table.id not in db.state().dropping:
                        write_some(db, table.name, seed)
        except BelvedereError as error:
            return f"opened, then {type(error).__name__}: {error}"
    return "right"


def wrong_view(db: Database) -> str | None:
    state = db.store.catalog.read(read_state)
    for view in state.views.values():
        found, expected = (
            Counter(tuple(r.values()) for r in rows)
            for rows in (db.view(view.name).scan(), recomputed(db, view.select))
        )
        if found != expected:
            return (
                f"WRONG: {view.name} ({view.select}): {dict(found - expected)} instead of"
                f" {dict(expected - found)}"
            )
    return None


def recomputed(db: Database, select: str) -> list[dict[str, Any]]:
    return db.sql(select).to_pylist()


def main(folder: str, first: int, last: int) -> None:
    for number in range(first, last):
        seed = random.Random(number)
        own, other = (History(Path(folder) / f"{number}-{name}", seed) for name in ("own", "other"))
        own.live(STEPS)
        other.live(4)
        for what, target in cases(own.copies, other.copies[-1], seed):
            # so that a signal is seen to belong to it
            print(f"{number}: {what} -> ", end="", flush=True)
            print(judge(target, seed), flush=True)
        shutil.rmtree(own.folder)
        shutil.rmtree(other.folder)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
