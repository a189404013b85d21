"""Tables that stay their users': captured from outside, mapped to columns, never owned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeAlias

from belvedere.encoding.natural import decode_some, encode
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.base.base_tables import TableId
from belvedere.stores.base.mapping import Mapping

# What a cell of a foreign table does, in HBase's codes.
PUT, DELETE, DELETE_FAMILY_VERSION, DELETE_COLUMN, DELETE_FAMILY = 4, 8, 10, 12, 14


# keys, and cells whose `operation` is a number among them
KeyedCells: TypeAlias = "tuple[pa.BinaryArray, pa.RecordBatch]"


RowRange = tuple[bytes, bytes]  # foreign rows from the first to before the second; empty is open
# What may be wrong with a column of a foreign row: the cell is not of the type, or there is none.
WRONG_TYPE, WRONG_NULL = 1, 2
Codes: TypeAlias = "npt.NDArray[np.int32]"


@cache
def cells_schema() -> pa.Schema:
    """The columns of `LogBlock.cells`."""
    return pa.schema(
        [
            ("operation", pa.int32()),
            ("family", pa.int16()),
            ("column", pa.int16()),
            ("type", pa.uint8()),
            ("timestamp", pa.int64()),
            ("sequence", pa.int64()),
            ("value", pa.binary()),
        ]
    )


@dataclass(frozen=True, slots=True)
class ForeignServer:
    """A server of the foreign store, and how many parts of captured tables it has."""

    name: str
    is_alive: bool
    regions: int


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A captured table: in how many parts it is (None: it is not there any more), and how often
    rows came that no log has (`bulk_loads`), as far as the capture is told of it.
    """

    source: str
    regions: int | None
    bulk_loads: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """How capture stands: `enabled`, `disabled` (nothing is lost, but nothing arrives), or
    `missing`, and then what happens is lost to the views.
    """

    capture: str
    servers: tuple[ForeignServer, ...]
    tables: dict[TableId, ForeignTable]


class ForeignTables(Protocol):
    """What a store can do with tables that other clients write."""

    def adopt(self, table: TableId, mapping: Mapping) -> None:
        """Capture a foreign table from now on. Idempotent.

        Raises StoreError, and does nothing, if not all that happens to it could be captured.
        """

    def scan_ranges(self, table: TableId) -> list[RowRange]:
        """Ranges of foreign rows that are all of the table, to be scanned in any order, at once."""

    def log_range(self, table: TableId, rows: RowRange) -> None:
        """Log everything that a range of the foreign table has now, as cells of a scan.

        May be repeated, and may be called by any process. A crash leaves all of it, or nothing.
        """

    def shown_rows(self, table: TableId) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        """Keys and rows as the foreign store itself answers now, in any order; each row is whole.

        This is what the picture of the table is judged by.
        """

    def scan_cells(self, table: TableId) -> Iterator[KeyedCells]:
        """What `log_range` would log now of all ranges, in any order, without logging it."""

    def cells_of(self, table: TableId, keys: pa.BinaryArray) -> KeyedCells:
        """The same of some rows; those that have no cell and no marker are left out."""

    def condition(self) -> Condition:
        """How capture, servers and captured tables are, for status."""

    def bulk_loads(self) -> dict[TableId, int]:
        """How many bulk loads the log has told of, by captured table."""


def cells_of_rows(
    mapping: Mapping, values: pa.BinaryArray
) -> tuple[list[pa.BinaryArray], pa.BooleanArray]:
    """Rows as the cells that a client would put, a list by column with NULL where the column is
    NULL; and which of them are deletes.
    """
    columns = mapping.row_codec.decode(values)
    pairs = zip(columns, mapping.columns, strict=True)
    return [encode(found, c.type, c.form) for found, c in pairs], values.is_null()


def rows_of_cells(mapping: Mapping, cells: list[pa.BinaryArray], count: int) -> pa.BinaryArray:
    """Rows from the newest visible cells of every column; NULL where no column has one.

    A cell that is not of its type is NULL.
    """
    return read_cells(mapping, cells, count)[0]


def read_cells(
    mapping: Mapping, cells: list[pa.BinaryArray], count: int
) -> tuple[pa.BinaryArray, list[Codes]]:
    """The same, and what is wrong with every column of every row: 0, WRONG_TYPE or WRONG_NULL."""
    there = [found.is_valid().to_numpy(zero_copy_only=False) for found in cells]
    exists = np.logical_or.reduce(there) if there else np.zeros(count, bool)
    columns, faults = [], []
    for found, valid, column in zip(cells, there, mapping.columns, strict=True):
        values, bad = decode_some(found, column.type, column.form)
        columns.append(values)
        fault = np.zeros(count, np.int32)
        if not column.nullable:
            fault[exists & ~valid] = WRONG_NULL
        if bad is not None:
            fault[bad] = WRONG_TYPE
        faults.append(fault)
    rows = mapping.row_codec.encode(columns, count)
    return pc.if_else(pa.array(exists), rows, pa.scalar(None, pa.binary())), faults
