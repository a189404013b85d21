"""Strobe, T-Strobe and G-Strobe: the view changes when no query is open.

An insertion asks V<U> and remembers the deletions that come meanwhile (`pending`): they are taken
out of the answer. A deletion needs no query, as view rows carry the keys of all relations. Actions
wait in a list (AL) and are applied together in a quiet moment, when each source's state that the
view then shows is the one after all that was received from it.

    Strobe      an update is a unit:      strong if every transaction is one update
    T-Strobe    a transaction is a unit:  strong if every transaction is at one source
    G-Strobe    and the view waits while a global transaction is half received: strong
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from belvedere.warehouse.knowledge import Knowledge, row_of, use
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
    without,
)
from belvedere.warehouse.rows import Key, Row, Shape
from belvedere.warehouse.rules import ALL, Rules


class Strobe:
    def __init__(
        self,
        shape: Shape,
        positions: Mapping[str, str],
        rules: Rules = ALL,
        knowledge: Knowledge | None = None,
    ) -> None:
        self.shape, self.rules = shape, rules
        self._knowledge = knowledge
        self._numbers = count(1)
        self._open: dict[int, Query] = {}  # UQS
        self._pending: dict[int, list[tuple[int, Key]]] = {}
        self._idle: set[int] = set()  # open queries that no source works at
        self._actions: list[Action] = []  # AL
        self._received = dict(positions)

    def received(self, transaction: Transaction) -> list[Step]:
        """Strobe does not know which updates belong together: it may apply between them, and then
        covers the transaction only with the last one.
        """
        steps: list[Step] = []
        for update in transaction.updates[:-1]:
            steps += [*self._take([update]), *self._apply()]
        self._received[transaction.source] = transaction.position
        return [*steps, *self._take(transaction.updates[-1:]), *self._apply()]

    @property
    def is_held(self) -> bool:
        return False

    def due(self) -> list[Step]:
        return []

    def found(self, query: Query, term: Term, member: int, rows: Iterable[Row]) -> Iterable[Row]:
        return rows

    def partly(self, query: Query) -> list[Step]:
        """The query stays open, though no source works at it just now."""
        if self.rules.whole_answers or query.number not in self._open:
            return []
        held, self._open = self._open, {n: q for n, q in self._open.items() if n != query.number}
        steps = self._apply()
        self._open = held
        return steps

    def answered(self, query: Query, answers: Answers) -> list[Step]:
        del self._open[query.number]
        gone = self._pending.pop(query.number)
        whole = [c for answer in answers for c in answer]
        if self.rules.pending:
            whole = without(self.shape, whole, gone)
        self._actions.append(AddRows(tuple(dict.fromkeys(map(self.shape.show, whole)))))
        return self._apply()

    def _take(self, updates: Iterable[Update]) -> list[Step]:
        """Deletions come first: an insertion of the same key in one unit makes a new row of it."""
        updates = list(updates)
        self._delete([u for u in updates if u.sign == DELETE])
        inserted = [u for u in updates if u.sign == INSERT]
        return [self._ask(inserted)] if inserted else []

    def _delete(self, updates: list[Update]) -> None:
        keys: dict[int, set[Key]] = {}
        for u in updates:
            keys.setdefault(u.member, set()).add(self.shape.members[u.member].key_of(u.row))
        for member, gone in keys.items():
            for pending in self._pending.values():
                pending += [(member, key) for key in gone]
            self._actions.append(DeleteKeys(member, frozenset(gone)))

    def _ask(self, updates: list[Update]) -> Ask:
        terms = substituted(self.shape, updates)
        if self._knowledge is not None:
            terms = [part for term in terms for part in use(self.shape, term, self._known)]
        query = Query(next(self._numbers), tuple(terms))
        self._open[query.number] = query
        self._pending[query.number] = []
        return Ask(query)

    def _known(self, member: int, key: Key) -> Row | None:
        """A row of a member as the view has it, unless its deletion waits to be applied."""
        waits = (a.member == member and key in a.keys for a in self._deletions())
        if self._knowledge is None or (self.rules.waiting_deletions and any(waits)):
            return None
        view_row = self._knowledge.row(member, key)
        return None if view_row is None else row_of(self.shape, member, view_row)

    def _deletions(self) -> list[DeleteKeys]:
        return [action for action in self._actions if isinstance(action, DeleteKeys)]

    def _apply(self) -> list[Step]:
        if self._open or not self._ready():
            return []
        actions, self._actions = tuple(self._actions), []
        return [Apply(actions, dict(self._received))]

    def _ready(self) -> bool:
        return True


class TStrobe(Strobe):
    """The parts of a global transaction count as transactions of their own."""

    def received(self, transaction: Transaction) -> list[Step]:
        self._received[transaction.source] = transaction.position
        return [*self._take(self._net(transaction.updates)), *self._apply()]

    def _net(self, updates: Iterable[Update]) -> list[Update]:
        """Line 4: without insertions that the transaction takes back itself."""
        kept: list[Update | None] = []
        inserted: dict[object, int] = {}
        for update in updates:
            mark = self._mark(update)
            if update.sign == DELETE and mark in inserted:
                kept[inserted.pop(mark)] = None
                continue
            if update.sign == INSERT:
                inserted[mark] = len(kept)
            kept.append(update)
        return [u for u in kept if u is not None]

    def _mark(self, update: Update) -> object:
        """What an insertion and its deletion agree on."""
        key = self.shape.members[update.member].key_of(update.row)
        return (update.member, key) if self.rules.same_relation else key


class GStrobe(TStrobe):
    """Processes parts in the order of their sources; only the applying waits. To hold a part while
    later transactions of its source go on would reorder the updates of a key.
    """

    def __init__(
        self,
        shape: Shape,
        positions: Mapping[str, str],
        rules: Rules = ALL,
        knowledge: Knowledge | None = None,
    ) -> None:
        super().__init__(shape, positions, rules, knowledge)
        self._missing: dict[str, set[str]] = {}  # global transactions that are half received
        self._held: dict[str, list[Transaction]] = {}

    @property
    def waits_for(self) -> dict[str, set[str]]:
        """Per global transaction, the sources whose parts have not come."""
        return {gid: set(missing) for gid, missing in self._missing.items()}

    def received(self, transaction: Transaction) -> list[Step]:
        if transaction.parts:
            self._note(transaction)
            if not self.rules.parts_as_they_come:
                return self._hold(transaction)
        return super().received(transaction)

    def _note(self, transaction: Transaction) -> None:
        missing = self._missing.setdefault(transaction.gid, set(transaction.parts))
        missing.discard(transaction.source)
        if not missing:
            del self._missing[transaction.gid]

    def _hold(self, transaction: Transaction) -> list[Step]:
        held = self._held.setdefault(transaction.gid, [])
        held.append(transaction)
        if len(held) < len(transaction.parts):
            return []
        del self._held[transaction.gid]
        for part in held:
            self._received[part.source] = part.position
        updates = [u for part in held for u in part.updates]
        return [*self._take(self._net(updates)), *self._apply()]

    def _ready(self) -> bool:
        return not self._missing
