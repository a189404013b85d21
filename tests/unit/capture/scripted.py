"""A database in memory that can be followed: a specification of `sources.base`, whose log and whose
answers are two channels.

A commit is in the log first and seen by queries later, or is seen by queries long before it is
given to whoever follows: a test says when (`show`, `deliver`). Transactions that are hidden have no
row in common, as with locks on rows. Everything else of the contract that may go wrong can be asked
for: a server that is not reachable, a log that is forgotten, relations that stop.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.sources.base import (
    Answer,
    Event,
    Lag,
    Part,
    Question,
    Quiet,
    Relation,
    RelationChange,
    SourceTransaction,
    Stopped,
)
from belvedere.types import Schema

Rows = dict[Any, dict[str, Any]]  # by key; None for a row that is gone
Changes = dict[str, dict[Any, dict[str, Any] | None]]


@dataclass
class Entry:
    """One transaction of the log, or a relation that stops."""

    number: int
    changes: Changes
    before: dict[str, Rows]
    stopped: str = ""
    part: Part | None = None

    @property
    def name(self) -> str:
        return f"t{self.number}"

    def touches(self, other: Entry) -> bool:
        return any(self.changes[r].keys() & other.changes.get(r, {}).keys() for r in self.changes)


@dataclass
class Server:
    """`rows` is what is committed, whether queries see it yet or not."""

    schemas: dict[str, Schema]
    log: list[Entry] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)
    hidden: list[Entry] = field(default_factory=list)
    published: dict[str, int] = field(default_factory=dict)  # from which place of the log on
    delivered: int = 0  # places of the log that followers may read
    forgotten: int = 0
    confirmed: int = 0
    is_down: bool = False
    is_removed: bool = False
    is_locked: bool = False  # for us: the password was changed, say

    def __post_init__(self) -> None:
        self.rows = {name: {} for name in self.schemas}

    def commit(self, changes: Changes, hidden: bool = False, part: Part | None = None) -> Entry:
        before: dict[str, Rows] = {}
        for relation, rows in changes.items():
            known = self.rows[relation]
            before[relation] = {key: known[key] for key in rows if key in known}
        entry = Entry(len(self.log), changes, before, part=part)
        # who waits for the lock on a row goes on when it is released
        self.hidden = [other for other in self.hidden if not other.touches(entry)]
        for relation, rows in changes.items():
            for key, row in rows.items():
                if row is None:
                    self.rows[relation].pop(key, None)
                else:
                    self.rows[relation][key] = row
        self.log.append(entry)
        if hidden:
            self.hidden.append(entry)
        return entry

    def truncate(self, relation: str) -> None:
        self.hidden = [e for e in self.hidden if relation not in e.changes]
        entry = Entry(len(self.log), {}, {}, relation)
        self.log.append(entry)
        self.rows[relation] = {}

    def show(self) -> None:
        self.hidden.clear()

    def deliver(self, entries: int | None = None) -> None:
        end = len(self.log)
        self.delivered = end if entries is None else min(end, self.delivered + entries)

    def seen(self, relation: str) -> Rows:
        """The rows that a query sees."""
        rows = dict(self.rows[relation])
        for entry in reversed(self.hidden):
            for key in entry.changes.get(relation, {}):
                rows.pop(key, None)
            rows |= entry.before.get(relation, {})
        return rows


class ScriptedSource:
    kind = "scripted"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.is_closed = False

    def _check(self) -> None:
        if self.server.is_down:
            raise SourceUnreachable("the server of the script is down: let it come up")
        if self.server.is_locked:
            raise SourceError("the password of the script is wrong: give another one")

    def relations(self) -> list[str]:
        self._check()
        return sorted(self.server.schemas)

    def describe(self, name: str) -> Relation:
        self._check()
        if name not in self.server.schemas:
            raise SourceError(f"there is no relation {name}: the script has others")
        return Relation(name, self.server.schemas[name])

    def prepare(self, relations: Sequence[Relation]) -> str:
        self._check()
        server = self.server
        for relation in relations:
            if self.describe(relation.name).schema != relation.schema:
                raise SourceError(f"{relation.name} has other columns")
        server.is_removed = False
        # those that began before have to end, so that the log has all of them or nothing
        new = {r.name for r in relations} - server.published.keys()
        if new:
            server.show()
        names = {r.name for r in relations}
        server.published = {n: at for n, at in server.published.items() if n in names}
        server.published |= dict.fromkeys(new, len(server.log))
        if new:
            server.confirmed = max(server.confirmed, server.forgotten)
            return str(len(server.log))
        return str(max(server.published.values(), default=0))

    def follow(self, relations: Sequence[Relation], position: str) -> ScriptedMonitor:
        self._check()
        if int(position) < self.server.forgotten:
            raise SourceLost("the script has forgotten its log: ALTER SOURCE ... RELOAD")
        return ScriptedMonitor(self.server, {r.name: r for r in relations}, int(position))

    def position(self) -> str:
        self._check()
        return str(len(self.server.log))

    def covers(self, position: str, other: str) -> bool:
        return int(position) >= int(other)

    def ask(self, questions: Sequence[Question]) -> Answer:
        self._check()
        server = self.server
        marker = {"end": len(server.log), "hidden": [e.name for e in server.hidden]}
        tables = [list(server.seen(q.relation.name).values()) for q in questions]
        answers = tuple(
            _parts(pa.Table.from_pylist(rows, schema=q.relation.schema.arrow))
            for rows, q in zip(tables, questions, strict=True)
        )
        return Answer(json.dumps(marker), str(len(server.log)), answers)

    def shows(self, marker: str, transaction: str) -> bool:
        found = json.loads(marker)
        return int(transaction[1:]) < found["end"] and transaction not in found["hidden"]

    def lag(self, position: str) -> Lag:
        self._check()
        behind = len(self.server.log) - int(position)
        return Lag(behind, len(self.server.log) - self.server.confirmed)

    def remove(self) -> None:
        self._check()
        self.server.is_removed = True
        self.server.published.clear()

    def close(self) -> None:
        self.is_closed = True


class ScriptedMonitor:
    """Gives a few entries at a time; between transactions of others it is quiet."""

    def __init__(self, server: Server, relations: dict[str, Relation], position: int) -> None:
        self.server, self.relations, self.at = server, dict(relations), position

    def poll(self, timeout: float) -> Sequence[Event]:
        if self.server.is_down:
            raise SourceUnreachable("the connection to the server of the script is gone")
        events: list[Event] = []
        while self.at < self.server.delivered and len(events) < 3:
            entry = self.server.log[self.at]
            self.at += 1
            events.append(self._event(entry))
        return events or [Quiet(str(self.at))]

    def _event(self, entry: Entry) -> Event:
        position = str(self.at)
        if entry.stopped:
            if self.relations.pop(entry.stopped, None) is None:
                return Quiet(position)
            return Stopped(entry.stopped, position, f"{entry.stopped} was truncated")
        changes = tuple(
            self._change(entry, name)
            for name in entry.changes
            if name in self.relations and entry.number >= self.server.published.get(name, 1 << 60)
        )
        if not changes:
            return Quiet(position)
        return SourceTransaction(entry.name, position, 1000.0 + entry.number, changes, entry.part)

    def _change(self, entry: Entry, name: str) -> RelationChange:
        schema = self.relations[name].schema.arrow
        before = pa.Table.from_pylist(list(entry.before[name].values()), schema=schema)
        rows = [row for row in entry.changes[name].values() if row is not None]
        return RelationChange(name, before, pa.Table.from_pylist(rows, schema=schema))

    def confirm(self, position: str) -> None:
        self.server.confirmed = self.server.forgotten = max(
            self.server.confirmed, min(int(position), len(self.server.log))
        )

    def close(self) -> None:
        self.at = 1 << 60


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Several tables, as an answer over a connection has them."""
    yield from (rows.slice(start, 3) for start in range(0, max(rows.num_rows, 1), 3))
