"""Matching: which rows under some keys of two arrangements match, and what becomes of the matches.

It is what a step of a join and its output have in common; it knows nothing of what changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from belvedere.encoding.arrays import BATCH, Ints, Mask
from belvedere.encoding.binaries import data_of, offsets_of, weave
from belvedere.evaluation import evaluate
from belvedere.libraries import np, pa
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.pairs import Index, pairs
from belvedere.operators.rows import Gone, Rows
from belvedere.operators.select import Expression, columns_read
from belvedere.operators.sides import LEFT, RIGHT, Side, other
from belvedere.stores.base import Shard

if TYPE_CHECKING:
    from belvedere.operators.join import Join

JoinKind = Literal["inner", "left", "full", "semi", "anti"]
JoinIdentity = Literal["both", "left", "right"]
MISSING = b"\xfe"  # stands for the identity of a side that is not there
# before an identity that begins with this byte or MISSING, so that identities stay prefix-free
_ESCAPE = 0xFD
# the sides whose rows are emitted alone, without a match or because of one
PRESERVED: dict[JoinKind, tuple[Side, ...]] = {
    "inner": (),
    "left": (LEFT,),
    "full": (LEFT, RIGHT),
    "semi": (LEFT,),
    "anti": (LEFT,),
}
# the sides whose identity is part of a pair's
IDENTIFYING: dict[JoinIdentity, tuple[Side, ...]] = {
    "both": (LEFT, RIGHT),
    "left": (LEFT,),
    "right": (RIGHT,),
}


def join_kind(word: str) -> JoinKind:
    """The kind of join that a word of SQL names."""
    for kind in PRESERVED:
        if kind == word.lower():
            return kind
    raise TypeError(f"there is no {word} join")


class Matching:
    """Some keys, numbered: what can match, and the changes that matches become."""

    def __init__(self, join: Join, shard: Shard | None, keys: pa.BinaryArray) -> None:
        self.join, self._shard, self.keys = join, shard, keys
        self.columns = join.left.keys.decode(keys)
        self.matchable = join.able_to_match(self.columns, len(keys))

    @property
    def shard(self) -> Shard:
        """Where the inputs keep their rows; who matches rows that he has already gives none."""
        assert self._shard is not None
        return self._shard

    def pairs(
        self, side: Side, rows: Rows, others: Rows, index: Index
    ) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of the rows of a side with the others, which are sorted by key: those that satisfy
        the condition.
        """
        condition = self.join.condition
        for a, b in pairs(rows.place, index, BATCH):
            if condition is None:
                yield a, b
                continue
            sides = (rows, a, others, b) if side == LEFT else (others, b, rows, a)
            holds = self._holds(condition, *sides)
            yield a[holds], b[holds]

    def _holds(self, condition: Expression, left: Rows, a: Ints, right: Rows, b: Ints) -> Mask:
        """Which pairs satisfy the condition: rows a of the left with rows b of the right."""
        # every column of a pair, and which row of it each pair takes
        sources = [
            *((column, left.place[a]) for column in self.columns),
            *((column, a) for column in left.rest),
            *((column, b) for column in right.rest),
        ]
        read = columns_read(condition)
        data = [sources[i][0].take(pa.array(sources[i][1])) for i in read]
        # a query needs a table with a column, also if the condition reads none
        pairs = pa.table([*data, pa.array(a)], names=[*(f"c{i}" for i in read), WEIGHT])
        holds = evaluate(f"SELECT {condition.sql} AS x FROM changes", pairs)
        return np.asarray(holds.column("x").fill_null(False).to_numpy(), bool)

    def changes(self, left: Rows | None, right: Rows | None, weights: Ints | int) -> pa.Table:
        """Changes of pairs, row by row; a side that is missing has NULL columns."""
        join, there = self.join, left if left is not None else right
        assert there is not None
        at = pa.array(there.place)
        data = [column.take(at) for column in self.columns]
        for rows, arrange in zip(
            (left, right), join.sides[: 1 if join.filters else 2], strict=False
        ):
            rest = arrange.types[arrange.key :]
            data += (
                rows.rest
                if rows is not None
                else [pa.nulls(len(there), kind.arrow) for kind in rest]
            )
        weight = pa.array(np.broadcast_to(np.asarray(weights, np.int64), len(there)))
        return pa.table(
            [*data, weight, self.ids(left, right, len(there))],
            names=[*columns(len(data)), WEIGHT, ID],
        )

    def ids(self, left: Rows | None, right: Rows | None, count: int) -> pa.BinaryArray:
        """The identities of pairs, row by row; a side that is missing has None."""
        pieces: list[pa.Array | bytes] = []
        for side in IDENTIFYING[self.join.identity]:
            rows = (left, right)[side]
            # a row may be without a partner on this side if the other one is preserved
            can_miss = other(side) in self.join.outer
            if rows is None:
                pieces.append(MISSING)
            else:
                pieces.append(_escaped(rows.ids) if can_miss else rows.ids)
        return weave(pieces, count)

    def alone(self, side: Side, rows: Rows, weights: Ints) -> Iterator[pa.Table]:
        """Changes of rows of one side, without a partner."""
        for start in range(0, len(rows), BATCH):
            part = rows.slice(start, BATCH)
            left, right = (part, None) if side == LEFT else (None, part)
            yield self.changes(left, right, weights[start : start + BATCH])

    def joined(
        self, side: Side, rows: Rows, a: Ints, others: Rows, b: Ints, weight: int
    ) -> pa.Table:
        one, other = rows.take(a), others.take(b)
        return self.changes(*((one, other) if side == LEFT else (other, one)), weight)

    def matched(self, side: Side, rows: Rows, gone: Gone | None = None) -> Mask:
        """Which rows of a side, sorted by key, have a match among the other side's rows as of e-1
        that are not gone.
        """
        opposite = self.join.sides[other(side)]
        wanted = _distinct(rows.place[self.matchable[rows.place]])
        if self.join.condition is None:
            return opposite.present(self.shard, self.keys, wanted, gone)[rows.place]
        found, index = np.zeros(len(rows), bool), Index.of(rows.place, len(self.keys))
        for partners in opposite.rows(self.shard, self.keys, wanted, gone):
            for _, b in self.pairs(other(side), partners, rows, index):
                found[b] = True
        return found

    def all_of(self, side: Side, rows: Rows) -> Iterator[pa.Table]:
        """The join's rows as of e-1 that come from these rows of a side; of the right only the
        unmatched ones.
        """
        if self.join.filters or side == RIGHT:
            found = self.matched(side, rows)
        else:
            found, index = np.zeros(len(rows), bool), Index.of(rows.place, len(self.keys))
            for partners in self.join.right.rows(
                self.shard, self.keys, np.flatnonzero(self.matchable)
            ):
                for a, b in self.pairs(RIGHT, partners, rows, index):
                    found[b] = True
                    yield self.joined(RIGHT, partners, a, rows, b, +1)
        if self.join.kind != "inner":
            chosen = rows.take(np.flatnonzero(found == (self.join.kind == "semi")))
            yield from self.alone(side, chosen, np.ones(len(chosen), np.int64))


def _distinct(place: Ints) -> Ints:
    """Of numbers that rise."""
    return np.asarray(place[np.append(True, np.diff(place) > 0)[: len(place)]])


def _escaped(ids: pa.BinaryArray) -> pa.BinaryArray:
    """Identities none of which begins with MISSING; only those of joins within
    joins need a change.
    """
    offsets = offsets_of(ids)
    lengths, data = np.diff(offsets), data_of(ids)
    first = np.zeros(len(ids), np.uint8)
    first[lengths > 0] = data[(offsets[:-1] - offsets[0])[lengths > 0]]
    if not (first >= _ESCAPE).any():
        return ids
    mark = pa.array([b"", bytes((_ESCAPE,))], pa.binary()).take(
        pa.array((first >= _ESCAPE).astype(np.int8))
    )
    return weave([mark, ids], len(ids))
