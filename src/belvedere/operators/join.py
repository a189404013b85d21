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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from belvedere.encoding.arrays import Ints, Mask
from belvedere.encoding.order import order_by
from belvedere.libraries import np, pa
from belvedere.operators import partners
from belvedere.operators.arrange import Arrange, arranged
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Derived,
    Identity,
    KeptTable,
    NewId,
    Operator,
    Wording,
    column_of,
)
from belvedere.operators.grouping import group
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted
from belvedere.operators.matching import IDENTIFYING, PRESERVED, JoinIdentity, JoinKind, Matching
from belvedere.operators.pairs import Index
from belvedere.operators.rows import Gone, Rows
from belvedere.operators.select import Expression
from belvedere.operators.sides import LEFT, RIGHT, Side, other
from belvedere.stores.base import Shard
from belvedere.types import SqlType

_SIGNS = (-1, +1)  # of the rows that go and those that come, in this order


@dataclass(frozen=True, slots=True)
class Join(Derived):
    """`condition` is a residual one that cannot raise, over the columns of pairs; `null_safe` says
    per key column that NULL equals NULL.

    Columns: the key, the left's rest, the right's rest (semi, anti: not the right's). `identity` is
    "both", or the side whose identity is enough because the other one has at most one match.
    """

    kind: JoinKind
    left: Arrange
    right: Arrange
    null_safe: tuple[bool, ...]
    condition: Expression | None
    identity: JoinIdentity

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
    def outer(self) -> tuple[Side, ...]:
        """The sides whose rows without a match are emitted with NULLs."""
        return () if self.filters else PRESERVED[self.kind]

    @property
    def sides(self) -> tuple[Arrange, Arrange]:
        return self.left, self.right

    def with_tables(self, new_id: NewId) -> Join:
        left, right = (side.with_tables(new_id) for side in self.sides)
        return replace(self, left=left, right=right)

    def with_inputs(self, inputs: Sequence[Operator]) -> Join:
        left, right = (arranged(operator) for operator in inputs)
        return replace(self, left=left, right=right)

    def kept(self) -> tuple[KeptTable, ...]:
        return tuple(dict.fromkeys((*self.left.kept(), *self.right.kept())))

    def explain(self, words: Wording) -> str:
        left, right = (columns_below[: self.left.key] for columns_below in words.inputs)
        signs = ["<=>" if safe else "=" for safe in self.null_safe]
        tests = (f"{a} {sign} {b}" for a, sign, b in zip(left, signs, right, strict=True))
        on = " AND ".join(tests) or "one row on the right"
        return f"{self.kind}, {on}" + (f", and {self.condition.text}" if self.condition else "")

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        left, right = inputs
        return left if self.filters else (*left, *right[self.right.key :])

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return tuple(part for side in IDENTIFYING[self.identity] for part in inputs[side])

    def matchable(self, keys: pa.BinaryArray) -> Mask:
        """Which keys can match at all: NULL equals nothing, unless the key column is null-safe."""
        return self.able_to_match(self.left.keys.decode(keys), len(keys))

    def able_to_match(self, key_columns: Sequence[pa.Array], count: int) -> Mask:
        """The same of so many keys, by their columns."""
        able = np.ones(count, bool)
        for column, safe in zip(key_columns, self.null_safe, strict=True):
            if column.null_count and not safe:
                able &= column.is_valid().to_numpy(zero_copy_only=False)
        return able

    # ------------------------------------------------------------ of which rows its rows are made
    # (`operators.partners` has what is longer than a line)

    @property
    def grows(self) -> bool:
        return self.kind in ("inner", "semi")

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        return partners.sought(self, wanted)

    def needs(self, wanted: Wanted, below: Below) -> tuple[Wanted, ...]:
        return partners.needs(self, wanted, below)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        return partners.made_of(self, made, below)

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        return partners.why_not(self, wanted, below)

    # ------------------------------------------------------------ what it does

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        return (changes,)  # an arrangement has put the state key in already

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        tables = [
            pa.concat_tables([arrange.nothing(), *part]).combine_chunks()
            for arrange, part in zip(self.sides, parts, strict=True)
        ]
        keys, codes = group(pa.concat_arrays([column_of(table, KEY) for table in tables]))
        places = codes[: tables[LEFT].num_rows], codes[tables[LEFT].num_rows :]
        matching = Matching(self, shard, keys)
        deltas = [
            _delta(arrange, table, place, matching.matchable)
            for arrange, table, place in zip(self.sides, tables, places, strict=True)
        ]
        yield from _Step(matching, deltas).run()

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return self.left.state_key(changes)

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for side in PRESERVED[self.kind] or (LEFT,):
            for keys, rows in self.sides[side].stretches(shard, low, high):
                yield from Matching(self, shard, keys).all_of(side, rows)


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
    """The changes of a side; `place` is the number of each change's key."""
    keys = len(matchable)
    weights = changes.column(WEIGHT).to_numpy()
    (went, lost), (came, _) = (
        _changed_rows(arrange, changes, place, np.flatnonzero(weights == sign)) for sign in _SIGNS
    )
    indexes = [_index(rows.place, matchable) for rows in (went, came)]
    gone = Gone(went.place, arrange.record_key(lost), np.bincount(went.place, minlength=keys))
    return _Delta((went, came), (indexes[0], indexes[1]), gone)


def _changed_rows(
    arrange: Arrange, changes: pa.Table, place: Ints, mine: Ints
) -> tuple[Rows, pa.Table]:
    """The changes of these numbers, sorted by key: as rows, and as they are."""
    mine = mine[order_by(place[mine])]
    part = changes.take(pa.array(mine)).combine_chunks()
    rest = tuple(column_of(part, f"c{i}") for i in range(arrange.key, len(arrange.types)))
    return Rows(place[mine], rest, column_of(part, ID)), part


def _index(place: Ints, matchable: Mask) -> Index:
    """Rows by key, of keys that can match; the others keep their place but are not there."""
    count = np.bincount(place, minlength=len(matchable))
    return Index(np.cumsum(count) - count, np.where(matchable, count, 0))


class _Step:
    """One epoch of one slot.

    Without a condition matches are known by key: `present` has the keys that keep rows on a side,
    as far as that was asked. With one they are known by row: `found` says per side and sign which
    changed rows have a match.
    """

    def __init__(self, matching: Matching, deltas: Sequence[_Delta]) -> None:
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
        for side in PRESERVED[self.join.kind]:
            yield from self._changed_alone(side)

    def _look_up(self) -> None:
        """Which keys gain their first or lose their last row, so that rows that stay on the other
        side flip.
        """
        matching = self.matching
        for side in PRESERVED[self.join.kind]:
            opposite = self.deltas[other(side)]
            asked = opposite.one_sided
            if self.join.filters:  # rows of this side are not paired, so they have to be asked for
                asked = asked | self.deltas[side].touched
            present = self.join.sides[other(side)].present(
                matching.shard, matching.keys, np.flatnonzero(asked), opposite.gone
            )
            self.present[other(side)] = present
            self.flips[side] = opposite.one_sided & ~present

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

    def _kept_with_changed(self, side: Side) -> Iterator[pa.Table]:
        """Rows that stay on a side, against what changes on the other."""
        changed = self.deltas[other(side)]
        wanted = np.flatnonzero(changed.touched if self.pairs else self.flips[side])
        for kept in self.join.sides[side].rows(
            self.matching.shard, self.matching.keys, wanted, self.deltas[side].gone
        ):
            self.present[side][kept.place] = True
            matched = [np.zeros(len(kept), bool) for _ in _SIGNS]
            for sign, weight in enumerate(_SIGNS if self.pairs else ()):
                for a, b in self.matching.pairs(
                    side, kept, changed.rows[sign], changed.index[sign]
                ):
                    matched[sign][a] = True
                    self.found[other(side)][sign][b] = True
                    if not self.join.filters:
                        yield self.matching.joined(side, kept, a, changed.rows[sign], b, weight)
            if side in PRESERVED[self.join.kind]:
                yield from self._flipped(side, kept, *matched)

    def _flipped(self, side: Side, kept: Rows, before: Mask, after: Mask) -> Iterator[pa.Table]:
        """Rows that stay and have a match only before or only after, given what the changes alone
        say.
        """
        if self.by_key:
            rows = np.flatnonzero(self.flips[side][kept.place])
            before = self.deltas[other(side)].index[0].count[kept.place] > 0
        else:
            rows = np.flatnonzero(before != after)
            rows = rows[
                ~self.matching.matched(side, kept.take(rows), self.deltas[other(side)].gone)
            ]
        weights = np.where(before[rows] == (self.join.kind != "semi"), 1, -1)
        yield from self.matching.alone(side, kept.take(rows), weights)

    def _changed_alone(self, side: Side) -> Iterator[pa.Table]:
        for sign, weight in enumerate(_SIGNS):
            rows, found = self.deltas[side].rows[sign], self.found[side][sign]
            if self.by_key:
                found = (
                    self.present[other(side)] | (self.deltas[other(side)].index[sign].count > 0)
                )[rows.place]
            chosen = rows.take(np.flatnonzero(found == (self.join.kind == "semi")))
            yield from self.matching.alone(side, chosen, np.full(len(chosen), weight))
