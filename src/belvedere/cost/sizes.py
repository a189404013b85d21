"""The state tables of a node, scaled up from what a trial wrote.

    rows     one record per row: arranged rows, a keyed view's table, rows of a pre-aggregation
             scaled as the rows are
    counted  one record per different value, with its count: groups, a bag, values of a group
             `distinct` of the counts
    errors   one record per row that raises, and a counter in every slot
             scaled as the rows are

Bytes are records times the bytes of a record in the trial: keys and values, as stores count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.cost.distinct import Distinct, distinct
from belvedere.cost.relation import Relation
from belvedere.cost.report import StateSize
from belvedere.cost.trial import records
from belvedere.operators.base import Stateful, StateTable
from belvedere.operators.errors import COUNTER
from belvedere.stores.base import Write


@dataclass(frozen=True, slots=True)
class Kept:
    """A state table: its size, and how many records a trial wrote."""

    size: StateSize
    seen: int
    error: float

    @property
    def scale(self) -> float:
        return self.size.records / self.seen if self.seen else 1.0


def kept(
    what: str, operator: Stateful, table: StateTable, writes: Sequence[Write], fed: Relation
) -> Kept:
    """The size of a table with a record per row or per different value."""
    keys, values = records(writes)
    counts = operator.row_counts(table.id, values)
    if fed.exact or table.single:
        found = Distinct(len(keys), len(keys), len(keys))
    elif counts is None:
        rows = fed.rows * len(keys) / fed.seen if fed.seen else 0.0
        found = spread(rows, fed.error, len(keys))
    else:
        found = distinct(counts, int(counts.sum()) * fed.scale)
    return sized(what, keys, values, found)


def failures(writes: Sequence[Write], scale: float) -> tuple[Kept, float]:
    """An error table, and how many rows are in error."""
    keys, values = records(writes)
    counters = pc.sum(pc.equal(keys, COUNTER)).as_py() or 0
    seen = len(keys) - counters
    bounds = spread(seen * scale, (seen + 1) ** -0.5 if scale > 1 else 0.0, seen)
    return (
        sized(
            "errors",
            keys,
            values,
            Distinct(*(b + counters for b in (bounds.value, bounds.low, bounds.high))),
        ),
        bounds.value,
    )


def spread(rows: float, error: float, seen: int) -> Distinct:
    """Two standard errors to either side, but not below what was seen."""
    return Distinct(rows, max(min(rows, seen), rows * (1 - 2 * error)), rows * (1 + 2 * error))


def sized(what: str, keys: pa.BinaryArray, values: pa.BinaryArray, found: Distinct) -> Kept:
    written = sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in (keys, values))
    each = written / len(keys) if len(keys) else 0.0
    size = StateSize(
        what, round(found.value), round(found.value * each), round(found.low), round(found.high)
    )
    return Kept(size, len(keys), found.error)
