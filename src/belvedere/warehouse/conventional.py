"""Conventional maintenance: every update and every answer goes to the view as it comes.

Right in one database, wrong over several: an answer may show what was not received yet, or show no
more what was. It is here to show that: a view may become wrong and stay so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from belvedere.warehouse.machine import (
    INSERT,
    AddRows,
    Answers,
    Apply,
    Ask,
    DeleteKeys,
    Query,
    Step,
    Term,
    Transaction,
    substituted,
)
from belvedere.warehouse.rows import Row, Shape


class Conventional:
    def __init__(self, shape: Shape, positions: Mapping[str, str]) -> None:
        self.shape = shape
        self._numbers = count(1)
        self._received = dict(positions)

    def received(self, transaction: Transaction) -> list[Step]:
        self._received[transaction.source] = transaction.position
        steps: list[Step] = []
        for update in transaction.updates:
            if update.sign == INSERT:
                terms = tuple(substituted(self.shape, [update]))
                steps.append(Ask(Query(next(self._numbers), terms)))
            else:
                key = self.shape.members[update.member].key_of(update.row)
                gone = DeleteKeys(update.member, frozenset([key]))
                steps.append(Apply((gone,), dict(self._received)))
        return steps or [Apply((), dict(self._received))]

    @property
    def is_held(self) -> bool:
        return False

    def due(self) -> list[Step]:
        return []

    def found(self, query: Query, term: Term, member: int, rows: Iterable[Row]) -> Iterable[Row]:
        return rows

    def partly(self, query: Query) -> list[Step]:
        return []

    def answered(self, query: Query, answers: Answers) -> list[Step]:
        rows = dict.fromkeys(self.shape.show(c) for answer in answers for c in answer)
        return [Apply((AddRows(tuple(rows)),), dict(self._received))]
