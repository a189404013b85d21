"""Join: pairs of rows from two arranged inputs that agree on a key.

It keeps nothing: it reads what the inputs keep.

With K the rows as of e-1 that stay, D- those that go and D+ those that come, of the left (l) and
right (r) of a key:

    pairs       -:  D-l x (Kr + D-r)  +  Kl x D-r               +:  D+l x (Kr + D+r)  +  Kl x D+r
    unmatched   -:  D-l without match in Kr + D-r               +:  D+l without match in Kr + D+r
    (left)      Kl with a match in only one of Kr + D-r and Kr + D+r: - if only in the second, + if
                only in the first

`inner` has the pairs, `left` also the unmatched rows of the left, `full` those of both sides,
`anti` only the unmatched of the left, `semi` the others of the left. Bilinear, and all state is
read as of e-1, so the terms are disjoint: no pair is emitted and taken back, and what other
attempts write in e cannot interfere.

Cost: O(|D| + matches of D). Kr is read only for keys of Dl and Kl only for keys of Dr, by prefix;
without a condition a match is "the key has a row there", and unmatched rows are read only where
that flips. Rows that stay are read and joined in batches, so one row that matches a million does
not fill the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from belvedere.encoding.binaries import data_of, offsets_of, weave
from belvedere.encoding.order import order_by
from belvedere.evaluation import evaluate
from belvedere.libraries import np, pa
from belvedere.operators.arrange import BATCH, Arrange, Gone, Mask, Rows
from belvedere.operators.base import ID, KEY, WEIGHT, column_of, columns
from belvedere.operators.grouping import Ints, group
from belvedere.operators.pairs import Index, pairs
from belvedere.operators.select import Expression
from belvedere.stores.base import Shard
from belvedere.types import SqlType

LEFT, RIGHT = 0, 1
MISSING = b"\xfe"  # stands for the identity of a side that is not there
# before an identity that begins with this byte or MISSING, so that identities stay prefix-free
_ESCAPE = 0xFD
_SIGNS = (-1, +1)  # of the rows that go and those that come, in this order
_PRESERVED = {"inner": (), "left": (LEFT,), "full": (LEFT, RIGHT), "semi": (LEFT,), "anti": (LEFT,)}


@dataclass(frozen=True, slots=True)
class Join:
    """`condition` is a residual one that cannot raise, over the columns of pairs; `null_safe` says
    per key column that NULL equals NULL.

    Columns: the key, the left's rest, the right's rest (semi, anti: not the right's). `identity` is
    "both", or the side whose identity is enough because the other one has at most one match.
    """

    kind: str
    left: Arrange
    right: Arrange
    null_safe: tuple[bool, ...]
    condition: Expression | None
    identity: str

    @property
    def types(self) -> tuple[SqlType, ...]:
        return (
            self.left.types
            if self.filters
            else (*self.left.types, *self.right.types[self.right.key :])
        )

    @property
    def filters(self) -> bool:
        """It emits rows of the left, not pairs."""
        return self.kind in ("semi", "anti")

    @property
    def sides(self) -> tuple[Arrange, Arrange]:
        return self.left, self.right

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        return (changes,)  # an arrangement has put the state key in already

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        tables = [
            pa.concat_tables([arrange.nothing(), *part]).combine_chunks()
            for arrange, part in zip(self.sides, parts, strict=True)
        ]
        keys, codes = group(pa.concat_arrays([column_of(table, KEY) for table in tables]))
        places = codes[: tables[LEFT].num_rows], codes[tables[LEFT].num_rows :]
        matching = _Matching(self, shard, keys)
        deltas = [
            _delta(arrange, table, place, matching.matchable)
            for arrange, table, place in zip(self.sides, tables, places, strict=True)
        ]
        yield from _Step(matching, deltas).run()

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return self.left.state_key(changes)

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for side in _PRESERVED[self.kind] or (LEFT,):
            for keys, rows in self.sides[side].stretches(shard, low, high):
                yield from _Matching(self, shard, keys).all_of(side, rows)


class _Matching:
    """Some keys, numbered: what can match, and the changes that matches become."""

    def __init__(self, join: Join, shard: Shard, keys: pa.BinaryArray) -> None:
        self.join, self.shard, self.keys = join, shard, keys
        self.columns = join.left.keys.decode(keys)
        self.matchable = np.ones(len(keys), bool)
        for column, safe in zip(self.columns, join.null_safe, strict=True):
            if column.null_count and not safe:
                self.matchable &= column.is_valid().to_numpy(zero_copy_only=False)

    @cached_property
    def _mentioned(self) -> list[int]:
        """The columns that the condition may read."""
        assert self.join.condition is not None
        count = len(self.join.left.types) + len(self.join.right.types) - self.join.right.key
        return sorted(
            {i for i in map(int, re.findall(r"\bc(\d+)\b", self.join.condition.sql)) if i < count}
        )

    def pairs(
        self, side: int, rows: Rows, others: Rows, index: Index
    ) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of the rows of a side with the others, which are sorted by key: those that satisfy
        the condition.
        """
        for a, b in pairs(rows.place, index, BATCH):
            if self.join.condition is None:
                yield a, b
            else:
                holds = self._holds(
                    *((rows, a, others, b) if side == LEFT else (others, b, rows, a))
                )
                yield a[holds], b[holds]

    def _holds(self, left: Rows, a: Ints, right: Rows, b: Ints) -> Mask:
        assert self.join.condition is not None
        sources = [
            *((c, left.place[a]) for c in self.columns),
            *((c, a) for c in left.rest),
            *((c, b) for c in right.rest),
        ]
        names = [*(f"c{i}" for i in self._mentioned), WEIGHT]
        data = [
            *(sources[i][0].take(pa.array(sources[i][1])) for i in self._mentioned),
            pa.array(a),
        ]
        found = evaluate(
            f"SELECT {self.join.condition.sql} AS x FROM changes", pa.table(data, names=names)
        )
        return np.asarray(found.column("x").fill_null(False).to_numpy(), bool)

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
            [*data, weight, self._ids(left, right, len(there))],
            names=[*columns(len(data)), WEIGHT, ID],
        )

    def _ids(self, left: Rows | None, right: Rows | None, count: int) -> pa.BinaryArray:
        pieces: list[pa.Array | bytes] = []
        for side, rows in ((LEFT, left), (RIGHT, right)):
            if self.join.identity in ("both", ("left", "right")[side]):
                can_miss = self.join.kind == "full" or (self.join.kind == "left" and side == RIGHT)
                pieces.append(
                    MISSING if rows is None else _escaped(rows.ids) if can_miss else rows.ids
                )
        return weave(pieces, count)

    def alone(self, side: int, rows: Rows, weights: Ints) -> Iterator[pa.Table]:
        """Changes of rows of one side, without a partner."""
        for start in range(0, len(rows), BATCH):
            part = rows.slice(start, BATCH)
            left, right = (part, None) if side == LEFT else (None, part)
            yield self.changes(left, right, weights[start : start + BATCH])

    def joined(
        self, side: int, rows: Rows, a: Ints, others: Rows, b: Ints, weight: int
    ) -> pa.Table:
        one, other = rows.take(a), others.take(b)
        return self.changes(*((one, other) if side == LEFT else (other, one)), weight)

    def matched(self, side: int, rows: Rows, gone: Gone | None = None) -> Mask:
        """Which rows of a side, sorted by key, have a match among the other side's rows as of e-1
        that are not gone.
        """
        other = self.join.sides[1 - side]
        wanted = _distinct(rows.place[self.matchable[rows.place]])
        if self.join.condition is None:
            return other.present(self.shard, self.keys, wanted, gone)[rows.place]
        found, index = np.zeros(len(rows), bool), Index.of(rows.place, len(self.keys))
        for partners in other.rows(self.shard, self.keys, wanted, gone):
            for _, b in self.pairs(1 - side, partners, rows, index):
                found[b] = True
        return found

    def all_of(self, side: int, rows: Rows) -> Iterator[pa.Table]:
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


@dataclass(frozen=True, slots=True)
class _Delta:
    """What changes on one side: the rows that go and those that come, sorted by key; only those
    that can match are in the index.
    """

    rows: tuple[Rows, Rows]
    index: tuple[Index, Index]
    gone: Gone

    @property
    def touched(self) -> Mask:
        return np.asarray((self.index[0].count > 0) | (self.index[1].count > 0))

    @property
    def one_sided(self) -> Mask:
        """Keys of which the changes have rows only before, or only after."""
        return np.asarray((self.index[0].count > 0) != (self.index[1].count > 0))


def _delta(arrange: Arrange, changes: pa.Table, place: Ints, matchable: Mask) -> _Delta:
    rows, tables, indexes = [], [], []
    weights = changes.column(WEIGHT).to_numpy()
    for sign in _SIGNS:
        mine = np.flatnonzero(weights == sign)
        mine = mine[order_by(place[mine])]
        part = changes.take(pa.array(mine)).combine_chunks()
        rest = tuple(column_of(part, f"c{i}") for i in range(arrange.key, len(arrange.types)))
        rows.append(Rows(place[mine], rest, column_of(part, ID)))
        tables.append(part)
        count = np.bincount(place[mine], minlength=len(matchable))
        indexes.append(Index(np.cumsum(count) - count, np.where(matchable, count, 0)))
    gone = Gone(
        rows[0].place,
        arrange.record_key(tables[0]),
        np.bincount(rows[0].place, minlength=len(matchable)),
    )
    return _Delta((rows[0], rows[1]), (indexes[0], indexes[1]), gone)


class _Step:
    """One epoch of one slot.

    Without a condition matches are known by key: `present` has the keys that keep rows on a side,
    as far as that was asked. With one they are known by row: `found` says per side and sign which
    changed rows have a match.
    """

    def __init__(self, matching: _Matching, deltas: Sequence[_Delta]) -> None:
        self.matching, self.deltas, self.join = matching, deltas, matching.join
        self.by_key = self.join.condition is None
        self.pairs = not (self.by_key and self.join.filters)  # whether pairs have to be looked at
        self.found = [[np.zeros(len(rows), bool) for rows in delta.rows] for delta in deltas]
        self.present = [np.zeros(len(matching.keys), bool) for _ in deltas]
        self.flips = [np.zeros(len(matching.keys), bool) for _ in deltas]

    def run(self) -> Iterator[pa.Table]:
        if self.by_key:
            self._look_up()
        yield from self._changed_with_changed()
        for side in (RIGHT, LEFT):
            yield from self._kept_with_changed(side)
        for side in _PRESERVED[self.join.kind]:
            yield from self._changed_alone(side)

    def _look_up(self) -> None:
        """Which keys gain their first or lose their last row, so that rows that stay on the other
        side flip.
        """
        for side in _PRESERVED[self.join.kind]:
            other = self.deltas[1 - side]
            asked = (
                other.one_sided | self.deltas[side].touched
                if self.join.filters
                else other.one_sided
            )
            arrange = self.join.sides[1 - side]
            self.present[1 - side] = arrange.present(
                self.matching.shard, self.matching.keys, np.flatnonzero(asked), other.gone
            )
            self.flips[side] = other.one_sided & ~self.present[1 - side]

    def _changed_with_changed(self) -> Iterator[pa.Table]:
        left, right = self.deltas
        for sign, weight in enumerate(_SIGNS if self.pairs else ()):
            for a, b in self.matching.pairs(
                LEFT, left.rows[sign], right.rows[sign], right.index[sign]
            ):
                self.found[LEFT][sign][a] = True
                self.found[RIGHT][sign][b] = True
                if not self.join.filters:
                    yield self.matching.joined(
                        LEFT, left.rows[sign], a, right.rows[sign], b, weight
                    )

    def _kept_with_changed(self, side: int) -> Iterator[pa.Table]:
        """Rows that stay on a side, against what changes on the other."""
        other = self.deltas[1 - side]
        wanted = np.flatnonzero(other.touched if self.pairs else self.flips[side])
        for kept in self.join.sides[side].rows(
            self.matching.shard, self.matching.keys, wanted, self.deltas[side].gone
        ):
            self.present[side][kept.place] = True
            matched = [np.zeros(len(kept), bool) for _ in _SIGNS]
            for sign, weight in enumerate(_SIGNS if self.pairs else ()):
                for a, b in self.matching.pairs(side, kept, other.rows[sign], other.index[sign]):
                    matched[sign][a] = True
                    self.found[1 - side][sign][b] = True
                    if not self.join.filters:
                        yield self.matching.joined(side, kept, a, other.rows[sign], b, weight)
            if side in _PRESERVED[self.join.kind]:
                yield from self._flipped(side, kept, *matched)

    def _flipped(self, side: int, kept: Rows, before: Mask, after: Mask) -> Iterator[pa.Table]:
        """Rows that stay and have a match only before or only after, given what the changes alone
        say.
        """
        if self.by_key:
            rows = np.flatnonzero(self.flips[side][kept.place])
            before = self.deltas[1 - side].index[0].count[kept.place] > 0
        else:
            rows = np.flatnonzero(before != after)
            rows = rows[~self.matching.matched(side, kept.take(rows), self.deltas[1 - side].gone)]
        weights = np.where(before[rows] == (self.join.kind != "semi"), 1, -1)
        yield from self.matching.alone(side, kept.take(rows), weights)

    def _changed_alone(self, side: int) -> Iterator[pa.Table]:
        for sign, weight in enumerate(_SIGNS):
            rows, found = self.deltas[side].rows[sign], self.found[side][sign]
            if self.by_key:
                found = (self.present[1 - side] | (self.deltas[1 - side].index[sign].count > 0))[
                    rows.place
                ]
            chosen = rows.take(np.flatnonzero(found == (self.join.kind == "semi")))
            yield from self.matching.alone(side, chosen, np.full(len(chosen), weight))


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
