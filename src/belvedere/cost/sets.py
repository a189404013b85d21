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
from belvedere.encoding.binaries import data_of
from belvedere.operators.set_operation import LEFT, RIGHT, SetOperation


@dataclass(frozen=True, slots=True)
class Compared:
    """Different rows of either side, one record each, and rows of the result."""

    records: Distinct
    rows: float


def compared(
    operator: SetOperation, fed: Sequence[Relation], values: pa.BinaryArray, emitted: int
) -> Compared:
    if all(f.exact for f in fed):
        return Compared(Distinct(len(values), len(values), len(values)), emitted)
    counts = np.frombuffer(data_of(values), np.int64).reshape(-1, 2)
    sides = [distinct(counts[:, i][counts[:, i] > 0], f.rows) for i, f in enumerate(fed)]
    both = (counts > 0).all(axis=1)
    common = float(both.sum())
    for side in sides:
        common *= side.value / max(side.low, 1.0)
    most = min(side.value for side in sides)
    common = min(common, most)
    either = Distinct(
        sides[LEFT].value + sides[RIGHT].value - common,
        len(values),
        sides[LEFT].high + sides[RIGHT].high,
    )
    copies = common
    if operator.all and both.any():
        scaled = counts[both] * np.array([f.scale for f in fed])
        copies = min(common * float(scaled.min(axis=1).mean()), *(f.rows for f in fed))
    left = fed[LEFT].rows if operator.all else sides[LEFT].value
    return Compared(either, copies if operator.kind == "intersect" else max(0.0, left - copies))
