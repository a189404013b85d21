"""As of: every source's answer is taken back, as it arrives, to the position that is wanted.

    d(R1 >< ... >< Rn) = sum over i of  R1' >< .. >< R(i-1)' >< dRi >< R(i+1) >< .. >< Rn

R are relations before a batch, R' after it. A source answers with what it has now. The spool knows
the row before of every later change, so per key the first change behind the wanted position says
what the row was there. No query compensates another, no keys are needed in the view, deletions are
computed like insertions, and the result does not depend on what the sources did meanwhile.

Complete with batches of one transaction, if none is global; strong with closed cuts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

from belvedere.warehouse.cuts import WHEN_DUE, positions, take
from belvedere.warehouse.machine import (
    DELETE,
    INSERT,
    Answers,
    Apply,
    Ask,
    Query,
    Step,
    Term,
    Transaction,
    Update,
    Weigh,
    substituted,
)
from belvedere.warehouse.rows import Key, Row, Shape
from belvedere.warehouse.rules import ALL, Rules


class AsOf:
    def __init__(
        self, shape: Shape, positions: Mapping[str, str], every: int = 1, rules: Rules = ALL
    ) -> None:
        self.shape, self.rules, self.every = shape, rules, every
        self._numbers = count(1)
        self._covered = dict(positions)
        self._queue: list[Transaction] = []
        self._batch: list[Transaction] = []  # the one that is worked at
        self._is_due = every != WHEN_DUE

    def received(self, transaction: Transaction) -> list[Step]:
        self._queue.append(transaction)
        return [] if self._batch else self._begin()

    @property
    def is_held(self) -> bool:
        """Whether something has come that is taken when it is due."""
        return bool(self._queue) and not self._batch and not self._is_due

    def due(self) -> list[Step]:
        self._is_due = True
        return [] if self._batch else self._begin()

    def found(self, query: Query, term: Term, member: int, rows: Iterable[Row]) -> Iterable[Row]:
        """Members before the changed one as of the batch's end, those behind it as of its begin."""
        later = self._queue if member < term.changed else [*self._batch, *self._queue]
        before = self._first_rows(member, later)
        key_of = self.shape.members[member].key_of
        kept = (row for row in rows if key_of(row) not in before)
        return chain(kept, (row for row in before.values() if row is not None))

    def partly(self, query: Query) -> list[Step]:
        return []

    def answered(self, query: Query, answers: Answers) -> list[Step]:
        weights: Counter[Row] = Counter()
        for term, answer in zip(query.terms, answers, strict=True):
            for combination in answer:
                weights[self.shape.show(combination)] += term.weight
        return [self._finish(weights), *self._begin()]

    def _begin(self) -> list[Step]:
        """Batches, until one has to wait for an answer."""
        steps: list[Step] = []
        while not self._batch and self._choose():
            net = list(self._net())
            if not net:
                steps.append(self._finish({}))
                continue
            gone = substituted(self.shape, (u for u in net if u.sign == DELETE), DELETE)
            come = substituted(self.shape, (u for u in net if u.sign == INSERT), INSERT)
            steps.append(Ask(Query(next(self._numbers), (*gone, *come))))
        return steps

    def _choose(self) -> bool:
        if not self._is_due:
            return False
        self._batch, self._queue = take(self._queue, self.every, self.rules.closed_cuts)
        self._is_due = not self._batch or self.every != WHEN_DUE
        return bool(self._batch)

    def _net(self) -> Iterator[Update]:
        """What the batch takes away and what it brings, without what it leaves as it was."""
        for member in range(len(self.shape.members)):
            before = self._first_rows(member, self._batch)
            after = self._last_rows(member)
            for key, row in before.items():
                now = after[key]
                if row is not None and row != now:
                    yield Update(DELETE, member, row)
                if now is not None and row != now:
                    yield Update(INSERT, member, now)

    def _first_rows(
        self, member: int, transactions: Iterable[Transaction]
    ) -> dict[Key, Row | None]:
        """Per key that they touch, the row before their first change."""
        rows: dict[Key, Row | None] = {}
        for update in self._updates(member, transactions):
            key = self.shape.members[member].key_of(update.row)
            rows.setdefault(key, update.row if update.sign == DELETE else None)
        return rows

    def _last_rows(self, member: int) -> dict[Key, Row | None]:
        """Per key that the batch touches, the row after its last change."""
        key_of = self.shape.members[member].key_of
        return {
            key_of(u.row): u.row if u.sign == INSERT else None
            for u in self._updates(member, self._batch)
        }

    def _updates(self, member: int, transactions: Iterable[Transaction]) -> Iterator[Update]:
        return (u for t in transactions for u in t.updates if u.member == member)

    def _finish(self, weights: Mapping[Row, int]) -> Apply:
        self._covered |= positions(self._batch)
        self._batch = []
        changed = {row: weight for row, weight in weights.items() if weight}
        return Apply((Weigh(changed),) if changed else (), dict(self._covered))
