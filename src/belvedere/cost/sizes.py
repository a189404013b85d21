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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.cost.distinct import Distinct, distinct
from belvedere.cost.relation import Relation
from belvedere.cost.report import StateSize
from belvedere.cost.trial import records
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.errors import COUNTER
from belvedere.operators.graph import Operator
from belvedere.operators.grouping import Ints
from belvedere.operators.sinks import BagSink, counts_of
from belvedere.stores.base import TableId, Write


def row_counts(operator: Operator, table: TableId, values: pa.BinaryArray) -> Ints | None:
    """How many rows each record of a counted table stands for; None if the table has a record per
    row.
    """
    if isinstance(operator, BagSink):
        return counts_of(values)
    if isinstance(operator, Aggregate):
        if table == operator.table:
            return np.asarray(
                operator.codec.decode(values)[0].to_numpy(zero_copy_only=False), np.int64
            )
        if any(a.ordered == table and not a.by_row for a in operator.arguments):
            return counts_of(values)
    return None


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
    what: str, operator: Operator, table: TableId, writes: Sequence[Write], fed: Relation
) -> Kept:
    """The size of a table with a record per row or per different value."""
    keys, values = records(writes)
    counts = row_counts(operator, table, values)
    if fed.exact or (
        isinstance(operator, Aggregate) and not operator.groups and table == operator.table
    ):
        return sized(what, keys, values, Distinct(len(keys), len(keys), len(keys)))
    if counts is None:
        return sized(
            what,
            keys,
            values,
            spread(fed.rows * len(keys) / fed.seen if fed.seen else 0.0, fed.error, len(keys)),
        )
    return sized(what, keys, values, distinct(counts, int(counts.sum()) * fed.scale))


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
