"""Base rows and log streams in memory."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate

from belvedere.errors import Conflict, Dropped, Stale, StoreError, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.memory.state import Batch, Rules, batches, binary, inside
from belvedere.types import Position

_LARGEST_WRITE = 128 << 20  # bytes of several operations
Rows = dict[bytes, bytes]


@dataclass
class _Stream:
    """Blocks in order; `trimmed` is the position of the first one that is still there."""

    blocks: list[LogBlock] = field(default_factory=list)
    trimmed: Position = 0

    @property
    def end(self) -> Position:
        return self.blocks[-1].end if self.blocks else self.trimmed


class MemorySnapshot:
    """A copy of all rows.

    With several streams `positions` has all positions, `position` that of the first stream.
    """

    def __init__(
        self,
        rows: dict[TableId, Rows],
        dropped: set[TableId],
        positions: dict[str, Position],
        point: Callable[[str], None],
    ) -> None:
        self._rows = {table: dict(records) for table, records in rows.items()}
        self._dropped = frozenset(dropped)
        self._point = point
        self.positions = positions
        self.position = next(iter(positions.values()))

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


class MemoryBase:
    """Base rows and one or more log streams; all operations on one row are in the stream that its
    hash chooses.
    """

    def __init__(
        self, streams: int, rules: Rules, point: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self.streams = (
            ("log",) if streams == 1 else tuple(f"log-{number}" for number in range(streams))
        )
        self._rules, self._point, self._clock = rules, point, clock
        self._rows: dict[TableId, Rows] = {}
        self._logs = {name: _Stream() for name in self.streams}
        self._table_end: dict[TableId, Position] = {}
        self._dropped: set[TableId] = set()

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Position | None = None,
    ) -> Position:
        """With several streams each stream's part is a block of its own; the position is that of
        the last operation's stream.
        """
        self._point("base write")
        if table in self._dropped:
            raise Dropped(table)
        if unless_after is not None:
            if len(self.streams) > 1:
                raise StoreError(
                    "unless_after needs a store with one stream: positions of several streams have"
                    " no order"
                )
            if self._table_end.get(table, 0) > unless_after:
                raise Conflict(
                    f"table {table} was written after position {unless_after}: read again and retry"
                )
        rows = dict(self._rows.get(table, {}))
        parts: dict[str, list[tuple[bytes, bytes | None, bytes | None]]] = {}
        last = self.streams[0]
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            last = self._stream(table, key)
            parts.setdefault(last, []).append((key, value, rows.get(key)))
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value
        _check_size([operation for part in parts.values() for operation in part], before_images)
        self._rows[table] = rows
        for name, part in parts.items():
            log = self._logs[name]
            columns = [binary(list(column)) for column in zip(*part, strict=True)]
            log.blocks.append(
                LogBlock(
                    name,
                    log.end,
                    table,
                    self._clock(),
                    columns[0],
                    columns[1],
                    columns[2] if before_images else None,
                )
            )
            self._table_end[table] = log.end
        return self._logs[last].end

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Position:
        return self.write(table, binary([key]), binary([value]), before_images)

    def snapshot(self) -> AbstractContextManager[MemorySnapshot]:
        self._point("base snapshot")
        return nullcontext(MemorySnapshot(self._rows, self._dropped, self._ends(), self._point))

    def end(self) -> dict[str, Position]:
        self._point("log end")
        return self._ends()

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
        sizes = accumulate(
            sum(column.nbytes for column in (b.keys, b.values, b.before) if column is not None)
            for b in after
        )
        within = [
            b.end
            for b, total in zip(after, sizes, strict=True)
            if b.end <= low + rows and (size is None or total <= size)
        ]
        return max(within, default=after[0].end if after else low)

    def count(self, table: TableId) -> int | None:
        return len(self._rows.get(table, {}))

    def room(self) -> tuple[int, int]:
        return 0, sys.maxsize

    def trim(self, stream: str, position: Position) -> None:
        self._point("log trim")
        log = self._log(stream)
        while log.blocks and log.blocks[0].end <= position:
            log.trimmed = log.blocks.pop(0).end

    def drop(self, table: TableId) -> None:
        self._point("base drop")
        self._dropped.add(table)

    def reclaim(self, seconds: float) -> bool:
        self._point("base reclaim")
        for table in self._dropped:
            self._rows.pop(table, None)
        return False

    def _stream(self, table: TableId, key: bytes) -> str:
        return self.streams[zlib.crc32(key, table & 0xFFFFFFFF) % len(self.streams)]

    def _ends(self) -> dict[str, Position]:
        return {name: log.end for name, log in self._logs.items()}

    def _log(self, stream: str) -> _Stream:
        if stream not in self._logs:
            raise StoreError(
                f"there is no stream {stream!r}: the streams are {', '.join(self.streams)}"
            )
        return self._logs[stream]

    def _check_trim(self, stream: str, position: Position) -> None:
        trimmed = self._logs[stream].trimmed
        if self._rules.trim_error and position < trimmed:
            raise Stale(
                f"the log {stream} was trimmed to {trimmed}: position {position} cannot be read any"
                " more"
            )


def _check_size(
    operations: list[tuple[bytes, bytes | None, bytes | None]], before_images: bool
) -> None:
    """Refuse several operations that are too large together; each is a key, its value and the value
    before.
    """
    counted = 3 if before_images else 2
    size = sum(len(part or b"") for operation in operations for part in operation[:counted])
    if len(operations) > 1 and size > _LARGEST_WRITE:
        raise TooLarge(
            f"{len(operations):,} operations are too large for one transaction: write fewer"
        )
