"""C-Strobe: one batch after the other, each with the view as it was at the end of the batch.

A batch is a transaction, or `every` of them, or all that have come when it is due (then it is
periodic). Its deletions go to the view by
key. V<U> of its insertions is asked; answers may show later transactions, so

    what was deleted later  may be missing:  asked again with the deleted rows in its place,
                                             and so on, as that answer may miss others
    what was inserted later may be too much: taken out in the end (line 16)

Rows keep all columns until then: of two rows that look equal in the view only one may be new. With
batches of one transaction the view is complete, if none is global; with closed cuts it is strong
for global ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from belvedere.warehouse.cuts import WHEN_DUE, positions, take
from belvedere.warehouse.machine import (
    DELETE,
    INSERT,
    Action,
    AddRows,
    Answers,
    Apply,
    Ask,
    DeleteKeys,
    Query,
    Step,
    Term,
    Transaction,
    Update,
    substituted,
)
from belvedere.warehouse.rows import Combination, Key, Row, Shape
from belvedere.warehouse.rules import ALL, Rules


@dataclass(frozen=True, slots=True)
class _Open:
    """An open query. Its answer may miss rows of a member that were deleted later: those from this
    place in the list of later updates on.
    """

    query: Query
    since: tuple[int, ...]


class CStrobe:
    def __init__(
        self, shape: Shape, positions: Mapping[str, str], every: int = 1, rules: Rules = ALL
    ) -> None:
        self.shape, self.rules, self.every = shape, rules, every
        self._numbers = count(1)
        self._covered = dict(positions)
        self._queue: list[Transaction] = []
        self._batch: list[Transaction] = []  # the one that is worked at
        self._is_due = every != WHEN_DUE
        self._later: list[Update] = []  # received after the batch, in order
        self._open: dict[int, _Open] = {}
        self._delta: dict[Combination, None] = {}
        self._earlier: list[Update] = []  # kept for a rule that is switched off

    def received(self, transaction: Transaction) -> list[Step]:
        self._queue.append(transaction)
        if self._batch:
            self._later += transaction.updates
            return []
        return self._begin()

    @property
    def is_held(self) -> bool:
        """Whether something has come that is taken when it is due."""
        return bool(self._queue) and not self._batch and not self._is_due

    def due(self) -> list[Step]:
        self._is_due = True
        return [] if self._batch else self._begin()

    def found(self, query: Query, term: Term, member: int, rows: Iterable[Row]) -> Iterable[Row]:
        return rows

    def partly(self, query: Query) -> list[Step]:
        return []

    def answered(self, query: Query, answers: Answers) -> list[Step]:
        """Lines 11 to 15."""
        done = self._open.pop(query.number)
        self._delta.update(dict.fromkeys(c for answer in answers for c in answer))
        steps: list[Step] = list(self._compensate(done)) if self.rules.compensate else []
        return steps if self._open else [self._finish(), *self._begin()]

    # ---------------------------------------------------------------- a batch

    def _begin(self) -> list[Step]:
        """Batches, until one has to wait for an answer."""
        steps: list[Step] = []
        while not self._batch and self._choose():
            inserted = [u for _, u in self._net().values() if u.sign == INSERT]
            if inserted:
                terms = tuple(substituted(self.shape, inserted))
                steps.append(self._ask(terms, (0,) * len(self.shape.members)))
            else:
                steps.append(self._finish())
        return steps

    def _choose(self) -> bool:
        if not self._is_due:
            return False
        self._batch, self._queue = take(self._queue, self.every, self.rules.closed_cuts)
        self._later = [u for t in self._queue for u in t.updates]
        self._is_due = not self._batch or self.every != WHEN_DUE
        return bool(self._batch)

    def _net(self) -> dict[tuple[int, Key], tuple[Update, Update]]:
        """Per key that the batch touches, the first update and the last."""
        net: dict[tuple[int, Key], tuple[Update, Update]] = {}
        for update in (u for t in self._batch for u in t.updates):
            place = (update.member, self.shape.members[update.member].key_of(update.row))
            first, _ = net.get(place, (update, update))
            net[place] = (first, update)
        return net

    def _finish(self) -> Apply:
        """Lines 16 and 17."""
        apply = Apply(self._actions(), self._covered | positions(self._batch))
        self._covered = dict(apply.covered)
        if not self.rules.later_deletions:
            self._earlier += [u for t in self._batch for u in t.updates]
        self._batch, self._delta = [], {}
        return apply

    def _actions(self) -> tuple[Action, ...]:
        deleted: dict[int, set[Key]] = {}
        for (member, key), (first, _) in self._net().items():
            if first.sign == DELETE:
                deleted.setdefault(member, set()).add(key)
        rows = tuple(dict.fromkeys(map(self.shape.show, self._without_later())))
        actions: list[Action] = [DeleteKeys(m, frozenset(keys)) for m, keys in deleted.items()]
        return (*actions, AddRows(rows)) if rows else tuple(actions)

    # ---------------------------------------------------------------- compensation

    def _ask(self, terms: tuple[Term, ...], since: tuple[int, ...]) -> Ask:
        query = Query(next(self._numbers), terms)
        self._open[query.number] = _Open(query, since)
        return Ask(query)

    def _compensate(self, done: _Open) -> Iterable[Ask]:
        """A query per member that lost rows, with these in its place.

        A combination may miss rows of several members: the query for the first of them is followed
        by others for those behind it, so each set of members is asked for once.
        """
        now = len(self._later)
        for member, since in enumerate(done.since):
            rows = [u.row for u in self._later[since:] if (u.member, u.sign) == (member, DELETE)]
            terms = tuple(
                _with(term, member, rows)
                for term in done.query.terms
                if term.given[member] is None and rows
            )
            if terms:
                yield self._ask(terms, (*(now,) * (member + 1), *done.since[member + 1 :]))

    def _without_later(self) -> list[Combination]:
        """Line 16: an insertion that was received after the batch is taken out, unless a deletion
        of the same row was received between.
        """
        if not self.rules.compensate:
            return list(self._delta)
        earlier = [u for t in self._batch for u in t.updates]
        history = [] if self.rules.later_deletions else [*self._earlier, *earlier]
        protected = {self._mark(u.member, u.row) for u in history if u.sign == DELETE}
        gone = set()
        for update in self._later:
            mark = self._mark(update.member, update.row)
            if update.sign == DELETE:
                protected.add(mark)
            elif mark not in protected:
                gone.add(mark)
        return [c for c in self._delta if not self._has_one_of(c, gone)]

    def _has_one_of(self, combination: Combination, gone: set[tuple[int, Row]]) -> bool:
        rows = enumerate(combination)
        return bool(gone) and any(self._mark(m, row) in gone for m, row in rows if row is not None)

    def _mark(self, member: int, row: Row) -> tuple[int, Row]:
        if self.rules.whole_rows:
            return member, row
        return member, tuple(row[column] for m, column in self.shape.shown if m == member)


def _with(term: Term, member: int, rows: Iterable[Row]) -> Term:
    given = term.given
    return replace(term, given=(*given[:member], tuple(dict.fromkeys(rows)), *given[member + 1 :]))
