"""Matches of a join: how many pairs there are, how many rows have one, and which keys have the most
rows.

With l and r the rows of a key in the samples of the two sides, S and T what a row of them stands
for:

    pairs        sum of l r S T          a pair is in the samples if both of its rows are
    same row     l r S, not l r S T      where both sides hold rows of one base table, a row meets
                                         itself with one chance
    with match   the rows whose key is on the other side, times the share of that side's keys that
                 the sample has not seen

A sample that is too small to have met enough pairs says nothing; then every key of the side with
fewer keys is taken to be on the other side: pairs = L R / keys. A side with one row per key bounds
the pairs by the rows of the other side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.cost.distinct import distinct, frequencies
from belvedere.cost.relation import Relation
from belvedere.cost.report import HeavyKey
from belvedere.cost.sample import ranks
from belvedere.encoding.arrays import Ints
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import ID
from belvedere.operators.grouping import group
from belvedere.operators.join import Join
from belvedere.operators.sides import LEFT, RIGHT, Side, other

PAIRS = 200_000  # of the samples that are really made; a join with more of them is thinned
HEAVIEST = 5
_ENOUGH = 10  # pairs or rows that must be in the samples to be believed


@dataclass(frozen=True, slots=True)
class JoinedSide:
    """One side of a join: rows per key in the sample (0 where a NULL keeps the key from matching),
    and what they stand for.
    """

    relation: Relation
    arrange: Arrange
    place: Ints  # the number of each row's key
    counts: Ints

    @property
    def rows(self) -> float:
        """Rows that can match."""
        return (
            self.relation.rows * float(self.counts.sum()) / self.relation.seen
            if self.relation.seen
            else 0.0
        )

    @property
    def keys(self) -> float:
        return (
            self.rows
            if self.arrange.unique
            else distinct(self.counts[self.counts > 0], self.rows).value
        )

    @property
    def chance(self) -> float:
        """0 if every row is in the sample, towards 1 the smaller the sample."""
        return 1 - 1 / self.relation.scale


class Meeting:
    """The two sides of a join, key by key."""

    def __init__(self, join: Join, left: Relation, right: Relation) -> None:
        self.join = join
        self.keys, codes = group(pa.concat_arrays([left.keys, right.keys]))
        matchable = join.matchable(self.keys)
        places = codes[: left.seen], codes[left.seen :]
        counts = [
            np.where(matchable, np.bincount(place, minlength=len(self.keys)), 0) for place in places
        ]
        self.sides = (
            JoinedSide(left, join.left, places[LEFT], counts[LEFT]),
            JoinedSide(right, join.right, places[RIGHT], counts[RIGHT]),
        )
        self.exact = left.exact and right.exact
        self.seen = int(counts[LEFT] @ counts[RIGHT])

    def pairs(self) -> float:
        """Pairs that agree on the key, whatever a condition says."""
        if self.exact:
            return self.seen
        left, right = self.sides
        both = left.relation.scale * right.relation.scale
        pairs = (self.seen - self.same) * both + self.same * left.relation.scale
        contained = left.rows * right.rows / max(left.keys, right.keys, 1.0)
        if self.seen < _ENOUGH and contained / both < _ENOUGH:
            pairs = contained
        if right.arrange.unique:
            pairs = min(pairs, left.rows)
        return min(pairs, right.rows) if left.arrange.unique else pairs

    def satisfying(self, pairs: float, thinned: Meeting, emitted: Sequence[pa.Table]) -> float:
        """Those of the pairs that satisfy a condition, when `emitted` are left of the pairs of a
        thinned meeting.

        Pairs of a row with itself are apart: a condition such as a.x <> b.x holds for none of them,
        and in samples they are many.
        """
        left = self.sides[LEFT].relation
        same = self.same * left.scale
        itself = (
            pc.binary_join_element_wise(left.ids, left.ids, b"")
            if self.same
            else pa.array([], pa.binary())
        )
        kept = sum(table.num_rows for table in emitted)
        kept_same = sum(
            pc.sum(pc.is_in(table.column(ID), itself)).as_py() or 0 for table in emitted
        )
        others = max(0.0, pairs - same) * (kept - kept_same) / max(1, thinned.seen - thinned.same)
        return float(others + same * kept_same / max(1, thinned.same))

    @cached_property
    def same(self) -> int:
        """Pairs of a base row with itself."""
        left, right = (side.relation for side in self.sides)
        if not left.origin or left.origin != right.origin:
            return 0
        ids = [pc.binary_join_element_wise(r.keys, r.ids, b"") for r in (left, right)]
        able = pa.array(self.sides[LEFT].counts[self.sides[LEFT].place] > 0)
        return pc.sum(pc.is_in(ids[LEFT].filter(able), ids[RIGHT])).as_py() or 0

    def error(self, rows: float, matched: float) -> float:
        """The relative standard error of the result: counts of a key scatter by chance, and with
        them all pairs of the key.

        Rows of the left that have a match, or none, depend on what is known of the right's keys.
        """
        left, right = self.sides
        if self.exact:
            return 0.0
        if self.join.kind == "left" and right.arrange.unique:
            return left.relation.error
        (a, x), (b, y) = ((side.counts.astype(np.float64), side.chance) for side in self.sides)
        scatter = float((a * b * b * x + a * a * b * y + a * b * x * y).sum())
        chance = math.sqrt(scatter) / self.seen if self.seen >= _ENOUGH else 1.0
        found = math.hypot(chance, left.relation.error, right.relation.error)
        if not self.join.filters:
            return found
        return (
            math.hypot(found, distinct(b[b > 0].astype(np.int64), right.rows).error)
            * matched
            / max(rows, 1.0)
        )

    def alone(self) -> list[float]:
        """Rows of each side that agree with none of the other on the key."""
        pairs = self.pairs()
        return [
            self.sides[number].relation.rows - self.matched(number, pairs)
            for number in (LEFT, RIGHT)
        ]

    def matched(self, number: Side, pairs: float) -> float:
        """Rows of a side that have a match."""
        own, opposite = self.sides[number], self.sides[other(number)]
        seen = int(own.counts[opposite.counts > 0].sum())
        if self.exact:
            return seen
        met = max(1, int((opposite.counts > 0).sum()))
        unseen = max(1.0, opposite.keys / met)
        rows = seen * own.relation.scale * unseen
        contained = own.rows * min(1.0, opposite.keys / max(own.keys, 1.0))
        if seen < _ENOUGH and contained / (own.relation.scale * unseen) < _ENOUGH:
            rows = contained
        return min(rows, own.rows, pairs)

    def heaviest(self, number: Side) -> tuple[HeavyKey, ...]:
        side = self.sides[number]
        if side.arrange.unique:
            return ()
        rows = frequencies(side.counts, side.rows, side.keys)
        first = [
            i
            for i in np.argsort(-side.counts, kind="stable")[:HEAVIEST].tolist()
            if side.counts[i] and rows[i] >= 2
        ]
        values = [
            column.to_pylist()
            for column in side.arrange.keys.decode(self.keys.take(pa.array(first, pa.int64())))
        ]
        found: list[tuple[Any, ...]] = (
            list(zip(*values, strict=True)) if values else [()] * len(first)
        )
        return tuple(HeavyKey(key, round(rows[i])) for key, i in zip(found, first, strict=True))

    def thinned(
        self, salt: int, unmatched: Sequence[float | None], pairs: float
    ) -> tuple[Relation, Relation]:
        """The two sides for the trial: not too many pairs, and rows without a match only in the
        proportion that is expected.

        (Where the other side is sampled, far too many rows seem to have no match.)
        """
        share = min(1.0, PAIRS / max(self.seen, 1))
        found = []
        for number in (LEFT, RIGHT):
            side = self.sides[number]
            keep = np.full(len(side.place), share if number == LEFT else 1.0)
            alone = self.sides[other(number)].counts[side.place] * side.counts[side.place] == 0
            wanted = unmatched[number]
            if wanted is not None and not self.exact and self.seen and alone.any():
                keep[alone] *= min(1.0, self.seen * wanted / pairs / int(alone.sum()))
            found.append(_thin(side.relation, keep, salt))
        return found[LEFT], found[RIGHT]


def _thin(relation: Relation, keep: np.ndarray[Any, np.dtype[np.float64]], salt: int) -> Relation:
    if (keep >= 1).all():
        return relation
    mask = ranks(relation.ids, salt) < keep * 2.0**64
    starts = np.cumsum([0, *(table.num_rows for table in relation.sample)]).tolist()
    parts = [
        t.filter(pa.array(mask[a:b]))
        for t, a, b in zip(relation.sample, starts, starts[1:], strict=False)
    ]
    return replace(relation, sample=tuple(part for part in parts if part.num_rows), exact=False)
