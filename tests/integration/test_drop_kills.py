"""Real processes write a table while others drop it and are killed at it: no acknowledged write is
lost.

All processes of a machine share the monotonic clock: a write that began after a drop was done must
not be acknowledged.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.errors import Dropped

CREATE = "CREATE TABLE t (id STRING PRIMARY KEY)"
WRITER = """
import sys, time, belvedere
from belvedere.errors import BelvedereError, Dropped
db, me, n = belvedere.open(sys.argv[1]), sys.argv[2], 0
table = None
print("ready", flush=True)
while True:
    try:
        table = table or db.table("t")
        n, began = n + 1, time.monotonic()
        rows = [{"id": f"{me}-{n}-{i}"} for i in range(1 if n % 3 else 50)]
        table.put(rows[0]) if len(rows) == 1 else table.put_many(rows)
        print(table._definition.id, n, len(rows), began, flush=True)
    except Dropped:
        table = None
    except BelvedereError as error:
        assert "there is no table" in str(error), error
"""
DROPPER = """
import os, signal, sys, belvedere
db, steps = belvedere.open(sys.argv[1]), int(sys.argv[2])
def counted(owner, name):
    original = getattr(owner, name)
    def step(*arguments):
        global steps
        if steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        steps -= 1
        return original(*arguments)
    setattr(owner, name, step)
counted(db.store.catalog, "transact")
counted(db.store.base, "drop")
db.sql("DROP TABLE t")
"""


@contextmanager
def child(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Killed:
    """What the test knows of drops: when the table of an id was certainly gone."""

    def __init__(self, db: Database) -> None:
        self.db, self.gone = db, dict[int, float]()

    def drop(self, path: Path, steps: int) -> None:
        """A DROP TABLE whose process is killed after so many steps, and what is left of the table
        afterwards.
        """
        held = self.db.table("t")
        with child(DROPPER, path, steps) as dropper:
            assert dropper.wait() in (0, -9)
        state = self.db.state()
        try:
            held.get("-")
        except Dropped:
            self.gone[held._definition.id] = time.monotonic()
        if "t" not in state.tables:
            assert held._definition.id in self.gone
            self.db.sql(CREATE)


@pytest.mark.slow
def test_writers_lose_nothing_to_drops_that_are_killed(tmp_path: Path) -> None:
    seed = random.Random(7)
    with belvedere.open(tmp_path / "db", slots=1) as db:
        db.sql(CREATE)
        killed = Killed(db)
        with child(WRITER, tmp_path / "db", "a") as one, child(WRITER, tmp_path / "db", "b") as two:
            assert [process.stdout.readline() for process in (one, two) if process.stdout] == [
                "ready\n"
            ] * 2
            for steps in [3, *(seed.randrange(4) for _ in range(7))]:
                killed.drop(tmp_path / "db", steps)
            said = {}
            for name, process in (("a", one), ("b", two)):
                process.kill()
                said[name] = process.communicate()
                assert said[name][1] == ""
        table = db.table("t")
        number = table._definition.id
        there = set() if number in killed.gone else {row["id"] for row in table.scan()}
        acknowledged = 0
        for name, (lines, _) in said.items():
            for line in lines.splitlines(keepends=True):
                if not line.endswith("\n"):
                    continue
                of, n, rows, began = line.split()
                acknowledged += 1
                assert float(began) < killed.gone.get(int(of), float("inf"))
                assert int(of) == number or int(of) in killed.gone
                if int(of) == number and number not in killed.gone:
                    assert {f"{name}-{n}-{i}" for i in range(int(rows))} <= there
        assert acknowledged > 10
        assert len(killed.gone) > 1
