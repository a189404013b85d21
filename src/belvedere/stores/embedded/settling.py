"""Base rows in runs: how far the log is settled, slot by slot.

A write is in the log when it returns, and nowhere else. Later its rows are *settled*: brought into
runs of their table, in the slot of their key. A *mark* says up to which position that is done.

    00000000 'b' slot u16 position u64              a mark: all operations on rows of this slot
                                                    before this position are in runs; and how many
                                                    bytes had been logged by then (u64)
    00000000 'r' table u32 slot u16 position u64    the runs of a table in a slot, settled up to
                                                    this position (`run_lists.py`)
    00000000 'm' "rows"                             rows as of positions below are gone (u64)

Rows as of position p are those of the newest mark at or below p, and what the log says from there
to p. So they are a function of the log alone: whoever settles, and how often, makes no difference.
Tasks of epochs do it with what they have read anyway; who trims the log does the rest; and if no
epochs run, writers do it themselves before the log gets too long.

A table that was not written between two marks has no run list of the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from struct import Struct

from belvedere.encoding import slots_of
from belvedere.encoding.order import distinct
from belvedere.errors import Stale
from belvedere.libraries import pa
from belvedere.stores.base import RowChanges, Slot, TableId
from belvedere.stores.embedded import dropping, log, run_lists, runs
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.places import BasePlace, NewRun, name_files
from belvedere.stores.embedded.run_files import SMALL_BYTES, RunWriter
from belvedere.stores.embedded.runs import Batch
from belvedere.stores.embedded.sections import Ints
from belvedere.types import Position

_MARK = b"\0\0\0\0b"
_ROWS = b"\0\0\0\0mrows"
_NUMBER = Struct(">Q")
# operations, and bytes of them, that are left in the log: to settle them costs waiting for the disk
FEW, FEW_BYTES = 8192, 8 << 20
_LAST = (1 << 63) - 1
Number = Callable[[], int]


def mark_at(transaction: Transaction, slot: Slot, position: Position) -> Position:
    """Up to where a slot is settled, as of a position."""
    start = _MARK + slot.to_bytes(2, "big")
    with transaction.cursor() as cursor:
        behind = cursor.set_range(start + (position + 1).to_bytes(8, "big"))
        found = cursor.prev() if behind else cursor.last()
        is_own = found and cursor.key().startswith(start)
        return int.from_bytes(cursor.key()[-8:], "big") if is_own else 0


def newest_mark(transaction: Transaction, slot: Slot) -> Position:
    return mark_at(transaction, slot, _LAST)


def put_mark(transaction: Transaction, slot: Slot, position: Position, logged: int) -> None:
    """With the bytes that were logged so far."""
    key = _mark_key(slot, position)
    transaction.put(key, seal(key, _NUMBER.pack(logged)))


def _mark_key(slot: Slot, position: Position) -> bytes:
    return _MARK + slot.to_bytes(2, "big") + position.to_bytes(8, "big")


def waiting(transaction: Transaction, slot: Slot, logged: int) -> tuple[Position, int]:
    """The newest mark of a slot, and how many bytes were logged since it was made."""
    mark = newest_mark(transaction, slot)
    key = _mark_key(slot, mark)
    stored = transaction.get(key)
    then = int(_NUMBER.unpack(opened(key, stored))[0]) if stored else 0
    return mark, logged - then


def row_size(transaction: Transaction, slots: int) -> Callable[[TableId], int]:
    """About how many bytes a settled row of a table has, with its key."""

    @cache
    def of_table(table: TableId) -> int:
        owners = (run_lists.owner_of(table, slot) for slot in range(slots))
        records, size = map(
            sum, zip(*(run_lists.count(transaction, o) for o in owners), strict=True)
        )
        return int(size // records) if records else 0

    return of_table


def floor(transaction: Transaction) -> Position:
    stored = transaction.get(_ROWS)
    return int(_NUMBER.unpack(opened(_ROWS, stored))[0]) if stored else 0


def put_floor(transaction: Transaction, position: Position) -> None:
    transaction.put(_ROWS, seal(_ROWS, _NUMBER.pack(position)))


def check_kept(transaction: Transaction, position: Position) -> None:
    kept = floor(transaction)
    if position < kept:
        raise Stale(f"rows are kept as of positions from {kept} on: {position} is too old")


# ---------------------------------------------------------------- settling


@dataclass(frozen=True, slots=True)
class Logged:
    """Operations on a table, in their order, and the slot of each."""

    table: TableId
    operations: Batch
    slots: Ints

    def of(self, slot: Slot) -> Batch:
        mine = pa.array(self.slots == slot)
        keys, values = self.operations
        return keys.filter(mine), values.filter(mine)


Read = Callable[[Position, Position], Sequence[Logged]]


def reading(place: BasePlace, slots: int) -> Read:
    """Reads a stretch of the log once, for all slots that are settled one after the other."""

    @lru_cache(maxsize=1)
    def read(low: Position, high: Position) -> list[Logged]:
        found: dict[TableId, list[Batch]] = {}
        for block in log.read(place.log, low, high):
            if block.passes:
                continue  # they are rows of nobody
            found.setdefault(block.table, []).append((block.keys, block.values))
        return [_with_slots(table, runs.joined(parts), slots) for table, parts in found.items()]

    return read


def _with_slots(table: TableId, operations: Batch, slots: int) -> Logged:
    return Logged(table, operations, slots_of(operations[0], slots))


@dataclass(frozen=True, slots=True)
class Settling:
    """One slot, from its mark to a position."""

    place: BasePlace
    slot: Slot
    read: Read
    catalog: Number

    def from_log(self, high: Position) -> None:
        """With what the log says."""
        while (low := self.place.environment.read(self._mark)) < high:
            try:
                changes = [self._change(low, each) for each in self.read(low, high)]
            except Stale:
                if self.place.environment.read(self._mark) == low:
                    raise
                continue  # somebody else has settled it, and trimmed the log
            self.from_changes(low, high, changes)

    def _mark(self, transaction: Transaction) -> Position:
        return newest_mark(transaction, self.slot)

    def _change(self, mark: Position, logged: Logged) -> RowChanges:
        mine, values = logged.of(self.slot)
        keys, _, last = distinct(mine)
        before = runs.get_many(self._runs(logged.table, mark), keys)
        return RowChanges(logged.table, keys, before, values.take(pa.array(last)))

    def _runs(self, table: TableId, mark: Position) -> tuple[runs.Run, ...]:
        owner = run_lists.owner_of(table, self.slot)
        return self.place.load(lambda t: run_lists.as_of(t, owner, mark), owner)

    def from_changes(self, low: Position, high: Position, changes: Sequence[RowChanges]) -> None:
        """With net changes of this slot from `low` to `high`; nothing if `low` is not its mark."""
        written = [each for each in changes if len(each.keys)]
        while self.place.environment.read(self._mark) == low:
            writer = RunWriter(self.place.files, high, small=SMALL_BYTES)
            prepare = partial(self._prepare, writer, low, written)
            name = partial(self._name, writer, low, high)
            if name_files(self.place, writer, prepare, name, frees=True):
                return

    def _prepare(
        self, writer: RunWriter, low: Position, changes: Sequence[RowChanges]
    ) -> list[NewRun]:
        """Files with the rows, and those of older runs that are written again with them."""
        owners = [run_lists.owner_of(each.table, self.slot) for each in changes]
        bases = self.place.environment.read(
            lambda transaction: [run_lists.as_of(transaction, owner, low) for owner in owners]
        )
        return [
            NewRun(self.place, writer, owner, (each.keys, each.after, each.before), base)
            for each, owner, base in zip(changes, owners, bases, strict=True)
        ]

    def _name(
        self,
        writer: RunWriter,
        low: Position,
        high: Position,
        transaction: Transaction,
        new: Sequence[NewRun],
    ) -> bool:
        if self._mark(transaction) != low:
            return False  # somebody else has settled this slot
        alive = [each for each in new if not _is_dead(transaction, each)]
        if any(run_lists.as_of(transaction, each.owner, low) != each.base for each in alive):
            return False
        for each in alive:
            each.apply(transaction, high)
        for section, data in writer.small.items():
            run_lists.put_section(transaction, section, data)
        put_mark(transaction, self.slot, high, self.place.log.file.last()[0])
        log.note(transaction, self.place.log.file, self.catalog())
        return True


def _is_dead(transaction: Transaction, run: NewRun) -> bool:
    return dropping.is_dead(transaction, run_lists.table_of(run.owner))


# ---------------------------------------------------------------- collecting


def collect(place: BasePlace, slots: int, keep: Position, catalog: int) -> Position:
    """Forget rows as of positions below `keep`; returns up to where the log is not needed for rows
    any more.
    """

    def body(transaction: Transaction) -> tuple[Position, Position]:
        kept = max(keep, floor(transaction))
        marks = {slot: mark_at(transaction, slot, kept) for slot in range(slots)}
        for slot, mark in marks.items():
            _remove_marks_below(transaction, slot, mark)
        for owner, position in _replaced(transaction, marks):
            run_lists.remove(transaction, owner, position)
        place.forget_unnamed(transaction)
        put_floor(transaction, kept)
        log.note(transaction, place.log.file, catalog)
        return kept, min(marks.values())

    kept, settled = place.environment.write(body, frees=True)
    place.remove_unnamed(kept)
    return settled


def _remove_marks_below(transaction: Transaction, slot: Slot, mark: Position) -> None:
    start = _MARK + slot.to_bytes(2, "big")
    with transaction.cursor() as cursor:
        found = cursor.set_range(start)
        while found and cursor.key() < _mark_key(slot, mark):
            found = cursor.delete() and bool(cursor.key())


def _replaced(
    transaction: Transaction, marks: dict[Slot, Position]
) -> list[tuple[run_lists.Owner, Position]]:
    """Run lists that are followed by one that is not above the mark of its slot."""
    known = [(owner, position) for owner, position, _ in run_lists.every(transaction)]
    return [
        before
        for before, (owner, position) in pairwise(known)
        if before[0] == owner and position <= marks[run_lists.slot_of(owner)]
    ]
