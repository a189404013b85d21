"""A process that writes the soak's tables with HBase's client alone, told by lines on its input.

python -m tests.hbase.soak_writer DIRECTORY SEED

`write TIME` begins, `pause` answers with the number of operations so far when none is under way.
Clients that set time stamps use TIME and the millisecond behind it. So there are two versions of a
cell at most that can be deleted one by one, and older ones are never written again: what a record
keeps is then all that HBase can show, and a compaction may forget what was deleted before TIME.
"""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster
from tests.hbase.soak_tables import TABLES, SoakTable
from tests.hbase.users import Mutation, User

_PAUSE = 0.03  # seconds between two operations of a thread: the machine has other work
_NOW = (1 << 63) - 1  # what HBase's client sends when the server is to set the time stamp
_NEVER = threading.Event()


class Hand(threading.Thread):
    """Writes one table, one operation after the other, while nobody else has its lock."""

    def __init__(self, user: User, table: SoakTable, seed: int) -> None:
        super().__init__(name=f"hand of {table.name}", daemon=True)
        self._user, self._table = user, table
        self._dice = random.Random(f"{seed} {table.name}")
        self.lock, self.time, self.count = threading.Lock(), 0, 0

    def run(self) -> None:
        throwable = java_class("java.lang.Throwable")
        while not _NEVER.wait(_PAUSE):
            with self.lock:
                self._one(throwable)

    def _one(self, throwable: Any) -> None:
        """One operation, sent again until it is acknowledged."""
        row = self._dice.choice(self._table.rows)
        draw = self._timed if self._table.timed else self._plain
        mutations = draw()
        while True:
            try:
                self._user.mutate(self._table.name, row, mutations)
                break
            except throwable:
                continue
        self.count += 1

    def _plain(self) -> list[Mutation]:
        """Whole rows, some columns, deletes of rows and columns; HBase sets the time stamps."""
        columns = list(self._table.columns)
        draw = self._dice.random()
        if draw < 0.2:
            return [("family", b"", _NOW, b"")]
        if draw < 0.3:
            return [("column", self._dice.choice(columns).encode(), _NOW, b"")]
        some = columns if draw < 0.6 else self._dice.sample(columns, 1)
        return [("put", name.encode(), _NOW, self._value(name)) for name in some]

    def _timed(self) -> list[Mutation]:
        """Puts and markers of all kinds, also backwards in time."""
        found: dict[tuple[str, bytes, int], Mutation] = {}
        kinds = ["put"] * 8 + ["version", "column", "family", "family version"]
        for _ in range(self._dice.randint(1, 3)):
            kind = self._dice.choice(kinds)
            name = self._dice.choice(list(self._table.columns))
            place = b"" if kind.startswith("family") else name.encode()
            at = self.time + self._dice.randint(0, 1)
            value = self._value(name) if kind == "put" else b""
            found[kind, place, at] = (kind, place, at, value)
        return list(found.values())

    def _value(self, column: str) -> bytes:
        """Few values, so that rows meet in joins and groups."""
        if column == "customer":
            return f"c{self._dice.randint(0, 70):02d}".encode()
        if column in ("region", "status"):
            return self._dice.choice([b"north", b"south", b"east", b"west"])
        return b"%d" % self._dice.randint(-5, 100)


def main(directory: str, seed: str) -> None:
    user = User(Cluster(directory))
    hands = [Hand(user, table, int(seed)) for table in TABLES]
    for hand in hands:
        hand.lock.acquire()
        hand.start()
    for line in sys.stdin:
        command, *time = line.split()
        for hand in hands:
            if command == "write":
                hand.time = int(time[0])
                hand.lock.release()
            else:
                hand.lock.acquire()
        print(sum(hand.count for hand in hands), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
