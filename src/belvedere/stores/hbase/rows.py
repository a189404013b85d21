"""Rows of users' tables as they are now, by their mapping: read and written as any client does it.

HBase has no snapshot over rows: each row is whole, a scan is not of one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from belvedere.encoding.order import stable_order
from belvedere.errors import SchemaError, StoreError
from belvedere.libraries import pa, pc
from belvedere.stores.base import Mapping, TableId, cells_of_rows, rows_of_cells
from belvedere.stores.hbase import columns
from belvedere.stores.hbase.client import Client, Page
from belvedere.types import Vector

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
_PAGE = 10_000  # rows of one call


class UserRows:
    """The rows of one table."""

    def __init__(self, client: Client, mapping: Mapping) -> None:
        self._mapping = mapping
        places = [(mapping.families[c.family], c.qualifier) for c in mapping.columns]
        self._rows = client.rows(mapping.source, places)

    def get(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Values in the order of keys, NULL where there is no row."""
        rows = self._mapping.rows_of(keys)
        is_possible = pc.greater(pc.binary_length(rows), 0)  # HBase has no empty row key
        found = self._rows.get(rows.filter(is_possible))
        values = rows_of_cells(self._mapping, found, pc.sum(is_possible).as_py() or 0)
        if len(values) == len(keys):
            return values
        numbers = pc.if_else(is_possible, pc.cumulative_sum(is_possible.cast(pa.int64())), None)
        return values.take(pc.subtract(numbers, 1))

    def scan(self, low: bytes, high: bytes | None, batch: int) -> Iterator[Batch]:
        """Rows of a range of keys, in the order of keys."""
        if _keeps_order(self._mapping):
            for page in self._pages(*_row_range(low, high), batch):
                yield from _some(self._decode(page), low, high)
            return
        parts = [self._decode(page) for page in self._pages(b"", None, _PAGE)]
        keys = pa.concat_arrays([pa.array([], pa.binary()), *(part[0] for part in parts)])
        values = pa.concat_arrays([pa.array([], pa.binary()), *(part[1] for part in parts)])
        order = pa.array(stable_order(keys))
        for found in _some((keys.take(order), values.take(order)), low, high):
            for start in range(0, len(found[0]), batch):
                yield found[0][start : start + batch], found[1][start : start + batch]

    def in_any_order(self) -> Iterator[Batch]:
        for page in self._pages(b"", None, _PAGE):
            keys, values = self._decode(page)
            there = values.is_valid()
            yield keys.filter(there), values.filter(there)

    def _pages(self, low: bytes, high: bytes | None, rows: int) -> Iterator[Page]:
        last: bytes | None = None
        while True:
            start = low if last is None else last
            page = self._rows.scan(start, last is not None, high, min(rows, _PAGE))
            yield page
            last = page.last
            if last is None:
                return

    def _decode(self, page: Page) -> Batch:
        """Keys and values; rows that are none of the declared key are left out."""
        rows, *cells = page.columns
        keys, good = self._mapping.keys_of(rows)
        values = rows_of_cells(self._mapping, cells, len(rows))
        return keys, values.filter(pa.array(good))

    def write(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        """Operations in their order, a NULL value deletes."""
        rows = self._mapping.rows_of(keys)
        if pc.any(pc.equal(pc.binary_length(rows), 0)).as_py():
            raise SchemaError(
                f"the key of a row of {self._mapping.source} is empty, which HBase does not allow"
            )
        cells, deletes = cells_of_rows(self._mapping, values)
        if pc.any(pc.and_(_all_null(cells), pc.invert(deletes))).as_py():
            raise SchemaError(
                f"a row of {self._mapping.source} without any value would not be there: give it at"
                " least one value that is not NULL"
            )
        flags = pc.if_else(deletes, pa.scalar(None, pa.binary()), pa.scalar(b"", pa.binary()))
        for start, end in _runs(keys):
            part = [column[start:end] for column in (rows, flags, *cells)]
            self._rows.write(columns.pack([pa.concat_arrays([column]) for column in part]))


class RowsNow:
    """All tables as they are when they are read; nothing is held, so nothing is of one moment."""

    def __init__(self, rows_of: Callable[[TableId], UserRows]) -> None:
        self._rows_of = rows_of
        self.vector = Vector()  # of rows that are the users' nobody knows the positions

    def get(self, table: TableId, key: bytes) -> bytes | None:
        found: bytes | None = self.get_many(table, pa.array([key], pa.binary()))[0].as_py()
        return found

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return self._rows_of(table).get(keys)

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        return self._rows_of(table).scan(low, high, batch)

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        raise StoreError("tables of HBase are loaded from their delta view")


def _all_null(cells: list[pa.BinaryArray]) -> pa.BooleanArray:
    nulls = cells[0].is_null()
    for column in cells[1:]:
        nulls = pc.and_(nulls, column.is_null())
    return nulls


def _runs(keys: pa.BinaryArray) -> Iterator[tuple[int, int]]:
    """Parts in which no key stands twice: HBase may do what is in one call in any order."""
    if len(keys) == len(keys.unique()):
        starts = range(0, len(keys), _PAGE)
        yield from ((start, min(start + _PAGE, len(keys))) for start in starts)
        return
    seen: set[bytes] = set()
    start = 0
    for place, key in enumerate(keys.to_pylist()):
        if key in seen or place - start == _PAGE:
            yield start, place
            start, seen = place, set()
        seen.add(key)
    yield start, len(keys)


def _keeps_order(mapping: Mapping) -> bool:
    """Whether rows stand in the order of keys, in ours as in HBase's."""
    return len(mapping.key.types) == 1 and mapping.key.types[0].name in ("string", "binary")


def _row_range(low: bytes, high: bytes | None) -> tuple[bytes, bytes | None]:
    """Rows among which all keys of a range are: what of a bound is sure to be of the row."""
    start = low[1:].partition(b"\0")[0]
    if high is None or high[:1] != b"\x01":
        return start, None
    return start, _after(high[1:].partition(b"\0")[0])


def _after(prefix: bytes) -> bytes | None:
    """The first row after all that begin so."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _some(batch: Batch, low: bytes, high: bytes | None) -> Iterator[Batch]:
    """The records whose keys are in the range."""
    keys, values = batch
    inside = pc.greater_equal(keys, pa.scalar(low, pa.binary()))
    if high is not None:
        inside = pc.and_(inside, pc.less(keys, pa.scalar(high, pa.binary())))
    if pc.any(inside).as_py():
        yield keys.filter(inside), values.filter(inside)
