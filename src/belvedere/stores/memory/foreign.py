"""Foreign tables in memory: the specification of a store that captures tables of others.

A foreign table is rows of cells, as HBase has them. Any client may put and delete cells; each such
operation is logged if the table is captured. What a row shows is looked up anew from all that ever
happened to it. Operations on a row have rising sequence ids; the log may have one of them again.

With `lags`, operations are captured a while after they happened: at `deliver`, or when a barrier
asks for all of them. A scan shows them at once.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from belvedere.errors import Dropped, Stale, StoreError
from belvedere.libraries import pa
from belvedere.stores.base import (
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    PUT,
    AnyOperations,
    Condition,
    Expected,
    ForeignServer,
    ForeignTable,
    KeyedCells,
    LogBlock,
    Mapping,
    Operations,
    RowRange,
    TableId,
    cells_of_rows,
    cells_schema,
    in_arrays,
    rows_of_cells,
)
from belvedere.stores.memory.state import Batch, batches, binary, inside
from belvedere.types import Position, Vector

_STREAM = "log"
_AT_ONCE = 1000  # rows of a batch


class Cell(NamedTuple):
    """What an operation did to one column, or with an empty qualifier of a marker to a family."""

    family: bytes
    qualifier: bytes
    type: int
    timestamp: int
    value: bytes = b""

    @property
    def is_wide(self) -> bool:
        return self.type in (DELETE_FAMILY, DELETE_FAMILY_VERSION)

    def hides(self, put: Cell) -> bool:
        is_range = self.type in (DELETE_FAMILY, DELETE_COLUMN)
        meets = put.timestamp <= self.timestamp if is_range else put.timestamp == self.timestamp
        is_place = self.family == put.family and (self.is_wide or self.qualifier == put.qualifier)
        return self.type != PUT and meets and is_place


Done = tuple[int, Cell]  # with its sequence id
Row = list[Done]


def visible(row: Row) -> dict[tuple[bytes, bytes], bytes]:
    """The value of every column of a row to which this happened."""
    markers = [cell for _, cell in row if cell.type != PUT]
    puts = [(s, c) for s, c in row if c.type == PUT and not any(m.hides(c) for m in markers)]
    puts.sort(key=lambda done: (done[1].timestamp, done[0]))
    return {(cell.family, cell.qualifier): cell.value for _, cell in puts}


class ForeignBase:
    """Captured tables, and their log in one stream."""

    def __init__(self, point: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._point, self._clock = point, clock
        self.sources: dict[str, dict[bytes, Row]] = {}
        self._mappings: dict[TableId, Mapping] = {}
        self._dropped: set[TableId] = set()
        self._log: list[LogBlock] = []
        self._trimmed: Position = 0
        self._sequence = 0
        self._loads: dict[str, int] = {}
        self.lags = False
        self.delivered: Callable[[Position], None] = lambda position: None
        self._waiting: deque[tuple[str, bytes, Row]] = deque()

    # ---- what foreign clients do

    def mutate(self, source: str, row: bytes, cells: Sequence[Cell]) -> None:
        """One operation on one row, as any client of the foreign store may do it."""
        self._point("foreign mutate")
        self._sequence += 1
        done = [(self._sequence, cell) for cell in cells]
        self.sources.setdefault(source, {}).setdefault(row, []).extend(done)
        self._append(source, row, done)

    def deliver_again(self, source: str, row: bytes) -> None:
        """The last operation on a row arrives a second time."""
        done = self.sources[source][row]
        last = done[-1][0]
        self._append(source, row, [each for each in done if each[0] == last])

    def _append(self, source: str, row: bytes, done: Row) -> None:
        self._waiting.append((source, row, done))
        self.deliver(0 if self.lags else 1)

    def deliver(self, count: int) -> None:
        """Log so many operations that happened before."""
        for _ in range(min(count, len(self._waiting))):
            self._capture(*self._waiting.popleft())
            self.delivered(self._end)

    def _capture(self, source: str, row: bytes, done: Row) -> None:
        for table, mapping in self._mappings.items():
            if mapping.source == source and table not in self._dropped:
                self._log_row(table, mapping, row, done)

    def _log_row(self, table: TableId, mapping: Mapping, row: bytes, done: Row) -> None:
        keys, nulls = mapping.all_keys_of(binary([row])), pa.nulls(1, pa.binary())
        cells = _batch(mapping, done)
        block = LogBlock(_STREAM, self._end, table, self._clock(), keys, nulls, None, cells=cells)
        self._log.append(block)

    # ---- ForeignTables

    def adopt(self, table: TableId, mapping: Mapping) -> None:
        self._point("foreign adopt")
        if mapping.source not in self.sources:
            raise StoreError(f"there is no table {mapping.source}: create it there first")
        self._mappings[table] = mapping

    def scan_ranges(self, table: TableId) -> list[RowRange]:
        return [(b"", b"m"), (b"m", b"")]

    def log_range(self, table: TableId, rows: RowRange) -> None:
        """Row by row: others write meanwhile."""
        mapping, (low, high) = self._mappings[table], rows
        for row in sorted(self.sources[mapping.source]):
            if not inside(row, low, high or None):
                continue
            self._point("foreign scan")
            self._log_row(table, mapping, row, self._scanned(mapping, row))

    def shown_rows(self, table: TableId) -> Iterator[Batch]:
        self._point("foreign scan")
        yield from batches(self.rows(table), _AT_ONCE)

    def scan_cells(self, table: TableId) -> Iterator[KeyedCells]:
        mapping = self._mapping(table)
        for row in sorted(self.sources[mapping.source]):
            self._point("foreign scan")
            yield mapping.all_keys_of(binary([row])), _batch(mapping, self._scanned(mapping, row))

    def cells_of(self, table: TableId, keys: pa.BinaryArray) -> KeyedCells:
        self._point("foreign scan")
        mapping = self._mapping(table)
        rows = mapping.all_rows_of(keys).to_pylist()
        found = [row in self.sources[mapping.source] for row in rows]
        there = [row for row, is_there in zip(rows, found, strict=True) if is_there]
        parts = [_batch(mapping, self._scanned(mapping, row), n) for n, row in enumerate(there)]
        cells = pa.Table.from_batches(parts, cells_schema()).combine_chunks().to_batches()
        empty = _batch(mapping, [])
        return keys.filter(pa.array(found, pa.bool_())), cells[0] if cells else empty

    def _scanned(self, mapping: Mapping, row: bytes) -> Row:
        """Newest first, as HBase scans: of two puts with one time stamp the first one counts."""
        return [(0, cell) for _, cell in reversed(self.sources[mapping.source][row])]

    # ---- what no log shows

    def skip_log(self, source: str, row: bytes, cells: Sequence[Cell]) -> None:
        """An operation that is not logged: a put without a log, a bulk load."""
        self._sequence += 1
        done = [(self._sequence, cell) for cell in cells]
        self.sources[source].setdefault(row, []).extend(done)

    def bulk_load(self, source: str, row: bytes, cells: Sequence[Cell]) -> None:
        """The same, and the capture is told that something came."""
        self.skip_log(source, row, cells)
        self._loads[source] = self._loads.get(source, 0) + 1

    def condition(self) -> Condition:
        loads = self.bulk_loads()
        tables = {
            table: ForeignTable(
                mapping.source, 1 if mapping.source in self.sources else None, loads.get(table, 0)
            )
            for table, mapping in self._mappings.items()
            if table not in self._dropped
        }
        return Condition("enabled", (ForeignServer("memory", True, len(tables)),), tables)

    def bulk_loads(self) -> dict[TableId, int]:
        return {
            t: self._loads[m.source] for t, m in self._mappings.items() if m.source in self._loads
        }

    def truncate(self, source: str) -> None:
        """All rows go without a trace, and sequence ids begin anew."""
        self.sources[source].clear()
        self._sequence = 0

    # ---- BaseTables

    def streams(self) -> tuple[str, ...]:
        return (_STREAM,)

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        if unless_after is not None:
            raise StoreError("foreign tables have no conditional writes: put and delete rows")
        mapping = self._mapping(table)
        columns, deletes = cells_of_rows(mapping, values)
        rows = mapping.rows_of(keys).to_pylist()
        cells = [column.to_pylist() for column in columns]
        for number, (row, is_delete) in enumerate(zip(rows, deletes.to_pylist(), strict=True)):
            found = None if is_delete else [column[number] for column in cells]
            self.mutate(mapping.source, row, self._as_client(mapping, found))
        return Vector()

    def write_all(
        self,
        operations: Sequence[AnyOperations],
        unless_after: Vector | None = None,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        if expected:
            raise StoreError(
                "foreign tables have no transactions: what was read cannot be compared"
            )
        if len(operations) > 1:
            raise StoreError("foreign tables have no transactions: write each table by itself")
        for part in map(in_arrays, operations):
            self.write(part.table, part.keys, part.values, part.before_images, unless_after)
        return Vector()

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

    def _as_client(self, mapping: Mapping, values: list[bytes | None] | None) -> list[Cell]:
        """The cells of a row; a NULL column, or every mapped one of a deleted row, is a delete."""
        now = self._sequence + 1
        given = values or [None] * len(mapping.columns)
        cells = []
        for column, value in zip(mapping.columns, given, strict=True):
            kind = DELETE_COLUMN if value is None else PUT
            family = mapping.families[column.family]
            cells.append(Cell(family, column.qualifier, kind, now, value or b""))
        return cells

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[ForeignSnapshot]:
        self._point("base snapshot")
        return nullcontext(ForeignSnapshot(self))

    def end(self) -> Vector:
        self._point("log end")
        return Vector({_STREAM: self._end})

    def barrier(self) -> Vector:
        self.deliver(len(self._waiting))
        return self.end()

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        position = low
        while position < high:
            self._point("log read")
            self._check_trim(position)
            block = self._log[position - self._trimmed]
            position = block.end
            yield block

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        self._point("log cut")
        self._check_trim(low)
        return min(self._end, low + max(rows, 1))

    def count(self, table: TableId) -> int | None:
        return None

    def room(self) -> tuple[int, int]:
        return 0, sys.maxsize

    def trim(self, stream: str, position: Position) -> None:
        self._point("log trim")
        gone = max(0, min(position, self._end) - self._trimmed)
        self._log, self._trimmed = self._log[gone:], self._trimmed + gone

    def drop(self, table: TableId) -> None:
        """The foreign table stays as it is."""
        self._point("base drop")
        self._dropped.add(table)

    def reclaim(self, seconds: float) -> bool:
        return False

    @property
    def _end(self) -> Position:
        return self._trimmed + len(self._log)

    def _check_trim(self, position: Position) -> None:
        if position < self._trimmed:
            raise Stale(f"the log was trimmed to {self._trimmed}: {position} cannot be read")

    def _mapping(self, table: TableId) -> Mapping:
        if table in self._dropped:
            raise Dropped(table)
        return self._mappings[table]

    def rows(self, table: TableId) -> list[tuple[bytes, bytes]]:
        """The rows of a table as they are now, by key."""
        mapping = self._mapping(table)
        source = self.sources[mapping.source]
        names = list(source)
        keys, good = mapping.keys_of(binary(names))
        shown = [
            visible(source[name]) for name, is_good in zip(names, good, strict=True) if is_good
        ]
        places = [(mapping.families[c.family], c.qualifier) for c in mapping.columns]
        columns = [binary([row.get(place) for row in shown]) for place in places]
        values = rows_of_cells(mapping, columns, len(shown)).to_pylist()
        pairs = zip(keys.to_pylist(), values, strict=True)
        return sorted((key, value) for key, value in pairs if value is not None)


class ForeignSnapshot:
    """All rows as they are at one moment, which real foreign stores give only row by row."""

    def __init__(self, base: ForeignBase) -> None:
        self._base = base
        self.vector = base.end()

    def get(self, table: TableId, key: bytes) -> bytes | None:
        return dict(self._base.rows(table)).get(key)

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        rows = dict(self._base.rows(table))
        return binary([rows.get(key) for key in keys.to_pylist()])

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        records = [item for item in self._base.rows(table) if inside(item[0], low, high)]
        yield from batches(records, batch)

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        raise StoreError("foreign tables are loaded from their delta view")


def _batch(mapping: Mapping, done: Row, operation: int = 0) -> pa.RecordBatch:
    """Cells of one operation as the log has them; those of columns that are not mapped are left
    out.
    """
    columns = {(c.family, c.qualifier): i for i, c in enumerate(mapping.columns)}
    families = {family: i for i, family in enumerate(mapping.families)}
    rows = []
    for sequence, cell in done:
        family = families.get(cell.family, -1)
        column = -1 if cell.is_wide else columns.get((family, cell.qualifier))
        if family >= 0 and column is not None:
            place = operation, family, column, cell.type
            rows.append((*place, cell.timestamp, sequence, cell.value))
    schema = cells_schema()
    found = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(c, field.type) for c, field in zip(found, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
