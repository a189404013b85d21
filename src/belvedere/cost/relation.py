"""What a node emits: rows of the sample, and how many rows they stand for.

    scale = rows / rows in the sample

A relation is exact if every row is in its sample. `origin` is the base table whose keys the
identities are, or 0: two relations of one origin hold the same base rows, so their samples are not
independent. `error` is a relative standard error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from belvedere.operators.base import ID, KEY
from belvedere.stores.base import TableId


@dataclass(frozen=True, slots=True)
class Relation:
    sample: tuple[pa.Table, ...]
    rows: float
    exact: bool
    error: float = 0.0
    origin: TableId = 0
    tables: tuple[str, ...] = ()  # the base tables below, by name

    @property
    def seen(self) -> int:
        return sum(table.num_rows for table in self.sample)

    @property
    def scale(self) -> float:
        return max(1.0, self.rows / self.seen) if self.seen else 1.0

    @property
    def ids(self) -> pa.BinaryArray:
        return self._column(ID)

    @property
    def keys(self) -> pa.BinaryArray:
        """The state keys, of what an arrangement emits."""
        return self._column(KEY)

    def _column(self, name: str) -> pa.BinaryArray:
        chunks = [chunk for table in self.sample for chunk in table.column(name).chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], pa.binary())

    def share(self, sample: Sequence[pa.Table]) -> Relation:
        """What is left of the rows after a selection, when `sample` is left of the sample.

        Of n rows of a sample m pass: the standard error is that of a proportion, sqrt((1 - m/n) /
        m).
        """
        kept = sum(table.num_rows for table in sample)
        rows = (
            float(kept) if self.exact else self.rows * kept / self.seen if self.seen else self.rows
        )
        chance = (
            0.0 if self.exact or not self.seen else math.sqrt((1 - kept / self.seen) / max(kept, 1))
        )
        return Relation(
            tuple(sample),
            rows,
            self.exact,
            math.hypot(self.error, chance),
            self.origin,
            self.tables,
        )


def union(parts: Sequence[Relation]) -> Relation:
    """UNION ALL: every branch is scaled by itself."""
    if len(parts) == 1:
        return parts[0]
    rows = sum(part.rows for part in parts)
    error = math.hypot(*(part.error * part.rows for part in parts)) / rows if rows else 0.0
    sample = tuple(table for part in parts for table in part.sample)
    tables = tuple(dict.fromkeys(name for part in parts for name in part.tables))
    return Relation(sample, rows, all(part.exact for part in parts), error, 0, tables)
