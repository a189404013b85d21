"""Many processes write, move amounts in transactions, maintain views and trim beside each other, and
are killed and stopped at any moment: nothing acknowledged is lost, nothing is there in halves, views
are what their definitions give.

BELVEDERE_CROWD sets how often somebody is killed or stopped (`make soak-crowd`).
"""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from belvedere.epochs import lease
from belvedere.inspection import inspect
from tests.integration import crowd

ROUNDS = int(os.environ.get("BELVEDERE_CROWD", "6"))
ROLES = ["writer", "writer", "writer", "mover", "mover", "maintainer", "maintainer"]
_PATIENCE = 120  # seconds
GROUPS = "SELECT v, count(*) AS n FROM t GROUP BY v"


class Member:
    """A process, and a new one when that is killed."""

    def __init__(self, path: Path, role: str, dice: random.Random, crowd: Crowd) -> None:
        self.path, self.role, self.dice, self.crowd = path, role, dice, crowd
        self.errors: list[str] = []
        self.is_stopped = False
        self.start()

    def start(self) -> None:
        name, seed = f"m{self.crowd.new_name()}", str(self.dice.random())
        command = [sys.executable, crowd.__file__, str(self.path), self.role, name, seed]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.reading = threading.Thread(target=self._read)
        self.reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, ""):
            self.crowd.heard.put(line.split())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def kill(self) -> None:
        self.process.kill()
        self.reading.join()
        _, errors = self.process.communicate()
        self.errors += errors.splitlines()[-1:]
        self.is_stopped = False


class Crowd:
    def __init__(self, path: Path, dice: random.Random) -> None:
        self.heard: queue.Queue[list[str]] = queue.Queue()
        self.may_be: dict[str, set[int]] = {}  # values of a row that was tried
        self.must_be: set[str] = set()
        self._names = 0
        self.members = [Member(path, role, dice, self) for role in ROLES]

    def new_name(self) -> int:
        self._names += 1
        return self._names

    def hear(self, lines: int) -> None:
        """Wait for what its members say."""
        for _ in range(lines):
            self.note(self._next())

    def _next(self) -> list[str]:
        """All may be waiting for one that is stopped."""
        for _ in range(_PATIENCE):
            try:
                return self.heard.get(timeout=1)
            except queue.Empty:
                for member in self.members:
                    member.go_on()
        raise TimeoutError("nobody says anything any more")

    def note(self, words: list[str]) -> None:
        if words[0] not in ("try", "done"):
            return
        number = int(words[1])
        for row in words[2:]:
            if words[0] == "try":
                self.may_be.setdefault(row, set()).add(number)
            else:
                self.may_be[row] = {number}
                self.must_be.add(row)

    def end(self) -> None:
        for member in self.members:
            member.kill()
        while not self.heard.empty():
            self.note(self.heard.get())


@contextmanager
def gathered(path: Path, dice: random.Random) -> Iterator[Crowd]:
    crowd = Crowd(path, dice)
    try:
        yield crowd
    finally:
        crowd.end()


def disturb(crowd: Crowd, dice: random.Random) -> None:
    member = dice.choice(crowd.members)
    if member.is_stopped:
        member.go_on()
    elif dice.random() < 0.3:
        member.stop()  # it goes on later, or is killed, also by others (rule R10)
    else:
        member.kill()
        member.start()


@pytest.mark.slow
def test_a_crowd_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    dice = random.Random(ROUNDS)
    with crowd.opened(str(tmp_path)) as db:
        for name in ("t", "accounts"):
            key = "STRING" if name == "t" else "INT"
            db.sql(f"CREATE TABLE {name} (id {key} PRIMARY KEY, v INT)")
        db.sql(f"CREATE MATERIALIZED VIEW groups AS {GROUPS}")
        db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(v) AS s FROM accounts")
        db.table("accounts").put_many([{"id": i, "v": 100} for i in range(crowd.ACCOUNTS)])
    with gathered(tmp_path, dice) as members:
        for _ in range(ROUNDS):
            members.hear(dice.randrange(20, 120))
            disturb(members, dice)
    assert [error for member in members.members for error in member.errors] == []
    assert inspect(tmp_path).findings == ()
    with crowd.opened(str(tmp_path)) as db:
        lease.clear(db.store)  # a killed one may have it
        rows = {row["id"]: row["v"] for row in db.sql("SELECT id, v FROM t").to_pylist()}
        assert members.must_be <= rows.keys() <= members.may_be.keys()
        assert {row for row, v in rows.items() if v not in members.may_be[row]} == set()
        db.catch_up()
        kept = Counter(tuple(row.items()) for row in db.view("groups").scan())
        assert kept == Counter(tuple(row.items()) for row in db.sql(GROUPS).to_pylist())
        assert list(db.view("total").scan()) == [{"s": 100 * crowd.ACCOUNTS}]
