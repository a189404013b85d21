"""Users' tables in HBase as foreign tables: captured, scanned into the log, looked at beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from belvedere.libraries import pa, pc
from belvedere.stores.base import (
    Condition,
    ForeignServer,
    ForeignTable,
    KeyedCells,
    Mapping,
    RowRange,
    TableId,
)
from belvedere.stores.hbase.base_tables import HBaseBase
from belvedere.stores.hbase.blocks import join_parts, part_of
from belvedere.stores.hbase.frames import Frame, frames_in

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
_ROWS = 1000  # of one call; all cells of a row are in it


class HBaseForeign:
    """What the engine may do with users' tables besides reading their log."""

    def __init__(self, base: HBaseBase) -> None:
        self._base = base

    def adopt(self, table: TableId, mapping: Mapping) -> None:
        self._base.adopt(table, mapping)

    def scan_ranges(self, table: TableId) -> list[RowRange]:
        return self._base.start_scan(table)

    def log_range(self, table: TableId, rows: RowRange) -> None:
        self._base.scan_range(table, *rows)

    def shown_rows(self, table: TableId) -> Iterator[Batch]:
        return self._base.rows_of(table).in_any_order()

    def scan_cells(self, table: TableId) -> Iterator[KeyedCells]:
        mapping, last = self._base.mapping(table), b""
        while True:
            page = self._base.capture.page(mapping.source, last, _ROWS, mapping.families)
            frame = next(frames_in(memoryview(page), mapping.source))
            part = part_of(frame, mapping)
            if part is not None:
                yield part.keys, part.cells
            if len(frame.rows) < _ROWS:
                return
            last = frame.rows[-1].as_py()

    def cells_of(self, table: TableId, keys: pa.BinaryArray) -> KeyedCells:
        mapping = self._base.mapping(table)
        rows = mapping.all_rows_of(keys)
        is_possible = pc.greater(pc.binary_length(rows), 0)  # HBase has no empty row key
        rows = rows.filter(is_possible.fill_null(False))
        steps = range(0, len(rows), _ROWS)
        frames = [self._frame(mapping, rows[start : start + _ROWS]) for start in steps]
        parts = [part_of(frame, mapping) for frame in frames]
        return join_parts([part for part in parts if part is not None])

    def bulk_loads(self) -> dict[TableId, int]:
        return self._base.bulk_loads()

    def condition(self) -> Condition:
        capture = self._base.capture
        loads, places = self._base.bulk_loads(), {}
        mappings = self._base.mappings()
        for source in {mapping.source for mapping in mappings.values()}:
            places[source] = capture.places(source)
        tables = {}
        for table, mapping in mappings.items():
            found = places[mapping.source]
            regions = None if found is None else len(found)
            tables[table] = ForeignTable(mapping.source, regions, loads.get(table, 0))
        held = Counter(server for found in places.values() for server in found or ())
        return Condition(capture.state() or "missing", self._servers(held), tables)

    def _servers(self, held: Counter[str]) -> tuple[ForeignServer, ...]:
        """Those that live, and those that have ended and that HBase still remembers."""
        live = self._base.live_servers()
        known = sorted(live | self._base.capture.dead_servers())
        return tuple(ForeignServer(name, name in live, held[name]) for name in known)

    def _frame(self, mapping: Mapping, rows: pa.BinaryArray) -> Frame:
        data = self._base.capture.rows(mapping.source, rows.to_pylist(), mapping.families)
        return next(frames_in(memoryview(data), mapping.source))
