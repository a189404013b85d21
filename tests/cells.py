"""A row of cells as HBase shows it, in the plainest form: all that ever happened, looked at anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from belvedere.stores.base import (
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    PUT,
    cells_schema,
)

KINDS = (PUT, DELETE, DELETE_FAMILY_VERSION, DELETE_COLUMN, DELETE_FAMILY)


class Cell(NamedTuple):
    """Something that one operation did; `sequence` orders what happened to a row."""

    family: int
    column: int  # -1: the whole family
    type: int
    timestamp: int
    sequence: int
    value: bytes = b""

    def hides(self, put: Cell) -> bool:
        if self.type in (DELETE_FAMILY, DELETE_COLUMN) and put.timestamp > self.timestamp:
            return False
        if self.type in (DELETE_FAMILY_VERSION, DELETE) and put.timestamp != self.timestamp:
            return False
        whole = self.type in (DELETE_FAMILY, DELETE_FAMILY_VERSION)
        return (
            self.type != PUT and self.family == put.family and (whole or self.column == put.column)
        )


def visible(cells: Sequence[Cell]) -> dict[int, bytes]:
    """The value of each column of a row to which all this happened, in any order."""
    puts = [cell for cell in cells if cell.type == PUT and not any(m.hides(cell) for m in cells)]
    puts.sort(key=lambda cell: (cell.timestamp, cell.sequence))
    return {cell.column: cell.value for cell in puts}


def batch_of(operations: Sequence[Sequence[Cell]]) -> pa.RecordBatch:
    """Operations as the log gives them."""
    rows = [
        (number, c.family, c.column, c.type, c.timestamp, c.sequence, c.value)
        for number, cells in enumerate(operations)
        for c in cells
    ]
    schema = cells_schema()
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.record_batch(
        [pa.array(column, f.type) for column, f in zip(columns, schema, strict=True)],
        schema=schema,
    )
