"""The monitor: messages become batches of whole transactions, batches become events.

A batch is what has come, up to some size, and ends between transactions. It is decoded relation by
relation, all transactions at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from belvedere.errors import SourceError
from belvedere.sources.base import (
    Event,
    Part,
    Quiet,
    Relation,
    RelationChange,
    SourceTransaction,
    Stopped,
)
from belvedere.sources.postgres import messages as m
from belvedere.sources.postgres.columns import Wire
from belvedere.sources.postgres.images import NotHeld, Wired, net_changes
from belvedere.sources.postgres.messages import Begun, Told
from belvedere.sources.postgres.places import name_transaction, read_position, write_position
from belvedere.sources.postgres.stream import Stream

_LOG = ord("w")
_BATCH_BYTES, _BATCH_ROWS = 16 << 20, 50_000
_ASK_SECONDS = 0.1

Resolve = Callable[[int, int], Wire]


@dataclass(slots=True)
class _Transaction:
    """`messages`: those that change rows, by the relation's number. `began`: what was before it."""

    begun: Begun
    began: int
    end: int = 0
    messages: dict[bytes, list[bytes]] = field(default_factory=dict)
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """A relation, and the number of its table, as the log has it."""

    number: bytes
    wired: Wired

    @property
    def name(self) -> str:
        return self.wired.relation.name


class PostgresMonitor:
    """Follows a slot. `stopped` are relations that cannot be followed from the beginning, and why;
    `parts` is the number of the table of parts of global transactions.
    """

    def __init__(
        self,
        stream: Stream,
        position: str,
        followed: Sequence[Followed],
        stopped: Mapping[str, str],
        parts: bytes | None,
        resolve: Resolve,
    ) -> None:
        self._stream, self._followed, self._resolve = stream, followed, resolve
        self._wanted = {each.number for each in followed}
        self._parts = parts
        self._given = self._place = read_position(position)
        self._stops = {name: (self._place, why) for name, why in stopped.items()}
        self._open: _Transaction | None = None
        self._whole: list[_Transaction] = []
        self._rows = self._bytes = 0
        self._failure: SourceError | None = None
        self._asked = time.monotonic()

    # ------------------------------------------------------------ the contract

    def poll(self, timeout: float) -> Sequence[Event]:
        deadline = time.monotonic() + timeout
        while True:
            self._receive()
            events = self._events()
            if events:
                return events
            if self._failure is not None:
                raise self._failure
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            self._speak()
            self._stream.wait(min(left, _ASK_SECONDS))

    def confirm(self, position: str) -> None:
        self._stream.report(read_position(position))

    def close(self) -> None:
        self._stream.close()

    # ------------------------------------------------------------ receiving

    def _receive(self) -> None:
        """Take what is there, until it is enough. A failure waits until what came is given out."""
        try:
            while self._open is not None or self._has_room():
                size, data = self._stream.get()
                if size > 0:
                    self._take(data)
                elif size < 0:
                    raise self._stream.ended()
                elif not self._stream.wait(0):
                    return
        except SourceError as error:
            self._failure = error

    def _has_room(self) -> bool:
        return self._rows < _BATCH_ROWS and self._bytes < _BATCH_BYTES

    def _take(self, data: memoryview) -> None:
        if data[0] != _LOG:
            self._take_keepalive(data)
            return
        kind = data[m.HEADER]
        if kind in (m.INSERT, m.UPDATE, m.DELETE):
            self._take_row(bytes(data))
        elif kind == m.BEGIN:
            self._open = _Transaction(m.read_begin(data), self._place)
        elif kind == m.COMMIT:
            self._take_commit(m.read_commit(data))
        elif kind == m.RELATION:
            self._compare(m.read_relation(bytes(data)))
        elif kind == m.TRUNCATE:
            for number in m.read_truncate(data):
                self._stop(number, "it was truncated, and the log does not tell which rows it had")

    def _take_row(self, message: bytes) -> None:
        assert self._open is not None
        relation = message[m.HEADER + 1 : m.HEADER + 5]
        if relation in self._wanted:
            self._open.messages.setdefault(relation, []).append(message)
            self._bytes += len(message)
        elif relation == self._parts and message[m.HEADER] == m.INSERT:
            self._open.part = read_part(message)

    def _take_commit(self, end: int) -> None:
        assert self._open is not None
        self._open.end = self._place = end
        self._rows += sum(map(len, self._open.messages.values()))
        if self._open.messages or self._open.part is not None:
            self._whole.append(self._open)
        self._open = None

    def _take_keepalive(self, data: memoryview) -> None:
        """Where the server is. Inside a transaction that says nothing about what came."""
        if self._open is None:
            self._place = max(self._place, int.from_bytes(data[1:9], "big"))
        if data[17]:
            self._stream.report(0)

    def _speak(self) -> None:
        """Now and then, so that the server knows that somebody is there, and says where it is."""
        now = time.monotonic()
        if now - self._asked >= _ASK_SECONDS:
            self._asked = now
            self._stream.report(0, ask=True)

    # ------------------------------------------------------------ what stops a relation

    def _compare(self, told: Told) -> None:
        """The log tells a relation's columns before its rows, and again when it was altered."""
        for each in self._followed:
            if each.number == told.number and not self._is_same(each.wired.relation, told):
                self._stop(told.number, "it was altered or renamed")

    def _is_same(self, relation: Relation, told: Told) -> bool:
        name = relation.name.rpartition(".")[2]
        if told.name not in (name, name.lower()):
            return False
        if tuple(column for column, _, _ in told.columns) != relation.schema.names:
            return False
        types = [self._resolve(kind, modifier).type for _, kind, modifier in told.columns]
        return types == [column.type for column in relation.schema.columns]

    def _stop(self, number: bytes, why: str) -> None:
        """What the open transaction did to it is not given out; what was before it is."""
        if number not in self._wanted:
            return
        self._wanted.discard(number)
        if self._open is not None:
            self._open.messages.pop(number, None)
        for each in self._followed:
            if each.number == number:
                self._stops[each.name] = (self._place, why)

    # ------------------------------------------------------------ giving out

    def _events(self) -> list[Event]:
        whole, self._whole = self._whole, []
        if self._open is None:
            self._rows = self._bytes = 0
        changes: list[list[RelationChange]] = [[] for _ in whole]
        for each in self._followed:
            for own, change in zip(changes, self._changes(each, whole), strict=False):
                own.extend([change] if change is not None else [])
        events = self._in_order(whole, changes)
        if self._place > self._given and self._open is None:
            events.append(Quiet(write_position(self._place)))
            self._given = self._place
        return events

    def _changes(
        self, each: Followed, whole: Sequence[_Transaction]
    ) -> list[RelationChange | None]:
        parts = [transaction.messages.get(each.number, []) for transaction in whole]
        if not any(parts):
            return []
        try:
            return net_changes(each.wired, parts)
        except NotHeld as error:  # of the whole batch then nothing is given out for it
            self._wanted.discard(each.number)
            if self._open is not None:
                self._open.messages.pop(each.number, None)
            self._stops[each.name] = (whole[0].began, str(error))
            return []

    def _in_order(
        self, whole: Sequence[_Transaction], changes: Sequence[Sequence[RelationChange]]
    ) -> list[Event]:
        """A relation stops before the first transaction that is behind its last position."""
        stops = sorted((place, name, why) for name, (place, why) in self._stops.items())
        self._stops = {}
        events: list[Event] = []
        for transaction, own in zip(whole, changes, strict=True):
            while stops and stops[0][0] < transaction.end:
                events.append(_stopped(*stops.pop(0)))
            if own or transaction.part is not None:
                events.append(_event(transaction, own))
                self._given = transaction.end
        return events + [_stopped(*stop) for stop in stops]


def _stopped(place: int, name: str, why: str) -> Stopped:
    return Stopped(name, write_position(place), why)


def _event(transaction: _Transaction, changes: Sequence[RelationChange]) -> SourceTransaction:
    begun = transaction.begun
    return SourceTransaction(
        name_transaction(begun.number, begun.commit),
        write_position(transaction.end),
        begun.time,
        tuple(changes),
        transaction.part,
    )


def read_part(message: bytes) -> Part:
    """The first two columns of a row of `belvedere_transactions`: a name, names of sources."""
    gid, names = m.read_texts(message, 2)
    sources = [name.strip() for name in names.strip("{}").split(",")]
    return Part(gid, tuple(name for name in sources if name))
