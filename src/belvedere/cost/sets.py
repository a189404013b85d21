"""Set operations: rows that stand on both sides, from samples of the two.

    on both sides   those in both samples, times what the samples have not seen of either side's
                    different rows
    INTERSECT       on both sides                       ALL   with the copies that both have
    EXCEPT          the left's without these            ALL   with the copies that the right does
                                                              not have

Never more than the smaller side has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from belvedere.cost.distinct import Distinct, distinct
from belvedere.cost.relation import Relation
from belvedere.encoding.arrays import Ints, Mask
from belvedere.operators.set_operation import SetOperation, counts_of_sides
from belvedere.operators.sides import LEFT, RIGHT


@dataclass(frozen=True, slots=True)
class Compared:
    """Different rows of either side, one record each, and rows of the result."""

    records: Distinct
    rows: float


def compare(
    operator: SetOperation, fed: Sequence[Relation], values: pa.BinaryArray, emitted: int
) -> Compared:
    """`values` are the records of a trial: how often each row stands in either sample."""
    if all(f.exact for f in fed):
        return Compared(Distinct(len(values), len(values), len(values)), emitted)
    counts = counts_of_sides(values)  # shape (rows, 2)
    sides = [distinct(counts[:, i][counts[:, i] > 0], f.rows) for i, f in enumerate(fed)]
    both: Mask = np.asarray((counts > 0).all(axis=1))
    common = _on_both_sides(int(both.sum()), sides)
    copies = _copies(counts[both], common, fed) if operator.all and both.any() else common
    left = fed[LEFT].rows if operator.all else sides[LEFT].value
    rows = copies if operator.kind == "intersect" else max(0.0, left - copies)
    return Compared(_either(len(values), common, sides), rows)


def _on_both_sides(seen: int, sides: Sequence[Distinct]) -> float:
    common = float(seen)
    for side in sides:
        common *= side.value / max(side.low, 1.0)  # what the sample has not seen of it
    return min(common, *(side.value for side in sides))


def _either(seen: int, common: float, sides: Sequence[Distinct]) -> Distinct:
    """Different rows of both sides together."""
    left, right = sides[LEFT], sides[RIGHT]
    return Distinct(left.value + right.value - common, seen, left.high + right.high)


def _copies(counts: Ints, common: float, fed: Sequence[Relation]) -> float:
    """Rows with the copies that both sides have."""
    scaled = counts * np.array([f.scale for f in fed])
    return min(common * float(scaled.min(axis=1).mean()), *(f.rows for f in fed))
