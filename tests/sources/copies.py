"""Copies of relations, kept from what is followed: every change must fit to the copy."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from belvedere.sources.base import (
    Event,
    Monitor,
    Question,
    Relation,
    RelationChange,
    Source,
    SourceTransaction,
    Stopped,
)

PATIENCE = 120.0
Rows = dict[Any, dict[str, Any]]


class Copy:
    """The rows of relations by key, as of a position."""

    def __init__(self, relations: Sequence[Relation], position: str) -> None:
        self.relations = {relation.name: relation for relation in relations}
        self.rows: dict[str, Rows] = {name: {} for name in self.relations}
        self.transactions: list[SourceTransaction] = []
        self.stopped: list[Stopped] = []
        self.position = position

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            self.position = event.position
            if isinstance(event, Stopped):
                self.stopped.append(event)
            elif isinstance(event, SourceTransaction):
                self.transactions.append(event)
                for change in event.changes:
                    self._apply(change)

    def _apply(self, change: RelationChange) -> None:
        relation, rows = self.relations[change.relation], self.rows[change.relation]
        assert change.before.schema == change.after.schema == relation.schema.arrow
        for row in change.before.to_pylist():
            assert shown(rows.pop(key_of(relation, row))) == shown(row)
        for row in change.after.to_pylist():
            assert key_of(relation, row) not in rows
            rows[key_of(relation, row)] = row


def shown(row: dict[str, Any]) -> str:
    """So that NaN is itself and -0.0 is not 0.0."""
    return repr(row)


def key_of(relation: Relation, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in relation.schema.key)


def by_key(relation: Relation, tables: Iterator[pa.Table]) -> Rows:
    found = [row for table in tables for row in table.to_pylist()]
    rows = {key_of(relation, row): row for row in found}
    assert len(rows) == len(found)
    return rows


def rows_there(source: Source, relation: Relation) -> Rows:
    answer = source.ask([Question(relation, relation.schema.names)])
    return by_key(relation, answer.tables[0])


def same_rows(one: Rows, other: Rows) -> bool:
    return {k: shown(r) for k, r in one.items()} == {k: shown(r) for k, r in other.items()}


def poll_until(source: Source, monitor: Monitor, copy: Copy, position: str) -> None:
    """Take what comes until all before a position is in the copy; all of it is confirmed."""
    deadline = time.monotonic() + PATIENCE
    while not source.covers(copy.position, position):
        copy.take(monitor.poll(1.0))
        monitor.confirm(copy.position)
        assert time.monotonic() < deadline, "the log did not come so far"


def catch_up(source: Source, copy: Copy) -> None:
    """Follow from where the copy is to the end of the log."""
    monitor = source.follow(list(copy.relations.values()), copy.position)
    try:
        poll_until(source, monitor, copy, source.position())
    finally:
        monitor.close()
