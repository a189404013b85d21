"""Base tables: a write goes to the log, a read sees the log and what of it is settled.

Log and rows are in an environment of their own, so that view maintenance never holds the writers'
lock for long.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from belvedere.errors import Conflict, Stale, StoreError, StoreFull, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, Operations, RowChanges, Slot, TableId
from belvedere.stores.embedded import blocks, dropping, log, records, run_lists, settling
from belvedere.stores.embedded.base_rows import EmbeddedSnapshot, Settled, extend
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.merging_thread import Merging
from belvedere.stores.embedded.places import Place
from belvedere.stores.embedded.settling import Settling
from belvedere.types import Position, Vector

_LARGEST_BLOCK = 128 << 20  # bytes of a log block with more than one operation
_LOOKED_UP = 64  # rows at a time whose sizes are looked up
_WHEN_FULL = 0.5  # seconds of removing between two tries of a write that found no room
# Operations that may wait in the log: a read has to look at all of them. Writers that have written
# so many, and nobody else has settled them, do it themselves.
MOST_WAITING, MOST_BYTES = 1 << 19, 64 << 20
# operations of this process, and bytes of them, between two looks at how many wait
_LOOK_AFTER, _LOOK_AFTER_BYTES = 1 << 16, 32 << 20
_TRIES = 20  # a position may be forgotten while its rows are looked up


class EmbeddedBase:
    def __init__(self, place: Place, slots: int, catalog: Callable[[], int]) -> None:
        """`catalog` tells the number of the catalog's last transaction."""
        self._place, self._environment = place, place.environment
        self._slots, self._catalog = slots, catalog
        # operations and bytes of this process since it looked at how many wait
        self._written = self._written_bytes = 0
        self._now: tuple[int, EmbeddedSnapshot | None] = -1, None  # as of an LMDB transaction
        self._before: EmbeddedSnapshot | None = None  # as of some position
        self._lock = threading.Lock()
        self._merging = Merging([place])
        _all.add(self)

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def close(self) -> None:
        self._merging.stop()

    def streams(self) -> tuple[str, ...]:
        return (log.STREAM,)

    # ------------------------------------------------------------ writing

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        return self.write_all([Operations(table, keys, values, before_images)], unless_after)

    def write_all(
        self, operations: Sequence[Operations], unless_after: Vector | None = None
    ) -> Vector:
        now = time.time()
        parts = [_Part.of(part, now) for part in operations]
        known = None if unless_after is None else unless_after[log.STREAM]

        def body(transaction: Transaction) -> Position:
            for part in parts:
                part.check(transaction, known)
            if not written:
                return 0
            return log.append(transaction, value, written, self._catalog())

        self._check_replaced(operations)
        written = [(part.table, part.rows) for part in parts if part.rows]
        value = _joined([part.block for part in parts if part.rows])
        return self._write(body, sum(rows for _, rows in written), len(value))

    def _check_replaced(self, operations: Sequence[Operations]) -> None:
        """An epoch that takes these operations reads the rows before them. How large they are is
        looked up only if rows of these tables are large.
        """

        def about(transaction: Transaction) -> int:
            row_size = settling.row_size(transaction, self._slots)
            return sum(len(part.keys) * row_size(part.table) for part in operations)

        rows = sum(len(part.keys) for part in operations)
        if rows < 2 or self._environment.read(about) <= _LARGEST_BLOCK:
            return
        size = 0
        with self.snapshot() as snapshot:
            for part in operations:
                for start in range(0, len(part.keys), _LOOKED_UP):
                    some = part.keys.slice(start, _LOOKED_UP)
                    size += snapshot.get_many(part.table, some).nbytes
        if size > _LARGEST_BLOCK:
            raise _too_large(f"{rows:,} operations with the rows that they replace")

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Vector:
        block = blocks.encode_one(table, time.time(), (key, value))

        def body(transaction: Transaction) -> Position:
            dropping.check_alive(transaction, table)
            return log.append(transaction, block, ((table, 1),), self._catalog())

        return self._write(body, 1, len(block))

    def _write(self, body: Callable[[Transaction], Position], rows: int, size: int) -> Vector:
        """Rows of dropped tables make room for new ones, if there is no other."""
        self._written += rows
        self._written_bytes += size
        if self._written >= _LOOK_AFTER or self._written_bytes >= _LOOK_AFTER_BYTES:
            self._written = self._written_bytes = 0
            self._place.check_room()
            self._settle_backlog()
        while True:
            try:
                return Vector({log.STREAM: self._environment.write(body)})
            except StoreFull:
                if self._environment.read(dropping.pending) is None:
                    raise
            self.reclaim(_WHEN_FULL)

    # ------------------------------------------------------------ reading

    def snapshot(self) -> AbstractContextManager[EmbeddedSnapshot]:
        number, known = self._now
        if known is None or number != self._environment.mark():
            known = self._newest()
        return nullcontext(known)

    def _newest(self) -> EmbeddedSnapshot:
        def look(transaction: Transaction) -> tuple[int, Position, int]:
            end, _ = log.ends(transaction)
            return transaction.id(), end, run_lists.changed(transaction)

        def read() -> EmbeddedSnapshot:
            number, end, changed = self._environment.read(look)
            found = self._read(self._now[1], end, changed)
            self._now = number, found
            return found

        with self._lock:
            return _unless_overtaken(read)

    def as_of(self, vector: Vector) -> AbstractContextManager[EmbeddedSnapshot]:
        position = vector[log.STREAM]

        def read() -> EmbeddedSnapshot:
            changed = self._environment.read(run_lists.changed)
            self._before = self._read(self._before, position, changed)
            return self._before

        with self._lock:
            return nullcontext(_unless_overtaken(read))

    def _read(
        self, known: EmbeddedSnapshot | None, position: Position, changed: int
    ) -> EmbeddedSnapshot:
        """The rows as of a position, with what is known from another one."""
        is_settled = known is not None and known.settled.changed == changed
        if known is not None and is_settled and known.position == position:
            return known
        settled = Settled.load(self._place, self._slots, position)
        if known is None:
            tail = extend(None, settled, self._place, position)
            return EmbeddedSnapshot(position, settled, tail)
        if known.settled.changed == settled.changed and known.settled.marks == settled.marks:
            settled = known.settled
        tail = extend(known.tail, settled, self._place, position)
        return known.following(position, settled, tail)

    def end(self) -> Vector:
        return Vector({log.STREAM: self._environment.read(log.ends)[0]})

    def barrier(self) -> Vector:
        return self.end()

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        self._check(stream)
        return log.read(self._environment, low, high)

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        self._check(stream)
        high = self._environment.read(lambda transaction: log.cut(transaction, low, rows))
        if size is None or high == low:
            return high

        def within(transaction: Transaction) -> Position:
            row_size = settling.row_size(transaction, self._slots)
            return log.within(transaction, low, high, size, row_size)

        return self._environment.read(within, buffers=True)

    def count(self, table: TableId) -> int | None:
        def settled(transaction: Transaction) -> int:
            owners = (run_lists.owner_of(table, slot) for slot in range(self._slots))
            return sum(run_lists.count(transaction, owner)[0] for owner in owners)

        with self.snapshot() as snapshot:
            return self._environment.read(settled) + snapshot.waiting(table)

    def room(self) -> tuple[int, int]:
        used = self._environment.used_bytes + self._place.files.used_bytes()
        return used, self._environment.max_size

    # ------------------------------------------------------------ settling, trimming, dropping

    def settle(self, slot: Slot, low: Vector, high: Vector, changes: Sequence[RowChanges]) -> None:
        start, end = low[log.STREAM], high[log.STREAM]
        mark, size = self._environment.read(lambda t: settling.waiting(t, slot))
        is_worth_it = end - mark >= settling.FEW or size >= settling.FEW_BYTES
        if mark > start or not is_worth_it:
            return
        if mark == start:
            self._settling(slot).from_changes(start, end, changes)
        else:  # epochs that were too small have left it to this one
            self._settling(slot).from_log(end)

    def _settle_backlog(self) -> None:
        def waiting(transaction: Transaction) -> tuple[Position, int, int]:
            end, _ = log.ends(transaction)
            slots = [settling.waiting(transaction, slot) for slot in range(self._slots)]
            mark, size = min(slots)
            return end, end - mark, size

        end, rows, size = self._environment.read(waiting)
        if rows >= MOST_WAITING or size >= MOST_BYTES:
            self._settle_all(end)
            self._merging.go_on()  # else their number grows until a pipeline comes

    def _settle_all(self, position: Position) -> None:
        for slot in range(self._slots):
            self._settling(slot).from_log(position)

    def _settling(self, slot: Slot) -> Settling:
        return Settling(self._place, slot, self._slots, self._catalog)

    def trim(self, stream: str, position: Position) -> None:
        """The log is what rows are made of: those that wait are settled first."""
        self._check(stream)
        position = self._environment.read(lambda t: log.boundary_below(t, position))
        self._settle_all(position)
        settled = settling.collect(self._place, self._slots, position, self._catalog())
        while self._environment.write(
            lambda transaction: log.trim_some(transaction, settled, self._catalog()), frees=True
        ):
            pass  # a few blocks at a time: this takes the writers' lock

    def drop(self, table: TableId) -> None:
        def body(transaction: Transaction) -> None:
            dropping.mark_dead(transaction, table)
            for slot in range(self._slots):
                run_lists.forget(transaction, run_lists.owner_of(table, slot))
            run_lists.note_change(transaction)
            log.note(transaction, self._catalog())

        self._environment.write(body, frees=True)

    def reclaim(self, seconds: float) -> bool:
        if self._environment.read(dropping.pending) is None:
            return False
        more = dropping.until(
            seconds, lambda: self._environment.write(dropping.reclaim_some, frees=True)
        )
        if not more:
            self._environment.write(self._remove_files, frees=True)
        return more

    def _remove_files(self, transaction: Transaction) -> None:
        self._place.remove_unnamed(transaction, log.ends(transaction)[0])

    def _check(self, stream: str) -> None:
        if stream != log.STREAM:
            raise StoreError(
                f"there is no stream {stream!r}: the only stream of this store is {log.STREAM!r}"
            )


def _unless_overtaken(read: Callable[[], EmbeddedSnapshot]) -> EmbeddedSnapshot:
    """What was found may be settled, trimmed and forgotten while it is looked up: then again."""
    for _ in range(_TRIES):
        try:
            return read()
        except Stale as error:
            stale = error
    raise stale


_all: weakref.WeakSet[EmbeddedBase] = weakref.WeakSet()


def _after_fork() -> None:
    for base in list(_all):
        base.after_fork()


os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True, slots=True)
class _Part:
    """Operations on one table, as a block of the log: made without the writers' lock."""

    table: TableId
    rows: int
    block: bytes

    @classmethod
    def of(cls, operations: Operations, now: float) -> _Part:
        table, keys, values = operations.table, operations.keys, operations.values
        records.check_columns(keys, values)
        records.check_not_null(keys)
        return cls(table, len(keys), _log_block(table, now, keys, values) if len(keys) else b"")

    def check(self, transaction: Transaction, known: Position | None) -> None:
        """Raise if the table is gone, or was written at or after a position."""
        dropping.check_alive(transaction, self.table)
        if known is not None and log.table_end(transaction, self.table) > known:
            raise Conflict(
                f"table {self.table} was written after position {known}: read again and retry"
            )


def _log_block(table: TableId, now: float, *columns: pa.BinaryArray) -> bytes:
    """A block that an epoch can take as a whole."""
    # as Arrow makes of more than 2 GiB
    whole = not any(isinstance(column, pa.ChunkedArray) for column in columns)
    size = sum(column.nbytes for column in columns)
    if len(columns[0]) > 1 and not (whole and size <= _LARGEST_BLOCK):
        raise _too_large(f"{len(columns[0]):,} operations")
    return blocks.encode(table, now, columns)


def _joined(values: Sequence[bytes]) -> bytes:
    """The blocks of a transaction as one value."""
    if len(values) == 1:
        return values[0]
    if sum(map(len, values)) > _LARGEST_BLOCK:
        raise _too_large(f"a transaction over {len(values)} tables: its operations")
    return b"".join(values)


def _too_large(what: str) -> TooLarge:
    return TooLarge(f"{what} are more than {_LARGEST_BLOCK >> 20} MiB: write fewer")
