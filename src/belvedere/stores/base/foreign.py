"""Tables that stay their users': captured from outside, mapped to columns, never owned."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from belvedere.encoding.natural import decode_some, encode
from belvedere.libraries import np, pa, pc
from belvedere.stores.base.base_tables import TableId
from belvedere.stores.base.mapping import Mapping

# What a cell of a foreign table does, in HBase's codes.
PUT, DELETE, DELETE_FAMILY_VERSION, DELETE_COLUMN, DELETE_FAMILY = 4, 8, 10, 12, 14


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


class ForeignTables(Protocol):
    """What a store can do with tables that other clients write."""

    def adopt(self, table: TableId, mapping: Mapping) -> None:
        """Capture a foreign table from now on. Idempotent.

        Raises StoreError, and does nothing, if not all that happens to it could be captured.
        """

    def log_scan(self, table: TableId) -> None:
        """Log everything that the foreign table has now, as cells of a scan. May be repeated."""


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
    exists = np.zeros(count, bool)
    columns = []
    for found, column in zip(cells, mapping.columns, strict=True):
        exists |= found.is_valid().to_numpy(zero_copy_only=False)
        columns.append(decode_some(found, column.type, column.form)[0])
    rows = mapping.row_codec.encode(columns, count)
    return pc.if_else(pa.array(exists), rows, pa.scalar(None, pa.binary()))
