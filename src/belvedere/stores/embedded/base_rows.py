"""Base rows as of a position: what is settled, and the tail of the log in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.encoding import slots_of
from belvedere.encoding.slots import slot_hash, slot_hash_one
from belvedere.errors import Dropped, StoreError
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.base import Slot, TableId
from belvedere.stores.embedded import dropping, log, run_lists, runs, settling
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.places import TRIES, BasePlace, Place
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Batch, Run, RunRef
from belvedere.stores.embedded.sections import MISSING, Get
from belvedere.stores.embedded.tail import Tail
from belvedere.types import Position, Vector

_BATCH = 100_000
FEW = 64  # keys that are found one by one in less time


class _Lists(NamedTuple):
    """What one transaction says of settled rows."""

    changed: int
    marks: tuple[Position, ...]
    dropped: frozenset[TableId]
    refs: dict[Owner, tuple[RunRef, ...]]
    small: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled rows of all tables, as of the marks of the slots, all files mapped."""

    changed: int  # `run_lists.changed` when it was read
    marks: tuple[Position, ...]
    dropped: frozenset[TableId]
    by_owner: dict[Owner, tuple[Run, ...]]

    @property
    def low(self) -> Position:
        """From here on the log is needed."""
        return min(self.marks)

    def runs(self, table: TableId, slot: Slot) -> tuple[Run, ...]:
        return self.by_owner.get(run_lists.owner_of(table, slot), ())

    @classmethod
    def load(cls, place: Place, slots: int, position: Position) -> Settled:
        """The newest at or below a position; Stale if that is gone."""
        before = -1
        for _ in range(TRIES):
            found = place.environment.read(lambda t: _read_lists(t, place, slots, position))
            try:
                opened = {
                    owner: place.files.open_runs(refs, found.small)
                    for owner, refs in found.refs.items()
                }
            except FileNotFoundError as error:
                if found.changed == before:
                    owner = _owner_of_file(found, error.filename)
                    raise place.missing(error, owner) from error
                before = found.changed
                continue
            return cls(found.changed, found.marks, found.dropped, opened)
        raise StoreError(
            f"the runs in {place.environment.path} change faster than they can be opened"
        )


def _read_lists(transaction: Transaction, place: Place, slots: int, position: Position) -> _Lists:
    settling.check_kept(transaction, position)
    marks = tuple(settling.mark_at(transaction, slot, position) for slot in range(slots))
    newest = {
        owner: data
        for owner, at, data in run_lists.every(transaction)
        if at <= marks[run_lists.slot_of(owner)]
    }
    refs = {owner: run_lists.decode(data, place.where(owner)) for owner, data in newest.items()}
    every = [run for some in refs.values() for run in some]
    small = run_lists.sections_of(transaction, every)
    dropped = dropping.dead_tables(transaction)
    return _Lists(run_lists.changed(transaction), marks, dropped, refs, small)


def _owner_of_file(found: _Lists, path: str) -> Owner:
    for owner, some in found.refs.items():
        if any(path.endswith(ref.file) for run in some for ref in run):
            return owner
    return run_lists.owner_of(0, 0)


def extend(tail: Tail | None, settled: Settled, place: BasePlace, position: Position) -> Tail:
    """The tail behind what is settled, up to a position; from one that is known, if that can be."""
    if tail is None or not tail.low <= settled.low <= tail.high <= position:
        tail = Tail(settled.low, settled.low)
    tail = tail.behind(settled.low)
    return tail.longer(log.stretches(place.log, tail.high, position))


@dataclass(frozen=True, slots=True)
class _OneTable:
    """How single rows of a table are found: in the tail, then in their slot."""

    tail: Sequence[Get]
    slots: Sequence[Sequence[Get]]


class EmbeddedSnapshot:
    """All base rows as of a position. It holds no transaction: nothing of it ever changes."""

    def __init__(
        self,
        position: Position,
        settled: Settled,
        tail: Tail,
        tables: dict[TableId, _OneTable] | None = None,
    ) -> None:
        self.position, self.settled, self.tail = position, settled, tail
        self.vector = Vector({log.STREAM: position})
        self._tables = {} if tables is None else tables

    def following(self, position: Position, settled: Settled, tail: Tail) -> EmbeddedSnapshot:
        """Another one, which keeps what this one knows if that is still true."""
        is_same = settled is self.settled and tail.segments == self.tail.segments
        return EmbeddedSnapshot(position, settled, tail, self._tables if is_same else None)

    def _check(self, table: TableId) -> None:
        if table in self.settled.dropped:
            raise Dropped(table)

    # ------------------------------------------------------------ keys

    def get(self, table: TableId, key: bytes) -> bytes | None:
        known = self._tables.get(table)
        if known is None:
            known = self._look_up(table)
        found: bytes | None = self.tail.get_recent(table, key)
        if found is not MISSING:
            return found
        hashed = slot_hash_one(key)
        for get in known.tail:
            found = get(key, hashed)
            if found is not MISSING:
                return found
        for get in known.slots[hashed % len(known.slots)]:
            found = get(key, hashed)
            if found is not MISSING:
                return found
        return None

    def _look_up(self, table: TableId) -> _OneTable:
        self._check(table)
        slots = range(len(self.settled.marks))
        found = self._tables[table] = _OneTable(
            [run.get_one for run in self.tail.older_runs(table)],
            [[run.get_one for run in self.settled.runs(table, slot)] for slot in slots],
        )
        return found

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        self._check(table)
        if len(keys) <= FEW:
            return pa.array([self.get(table, key) for key in keys.to_pylist()], pa.binary())
        slots, hashes = len(self.settled.marks), slot_hash(keys)
        *recent, (_, wanted) = runs.find_many(
            self.tail.runs(table), keys, hashes, np.arange(len(keys))
        )
        found, place = list(recent), hashes[wanted] % np.uint32(slots)
        for slot in range(slots):
            mine = wanted.take(np.flatnonzero(place == slot))
            found += runs.find_many(self.settled.runs(table, slot), keys, hashes, mine)
        return runs.in_place(found)

    # ------------------------------------------------------------ ranges

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        self._check(table)
        slots = range(len(self.settled.marks))
        settled = [run for slot in slots for run in self.settled.runs(table, slot)]
        return runs.scan([*self.tail.runs(table), *settled], low, high, batch)

    def scan_slots(
        self, table: TableId, slots: Sequence[Slot], low: bytes, high: bytes | None
    ) -> Iterator[Batch]:
        self._check(table)
        settled = [run for slot in slots for run in self.settled.runs(table, slot)]
        tail = self.tail.runs(table)
        found = runs.scan([*tail, *settled], low, high, _BATCH)
        return self._only(found, slots) if tail else found

    def _only(self, batches: Iterator[Batch], slots: Sequence[Slot]) -> Iterator[Batch]:
        """The tail has rows of all slots."""
        for keys, values in batches:
            mask = pa.array(np.isin(slots_of(keys, len(self.settled.marks)), slots))
            if pc.any(mask).as_py():
                yield keys.filter(mask), values.filter(mask)

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        counted = 0
        for keys, values in self.scan(table, low, None, min(rows, _BATCH)):
            used = np.cumsum(_lengths(keys) + _lengths(values))
            within = min(int(np.searchsorted(used, size)) + 1, rows - counted)
            if within <= len(keys):
                return bytes(keys[within - 1].as_py()), counted + within
            counted, size = counted + len(keys), size - int(used[-1])
        return None, counted

    def waiting(self, table: TableId) -> int:
        """By how many rows a table grows when its tail is settled."""
        tail = self.tail.runs(table)
        grown = 0
        for keys, values in runs.scan(tail, b"", None, _BATCH, drop_deleted=False):
            settled = EmbeddedSnapshot(self.position, self.settled, Tail(0, 0))
            grown += settled.get_many(table, keys).null_count - values.null_count
        return grown


def _lengths(values: pa.BinaryArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.binary_length(values).to_numpy(zero_copy_only=False), np.int64)
