"""Base tables: a write goes to the log, a read sees the log and what of it is settled.

Log and rows are in an environment of their own, so that view maintenance never holds the writers'
lock for long.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from belvedere.errors import Conflict, Stale, StoreError, StoreFull, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import (
    AnyOperations,
    Expected,
    FewOperations,
    LogBlock,
    Operations,
    RowChanges,
    Slot,
    TableId,
    in_arrays,
)
from belvedere.stores.embedded import blocks, dropping, log, records, run_lists, settling
from belvedere.stores.embedded.base_rows import EmbeddedSnapshot, Settled, extend
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.expected import ExpectedRows
from belvedere.stores.embedded.merging_thread import Merging
from belvedere.stores.embedded.places import BasePlace
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
    def __init__(self, place: BasePlace, slots: int, catalog: Callable[[], int]) -> None:
        """`catalog` tells the number of the catalog's last transaction."""
        self._place, self._environment = place, place.environment
        self._log, self._file = place.log, place.log.file
        self._alive: tuple[int, set[TableId]] = -1, set()  # as of an LMDB transaction
        self._row_sizes: tuple[int, dict[TableId, int]] = -1, {}  # the same
        self._table_ends = log.TableEnds()
        self._slots, self._catalog = slots, catalog
        # operations and bytes of this process since it looked at how many wait; it looks before its
        # first write, as there may be many that write a little and end
        self._written, self._written_bytes = _LOOK_AFTER, 0
        # as of an LMDB transaction, and of an end of the log
        self._now: tuple[int, Position, EmbeddedSnapshot | None] = -1, -1, None
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
        self,
        operations: Sequence[AnyOperations],
        unless_after: Vector | None = None,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        now = time.time()
        parts = [_Part.of(part, now) for part in operations]
        tables = {part.table for part in parts} | {row.table for row in expected}
        known = None if unless_after is None else unless_after[log.STREAM]
        self._check_replaced(operations)
        value = _joined([part.block for part in parts if part.rows])

        def write(rows: ExpectedRows) -> Vector:
            def check(end: Position) -> None:
                self._check_all_alive(tables)
                if known is not None:
                    for part in parts:
                        self._check_unwritten(part.table, known, end)
                rows.check_since(end)

            return self._write(value, sum(part.rows for part in parts), check)

        return self._compared(expected, write)

    def _compared(
        self, expected: Sequence[Expected], write: Callable[[ExpectedRows], Vector]
    ) -> Vector:
        """What is expected is looked up before the lock, so that writers wait only for a look at
        what was appended since. That may be trimmed by then: again.
        """
        for _ in range(_TRIES):
            rows = ExpectedRows(self._log, expected)
            try:
                if expected:
                    with self.snapshot() as snapshot:
                        rows.check(snapshot)
                return write(rows)
            except Stale as error:
                stale = error
        raise stale

    def _check_all_alive(self, tables: Iterable[TableId]) -> None:
        for table in tables:
            self._check_alive(table)

    def _check_alive(self, table: TableId) -> None:
        """While nobody else appends or drops."""
        number, alive = self._alive
        if number != self._environment.mark():
            number, alive = self._environment.read(lambda t: t.id()), set()
            self._alive = number, alive
        if table not in alive:
            self._environment.read(lambda t: dropping.check_alive(t, table))
            alive.add(table)

    def _check_unwritten(self, table: TableId, known: Position, end: Position) -> None:
        if self._table_ends.of(table, self._log, end) > known:
            raise Conflict(
                f"table {table} was written after position {known}: read again and retry"
            )

    def _check_replaced(self, operations: Sequence[AnyOperations]) -> None:
        """An epoch that takes these operations reads the rows before them. How large they are is
        looked up only if rows of these tables are large.
        """
        rows = sum(len(part.keys) for part in operations)
        about = (len(part.keys) * self._row_size(part.table) for part in operations)
        if rows < 2 or sum(about) <= _LARGEST_BLOCK:
            return
        size = 0
        with self.snapshot() as snapshot:
            for part in map(in_arrays, operations):
                for start in range(0, len(part.keys), _LOOKED_UP):
                    some = part.keys.slice(start, _LOOKED_UP)
                    size += snapshot.get_many(part.table, some).nbytes
        if size > _LARGEST_BLOCK:
            raise _too_large(f"{rows:,} operations with the rows that they replace")

    def _row_size(self, table: TableId) -> int:
        """About how many bytes a settled row has."""
        number, sizes = self._row_sizes
        if number != self._environment.mark():
            number, sizes = self._environment.read(lambda t: t.id()), {}
            self._row_sizes = number, sizes
        if table not in sizes:
            sizes[table] = self._environment.read(
                lambda t: settling.row_size(t, self._slots)(table)
            )
        return sizes[table]

    def put_one(
        self,
        table: TableId,
        key: bytes,
        value: bytes | None,
        before_images: bool,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        block = blocks.encode_one(table, time.time(), (key, value))
        if not expected:
            return self._write(block, 1, lambda end: self._check_alive(table))
        tables = {table, *(row.table for row in expected)}

        def write(rows: ExpectedRows) -> Vector:
            def check(end: Position) -> None:
                self._check_all_alive(tables)
                rows.check_since(end)

            return self._write(block, 1, check)

        return self._compared(expected, write)

    def together(self) -> AbstractContextManager[None]:
        return self._file.together()

    def _write(self, value: bytes, rows: int, check: Callable[[Position], None]) -> Vector:
        """Rows of dropped tables make room for new ones, if there is no other."""
        self._written += rows
        self._written_bytes += len(value)
        if self._written >= _LOOK_AFTER or self._written_bytes >= _LOOK_AFTER_BYTES:
            self._written = self._written_bytes = 0
            self._place.check_room()
            self._settle_backlog()
        while True:
            try:
                return Vector({log.STREAM: self._file.append(value, rows, self._catalog(), check)})
            except StoreFull:
                if self._environment.read(dropping.pending) is None:
                    raise
            self.reclaim(_WHEN_FULL)

    # ------------------------------------------------------------ reading

    def snapshot(self) -> AbstractContextManager[EmbeddedSnapshot]:
        number, end, known = self._now
        if known is None or number != self._environment.mark() or end != self._file.ends.published:
            known = self._newest()
        return nullcontext(known)

    def _newest(self) -> EmbeddedSnapshot:
        def look(transaction: Transaction) -> tuple[int, int]:
            return transaction.id(), run_lists.changed(transaction)

        def read() -> EmbeddedSnapshot:
            number, changed = self._environment.read(look)
            end = self._file.end
            found = self._read(self._now[2], end, changed)
            self._now = number, end, found
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
        return Vector({log.STREAM: self._file.end})

    def barrier(self) -> Vector:
        return self.end()

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        self._check(stream)
        return log.read(self._log, low, high)

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        self._check(stream)
        high = log.cut(self._log, low, rows)
        if size is None or high == low:
            return high

        def within(transaction: Transaction) -> Position:
            row_size = settling.row_size(transaction, self._slots)
            return log.within(self._log, low, high, size, row_size)

        return self._environment.read(within)

    def count(self, table: TableId) -> int | None:
        def settled(transaction: Transaction) -> int:
            owners = (run_lists.owner_of(table, slot) for slot in range(self._slots))
            return sum(run_lists.count(transaction, owner)[0] for owner in owners)

        with self.snapshot() as snapshot:
            return self._environment.read(settled) + snapshot.waiting(table)

    def room(self) -> tuple[int, int]:
        used = self._environment.used_bytes + self._place.files.used_bytes()
        return used + self._file.used_bytes(), self._environment.max_size

    # ------------------------------------------------------------ settling, trimming, dropping

    def settle(self, slot: Slot, low: Vector, high: Vector, changes: Iterable[RowChanges]) -> None:
        start, end = low[log.STREAM], high[log.STREAM]
        logged, _ = self._file.last()
        mark, size = self._environment.read(lambda t: settling.waiting(t, slot, logged))
        is_worth_it = end - mark >= settling.FEW or size >= settling.FEW_BYTES
        if mark > start or not is_worth_it:
            return
        if mark == start:
            self._settling(slot, self._reading()).from_changes(start, end, list(changes))
        else:  # epochs that were too small have left it to this one
            self._settling(slot, self._reading()).from_log(end)

    def _settle_backlog(self) -> None:
        def waiting(transaction: Transaction) -> tuple[Position, int]:
            slots = range(self._slots)
            return min(settling.waiting(transaction, slot, logged) for slot in slots)

        end, (logged, _) = self._file.end, self._file.last()
        mark, size = self._environment.read(waiting)
        if end - mark >= MOST_WAITING or size >= MOST_BYTES:
            self._settle_all(end)
            self._merging.go_on()  # else their number grows until a pipeline comes

    def _settle_all(self, position: Position) -> None:
        read = self._reading()
        for slot in range(self._slots):
            self._settling(slot, read).from_log(position)

    def _reading(self) -> settling.Read:
        return settling.reading(self._place, self._slots)

    def _settling(self, slot: Slot, read: settling.Read) -> Settling:
        return Settling(self._place, slot, read, self._catalog)

    def trim(self, stream: str, position: Position) -> None:
        """The log is what rows are made of: those that wait are settled first."""
        self._check(stream)
        trimmed = self._environment.read(log.trim_point)
        position = max(self._file.boundary_below(min(position, self._file.end)), trimmed)
        self._settle_all(position)
        settled = settling.collect(self._place, self._slots, position, self._catalog())
        log.trim(self._log, settled, self._catalog())

    def drop(self, table: TableId) -> None:
        def body(transaction: Transaction) -> None:
            dropping.mark_dead(transaction, table)
            for slot in range(self._slots):
                run_lists.forget(transaction, run_lists.owner_of(table, slot))
            run_lists.note_change(transaction)
            log.note(transaction, self._file, self._catalog())

        with self._file.locked():  # who appends has seen it, or was before
            self._environment.write(body, frees=True)

    def reclaim(self, seconds: float) -> bool:
        if self._environment.read(dropping.pending) is None:
            return False
        self._environment.write(self._place.forget_unnamed, frees=True)
        self._place.remove_unnamed(self._file.end)
        self._environment.write(dropping.forget, frees=True)
        return False

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
    def of(cls, operations: AnyOperations, now: float) -> _Part:
        if isinstance(operations, FewOperations):
            few = operations.keys, operations.values
            block = blocks.encode_few(operations.table, now, few)
            return cls(operations.table, len(few[0]), block)
        table, keys, values = operations.table, operations.keys, operations.values
        records.check_columns(keys, values)
        records.check_not_null(keys)
        if operations.before is not None:
            records.check_columns(keys, operations.before)
            block = _log_block(table, now, keys, values, operations.before, passes=True)
            return cls(table, len(keys), block if len(keys) else b"")
        if len(keys) == 1:
            row = keys[0].as_py(), values[0].as_py()
            return cls(table, 1, blocks.encode_one(table, now, row))
        return cls(table, len(keys), _log_block(table, now, keys, values) if len(keys) else b"")


def _log_block(table: TableId, now: float, *columns: pa.BinaryArray, passes: bool = False) -> bytes:
    """A block that an epoch can take as a whole."""
    # as Arrow makes of more than 2 GiB
    whole = not any(isinstance(column, pa.ChunkedArray) for column in columns)
    size = sum(column.nbytes for column in columns)
    if len(columns[0]) > 1 and not (whole and size <= _LARGEST_BLOCK):
        raise _too_large(f"{len(columns[0]):,} operations")
    return blocks.encode(table, now, columns, passes)


def _joined(values: Sequence[bytes]) -> bytes:
    """The blocks of a transaction as one value."""
    if len(values) == 1:
        return values[0]
    if sum(map(len, values)) > _LARGEST_BLOCK:
        raise _too_large(f"a transaction over {len(values)} tables: its operations")
    return b"".join(values)


def _too_large(what: str) -> TooLarge:
    return TooLarge(f"{what} are more than {_LARGEST_BLOCK >> 20} MiB: write fewer")
