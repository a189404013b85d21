"""Base rows and log streams in memory."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate

from belvedere.encoding import slot_of
from belvedere.errors import Conflict, Dropped, RowConflict, Stale, StoreError, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import (
    AnyOperations,
    Expected,
    LogBlock,
    Operations,
    RowChanges,
    TableId,
    in_arrays,
)
from belvedere.stores.memory.state import Batch, Rules, batches, binary, inside
from belvedere.types import Position, Vector

_LARGEST_WRITE = 128 << 20  # bytes of several operations
Rows = dict[bytes, bytes]


@dataclass
class _Stream:
    """Blocks in order; `trimmed` is the position of the first one that is still there."""

    blocks: list[LogBlock] = field(default_factory=list)
    trimmed: Position = 0
    # the row before each operation: (position, table, key, row)
    undo: list[tuple[Position, TableId, bytes, bytes | None]] = field(default_factory=list)

    @property
    def end(self) -> Position:
        return self.blocks[-1].end if self.blocks else self.trimmed


class MemorySnapshot:
    """A copy of all rows."""

    def __init__(
        self,
        rows: dict[TableId, Rows],
        dropped: set[TableId],
        vector: Vector,
        point: Callable[[str], None],
        slots: int = 1,
    ) -> None:
        self._slots = slots
        self._rows = {table: dict(records) for table, records in rows.items()}
        self._dropped = frozenset(dropped)
        self._point = point
        self.vector = vector

    def get(self, table: TableId, key: bytes) -> bytes | None:
        return self._of(table).get(key)

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        rows = self._of(table)
        return binary([rows.get(key) for key in keys.to_pylist()])

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        records = sorted(item for item in self._of(table).items() if inside(item[0], low, high))
        yield from batches(records, batch)

    def scan_slots(
        self, table: TableId, slots: Sequence[int], low: bytes, high: bytes | None
    ) -> Iterator[Batch]:
        items = self._of(table).items()
        mine = (item for item in items if slot_of(item[0], self._slots) in slots)
        yield from batches(sorted(item for item in mine if inside(item[0], low, high)), 100_000)

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        used = 0
        records = sorted(item for item in self._of(table).items() if item[0] >= low)
        for count, (key, value) in enumerate(records, 1):
            used += len(key) + len(value)
            if count == rows or used >= size:
                return key, count
        return None, len(records)

    def _of(self, table: TableId) -> Rows:
        if table in self._dropped:
            raise Dropped(table)
        return self._rows.get(table, {})


Operation = tuple[bytes, bytes | None, bytes | None]  # key, value, the value before


class MemoryBase:
    """Base rows and one or more log streams.

    All operations on one row are in the stream that its hash chooses.
    """

    def __init__(
        self,
        streams: int,
        slots: int,
        rules: Rules,
        point: Callable[[str], None],
        clock: Callable[[], float],
        has_history: bool = False,
    ) -> None:
        """With a history of rows the log needs no rows before."""
        self._has_history = has_history
        names = ["log"] if streams == 1 else [f"log-{number}" for number in range(streams)]
        self._slots, self._rules, self._point, self._clock = slots, rules, point, clock
        self._rows: dict[TableId, Rows] = {}
        self._logs = {name: _Stream() for name in names}
        self._table_end: dict[TableId, Vector] = {}
        self._dropped: set[TableId] = set()

    def streams(self) -> tuple[str, ...]:
        return tuple(self._logs)

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
        """With several streams each stream's part is a transaction of its own."""
        self._point("base write")
        arrays = [in_arrays(part) for part in operations]
        self._check(arrays, unless_after, expected)
        rows = {part.table: dict(self._rows.get(part.table, {})) for part in arrays}
        blocks: dict[str, list[tuple[Operations, list[Operation]]]] = {}
        for part in arrays:
            for stream, done in self._apply(rows[part.table], part).items():
                blocks.setdefault(stream, []).append((part, done))
        every = (block for parts in blocks.values() for block in parts)
        _check_size(every, self._has_history)
        self._rows |= rows
        written = {stream: self._append(stream, parts) for stream, parts in blocks.items()}
        return Vector(written)

    def _check(
        self,
        operations: Sequence[Operations],
        unless_after: Vector | None,
        expected: Sequence[Expected],
    ) -> None:
        if (len(operations) > 1 or expected) and len(self._logs) > 1:
            raise StoreError(
                "a transaction over several tables needs a store with one stream: write each table"
                " by itself"
            )
        for table in {part.table for part in operations}:
            if table in self._dropped:
                raise Dropped(table)
            if unless_after is not None and not unless_after.covers(self._end_of(table)):
                raise Conflict(f"table {table} was written after {unless_after}: read again, retry")
        for row in expected:
            if row.table in self._dropped:
                raise Dropped(row.table)
            if self._rows.get(row.table, {}).get(row.key) != row.value:
                raise RowConflict(row.table, row.key)

    def _apply(self, rows: Rows, part: Operations) -> dict[str, list[Operation]]:
        """Do the operations; returns them by stream. Those that pass change nothing."""
        done: dict[str, list[Operation]] = {}
        if part.before is not None:
            columns = part.keys.to_pylist(), part.values.to_pylist(), part.before.to_pylist()
            for operation in zip(*columns, strict=True):
                done.setdefault(self._stream(part.table, operation[0]), []).append(operation)
            return done
        for key, value in zip(part.keys.to_pylist(), part.values.to_pylist(), strict=True):
            stream = self._stream(part.table, key)
            done.setdefault(stream, []).append((key, value, rows.get(key)))
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        return done

    def _append(self, stream: str, parts: list[tuple[Operations, list[Operation]]]) -> Position:
        """Log one transaction; returns the position after it."""
        log, now = self._logs[stream], self._clock()
        for number, (part, done) in enumerate(parts, 1):
            passes = part.before is not None
            log.undo += [
                (position, part.table, key, old)
                for position, (key, _, old) in enumerate(done, log.end)
                if not passes
            ]
            keys, values, before = (binary(list(column)) for column in zip(*done, strict=True))
            is_told = passes or (part.before_images and not self._has_history)
            said = keys, values, before if is_told else None, number == len(parts)
            log.blocks.append(LogBlock(stream, log.end, part.table, now, *said, passes=passes))
        for part, _ in parts:
            self._table_end[part.table] = self._end_of(part.table).merge({stream: log.end})
        return log.end

    def put_one(
        self,
        table: TableId,
        key: bytes,
        value: bytes | None,
        before_images: bool,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        only = Operations(table, binary([key]), binary([value]), before_images)
        return self.write_all([only], expected=expected)

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[MemorySnapshot]:
        self._point("base snapshot")
        return nullcontext(MemorySnapshot(self._rows, self._dropped, self._ends(), self._point))

    def as_of(self, vector: Vector) -> AbstractContextManager[MemorySnapshot]:
        """The rows now, without what was done since."""
        self._point("rows as of a vector")
        rows = {table: dict(records) for table, records in self._rows.items()}
        for name, log in self._logs.items():
            self._check_trim(name, vector[name])
            for position, table, key, old in reversed(log.undo):
                if position >= vector[name]:
                    _put_back(rows.setdefault(table, {}), key, old)
        return nullcontext(MemorySnapshot(rows, self._dropped, vector, self._point, self._slots))

    def settle(self, slot: int, low: Vector, high: Vector, changes: Iterable[RowChanges]) -> None:
        """There is nowhere else to bring rows to."""

    def end(self) -> Vector:
        self._point("log end")
        return self._ends()

    def barrier(self) -> Vector:
        return self.end()

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        log, position = self._log(stream), low
        while True:
            self._point("log read")
            if position >= high:
                return
            self._check_trim(stream, position)
            block = next((block for block in log.blocks if position <= block.position < high), None)
            if block is None:
                return
            position = block.end
            yield block

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        self._point("log cut")
        log = self._log(stream)
        self._check_trim(stream, low)
        after = [block for block in log.blocks if block.end > low]
        sizes = accumulate(map(_size, after))
        ends = [(b.end, size) for b, size in zip(after, sizes, strict=True) if b.is_last]
        within = [end for end, used in ends if end <= low + rows and (size is None or used <= size)]
        return max(within, default=ends[0][0] if ends else low)

    def count(self, table: TableId) -> int | None:
        return len(self._rows.get(table, {}))

    def room(self) -> tuple[int, int]:
        return 0, sys.maxsize

    def trim(self, stream: str, position: Position) -> None:
        self._point("log trim")
        log = self._log(stream)
        gone = [b.end for b in log.blocks if b.is_last and b.end <= position]
        log.trimmed = max(gone, default=log.trimmed)
        log.blocks = [block for block in log.blocks if block.position >= log.trimmed]
        log.undo = [entry for entry in log.undo if entry[0] >= log.trimmed]

    def drop(self, table: TableId) -> None:
        self._point("base drop")
        self._dropped.add(table)

    def reclaim(self, seconds: float) -> bool:
        self._point("base reclaim")
        for table in self._dropped:
            self._rows.pop(table, None)
        return False

    def _stream(self, table: TableId, key: bytes) -> str:
        names = list(self._logs)
        return names[zlib.crc32(key, table & 0xFFFFFFFF) % len(names)]

    def _ends(self) -> Vector:
        return Vector({name: log.end for name, log in self._logs.items()})

    def _end_of(self, table: TableId) -> Vector:
        return self._table_end.get(table, Vector())

    def _log(self, stream: str) -> _Stream:
        if stream not in self._logs:
            raise StoreError(
                f"there is no stream {stream!r}: the streams are {', '.join(self._logs)}"
            )
        return self._logs[stream]

    def _check_trim(self, stream: str, position: Position) -> None:
        trimmed = self._logs[stream].trimmed
        if self._rules.trim_error and position < trimmed:
            raise Stale(
                f"the log {stream} was trimmed to {trimmed}: position {position} cannot be read any"
                " more"
            )


def _put_back(rows: Rows, key: bytes, old: bytes | None) -> None:
    if old is None:
        rows.pop(key, None)
    else:
        rows[key] = old


def _size(block: LogBlock) -> int:
    columns = (block.keys, block.values, block.before)
    return sum(column.nbytes for column in columns if column is not None)


def _check_size(blocks: Iterable[tuple[Operations, list[Operation]]], has_history: bool) -> None:
    """Refuse several operations that are too large together, the values before included."""
    count = size = 0
    for part, done in blocks:
        count += len(done)
        is_told = part.before is not None or (part.before_images and not has_history)
        kept = 3 if is_told else 2
        size += sum(len(item or b"") for operation in done for item in operation[:kept])
    if count > 1 and size > _LARGEST_WRITE:
        raise TooLarge(f"{count:,} operations are too large for one transaction: write fewer")
