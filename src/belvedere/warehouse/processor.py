"""Drives a machine and its queries over sources that have two channels: a log, and answers.

    received(transaction)    what is durable in the spool
    reached(source, place)   nothing more happened up to there
    answered(subquery, ...)  rows that a source has found, and what they show

Both return what is to be done: subqueries to be sent, actions to be applied, in this order. The
paper has one channel per source, on which an answer comes before the changes that it does not show
and after those that it shows. Two guards around each answer make two channels equal to that:

    fresh (a)  ask again, until the answer shows all that had been received when it was asked for
    wait  (b)  use it when all that it shows has been received

What an answer has shown needs not be looked for again. A source that is not asked for long is asked
for nothing, so that the list of what no answer has shown stays short.

Like the machine, this has no threads, no clock and no input or output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from belvedere.warehouse.evaluation import Choose, Evaluation, Leg, Wanted, first
from belvedere.warehouse.machine import Apply, Ask, Machine, Step, Term, Transaction
from belvedere.warehouse.rows import Row, Shape
from belvedere.warehouse.rules import ALL, Rules

UNSEEN = 1_000  # transactions of a source that no answer has shown, before it is asked for nothing

_LOOK = 0  # no query of a machine: these begin with 1

Covers: TypeAlias = Callable[[str, str, str], bool]  # source, position, other: is it at or behind?


@dataclass(frozen=True, slots=True)
class Subquery:
    """What one source is asked for; `incarnation` tells processes apart that asked."""

    incarnation: str
    number: int
    query: int
    leg: Leg

    @property
    def source(self) -> str:
        return self.leg.source

    @property
    def wanted(self) -> Sequence[Wanted]:
        return self.leg.wanted


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: rows per member (some perhaps twice, as several terms have asked for them),
    whether it shows a transaction, and the position from which on all that it shows was received.
    """

    rows: Mapping[int, Sequence[Row]]
    shows: Callable[[str], bool]
    end: str


Todo: TypeAlias = Subquery | Apply


@dataclass(slots=True)
class _Channel:
    """What was received from a source, and the answers that wait for more."""

    position: str | None = None
    unseen: dict[str, None] = field(default_factory=dict)  # that no answer has shown yet
    waiting: list[tuple[Subquery, Found]] = field(default_factory=list)
    looks: bool = False  # is asked for nothing


class Processor:
    def __init__(
        self,
        shape: Shape,
        machine: Machine,
        covers: Covers,
        incarnation: str = "",
        begin: Apply | None = None,
        choose: Choose = first,
        rules: Rules = ALL,
        unseen: int = UNSEEN,
    ) -> None:
        self.shape, self.machine, self.rules = shape, machine, rules
        self._most_unseen = unseen
        self.incarnation = incarnation
        self._covers, self._choose = covers, choose
        self._numbers = count(1)
        self._open: dict[int, Evaluation] = {}
        self._sent: dict[int, tuple[str, ...]] = {}  # what had been received then, not seen yet
        self._channels = {s: self._channel(s, begin or Apply(())) for s in shape.sources}
        self.asked = 0

    def _channel(self, source: str, begin: Apply) -> _Channel:
        """From where the last process has come. A transaction that it has applied without asking
        may still be hidden from queries: an answer must show it as well.
        """
        unseen = begin.unseen.get(source, ()) if self.rules.remember_unseen else ()
        return _Channel(begin.covered.get(source), dict.fromkeys(unseen))

    @property
    def open_queries(self) -> int:
        return len(self._open)

    def received(self, transaction: Transaction) -> list[Todo]:
        channel = self._channels[transaction.source]
        channel.position = transaction.position
        channel.unseen[transaction.id] = None
        todo = self._carry_out(self.machine.received(transaction))
        return [*todo, *self._use_waiting(transaction.source), *self._look(transaction.source)]

    def due(self) -> list[Todo]:
        """It is time for a batch, where batches are of a time."""
        return self._carry_out(self.machine.due())

    def reached(self, source: str, position: str) -> list[Todo]:
        self._channels[source].position = position
        return self._use_waiting(source)

    def answered(self, subquery: Subquery, found: Found) -> list[Todo]:
        if self.rules.incarnations and subquery.incarnation != self.incarnation:
            return []
        had = self._sent.pop(subquery.number, None)
        if had is None:
            return []
        if self.rules.fresh and not self._is_fresh(subquery.source, had, found):
            return [self._send(subquery)]
        channel = self._channels[subquery.source]
        if subquery.query == _LOOK:
            channel.looks = False
            return []
        if self.rules.wait and not self._has_reached(subquery.source, found.end):
            channel.waiting.append((subquery, found))
            return []
        return self._use(subquery, found)

    # ---------------------------------------------------------------- guards

    def _is_fresh(self, source: str, had: Iterable[str], found: Found) -> bool:
        """What one snapshot shows, every later one shows: it needs not be looked for again."""
        unseen = self._channels[source].unseen
        missing = False
        for transaction in had:
            if found.shows(transaction):
                unseen.pop(transaction, None)
            else:
                missing = True
        return not missing

    def _unseen(self) -> dict[str, tuple[str, ...]]:
        return {s: tuple(c.unseen) for s, c in self._channels.items() if c.unseen}

    def _has_reached(self, source: str, end: str) -> bool:
        position = self._channels[source].position
        return position is not None and self._covers(source, position, end)

    def _use_waiting(self, source: str) -> list[Todo]:
        channel = self._channels[source]
        held, channel.waiting = channel.waiting, []
        todo: list[Todo] = []
        for subquery, found in held:
            if self._has_reached(source, found.end):
                todo += self._use(subquery, found)
            else:
                channel.waiting.append((subquery, found))
        return todo

    def _look(self, source: str) -> list[Todo]:
        """Ask for nothing, which tells what is shown."""
        channel = self._channels[source]
        if channel.looks or len(channel.unseen) < self._most_unseen:
            return []
        channel.looks = True
        return [self._send(Subquery(self.incarnation, 0, _LOOK, Leg(source, (), ())))]

    # ---------------------------------------------------------------- queries

    def _send(self, subquery: Subquery) -> Subquery:
        sent = replace(subquery, number=next(self._numbers))
        self._sent[sent.number] = tuple(self._channels[sent.source].unseen)
        self.asked += 1
        return sent

    def _sends(self, evaluation: Evaluation, legs: Iterable[Leg]) -> list[Todo]:
        number = evaluation.query.number
        return [self._send(Subquery(self.incarnation, 0, number, leg)) for leg in legs]

    def _use(self, subquery: Subquery, found: Found) -> list[Todo]:
        evaluation = self._open.get(subquery.query)
        if evaluation is None:
            return []

        def rows(term: Term, member: int) -> Iterable[Row]:
            once = dict.fromkeys(found.rows[member])
            return self.machine.found(evaluation.query, term, member, once)

        legs = evaluation.go_on(subquery.leg, rows)
        if evaluation.done:
            return self._carry_out(self._answer(evaluation))
        between = self._carry_out(self.machine.partly(evaluation.query))
        return [*between, *self._sends(evaluation, legs)]

    def _answer(self, evaluation: Evaluation) -> list[Step]:
        self._open.pop(evaluation.query.number, None)
        return self.machine.answered(evaluation.query, evaluation.answers)

    def _carry_out(self, steps: Iterable[Step]) -> list[Todo]:
        """A query that needs no source is answered at once, which may lead to further steps."""
        todo: list[Todo] = []
        left = deque(steps)
        while left:
            match left.popleft():
                case Apply() as apply:
                    todo.append(replace(apply, unseen=self._unseen()))
                case Ask(query):
                    evaluation = Evaluation(self.shape, query, self._choose)
                    if evaluation.done:
                        left.extendleft(reversed(self._answer(evaluation)))
                    else:
                        self._open[query.number] = evaluation
                        todo += self._sends(evaluation, evaluation.start())
        return todo
