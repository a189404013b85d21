"""Partners: of which rows of its two inputs a row of a join is made.

    inner        both rows of the pair
    left, full   both rows, or the one without a match
    semi         the row of the left, and all rows of the right that match it
    anti         the row of the left: what makes it there is that the right has no match

A pair decides for both its rows. Where the other side is preserved, a row that goes leaves a row
with NULLs behind, so it decides only if it was the one match and has a value that matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from belvedere.encoding.arrays import Ints, Mask
from belvedere.encoding.order import order_by
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, column_of, columns
from belvedere.operators.grouping import group
from belvedere.operators.lineage import EVERYTHING, Below, Gap, Pieces, Wanted
from belvedere.operators.matching import PRESERVED, Matching
from belvedere.operators.pairs import Index
from belvedere.operators.rows import Rows
from belvedere.operators.sides import LEFT, RIGHT, Side, other

if TYPE_CHECKING:
    from belvedere.operators.join import Join

_Pair: TypeAlias = "tuple[Ints, Ints]"  # numbers of rows of the left, and of the right


def sought(join: Join, wanted: Wanted) -> tuple[Wanted | None, ...]:
    """A row of the result always has its row of the left, but for those that a full join adds; one
    of the right only in a pair.
    """
    key = range(join.left.key)
    found: list[Wanted | None] = []
    for side in (LEFT, RIGHT):
        mine = _of_side(join, side)
        rest = [i for i in mine if i not in key]
        said = wanted.not_null(rest) if other(side) in join.outer else wanted
        asked = said.among(mine)
        if _tells(join, side) and wanted.ids is not None:
            asked = Wanted(asked.columns, asked.types, asked.values, wanted.ids)
        surely = other(side) not in join.outer or any(i in said.columns for i in rest)
        if side == RIGHT and join.filters:
            surely = join.kind == "semi"
        found.append(asked if surely else None)
    return tuple(found)


def needs(join: Join, wanted: Wanted, below: Below) -> tuple[Wanted, ...]:
    """All rows of both sides under the keys of what is wanted."""
    if wanted.keys(join.left.key) is not None:
        both = wanted.only(range(join.left.key))
        return both, both
    said = [each or EVERYTHING for each in sought(join, wanted)]
    if join.kind == "full":
        found = [_keys_of(join, below.find(side, said[side])) for side in (LEFT, RIGHT)]
        both = _either(join, found)
        return both, both
    side = RIGHT if _better_right(join, wanted, below) else LEFT
    both = _keys_of(join, below.find(side, said[side]))
    return both, both


def made_of(join: Join, made: Pieces, below: Below) -> tuple[Pieces, ...]:
    both = _keys_of(join, made.rows)
    meeting = _Meeting(join, [below.find(side, both) for side in (LEFT, RIGHT)])
    found = _Found(meeting, made)
    found.pairs()
    for side in PRESERVED[join.kind] if join.kind != "semi" else ():
        _note_alone(join, side, found.alone(side), below)
    return found.pieces()


def why_not(join: Join, wanted: Wanted, below: Below) -> Gap:
    said = sought(join, wanted)
    first: Side = RIGHT if _better_right(join, wanted, below) else LEFT
    start = said[first] or EVERYTHING
    rows = below.find(first, start)
    if not rows.num_rows:
        return Gap("", first, start)
    keys = _keys_of(join, rows)
    partners = below.find(other(first), keys)
    meeting = _Meeting(join, [rows, partners] if first == LEFT else [partners, rows])
    met = [pair for pair, _ in meeting.pairs()]
    if join.kind == "anti":
        matching = np.unique(np.concatenate([b for _, b in met])) if met else np.empty(0, np.int64)
        return Gap("a match keeps it out", RIGHT, rows=partners.take(pa.array(matching)))
    if not partners.num_rows:
        return Gap(f"{rows.num_rows} row(s) wait for a match", other(first), keys)
    if not met:
        words = join.condition.text if join.condition is not None else "the key"
        return Gap(f"{words} is not true of any pair", other(first), rows=partners)
    return Gap("the rows that match have other values", other(first), rows=partners)


class _Found:
    """Which rows of both sides make up rows of the result, and which decide."""

    def __init__(self, meeting: _Meeting, made: Pieces) -> None:
        self.meeting, self.made = meeting, made
        self.deciding = made.ids.filter(pa.array(made.decides))
        self.chosen = [np.zeros(t.num_rows, bool) for t in meeting.tables]
        self.decides = [np.zeros(t.num_rows, bool) for t in meeting.tables]

    def pairs(self) -> None:
        for pair, ids in self.meeting.pairs():
            wanted, decided = _among(ids, self.made.ids), _among(ids, self.deciding)
            for side in (LEFT, RIGHT):
                counts = self.meeting.matches(other(side))[pair[other(side)]]
                shown = self.meeting.would_show(side, pair[side], counts, self.made.matters)
                self.chosen[side][pair[side][wanted]] = True
                self.decides[side][pair[side][decided & shown]] = True

    def alone(self, side: Side) -> pa.Table:
        """The rows of a side that are there without a match."""
        rows, ids = self.meeting.alone(side)
        mine = rows[_among(ids, self.made.ids)]
        self.chosen[side][mine] = True
        if self.meeting.join.kind != "full":
            self.decides[side][rows[_among(ids, self.deciding)]] = True
        return self.meeting.tables[side].take(pa.array(mine))

    def pieces(self) -> tuple[Pieces, ...]:
        return tuple(self._of_side(side) for side in (LEFT, RIGHT))

    def _of_side(self, side: Side) -> Pieces:
        mine = self.chosen[side]
        rows = self.meeting.tables[side].filter(pa.array(mine))
        matters = _matters(self.meeting.join, side, self.made.matters)
        return Pieces(rows, self.decides[side][mine], matters)


def _note_alone(join: Join, side: Side, rows: pa.Table, below: Below) -> None:
    """Say of rows without a match what is not there."""
    keys = _keys_of(join, rows)
    if rows.num_rows and keys.columns and len(keys.values[0]) == 1:
        words = keys.text(below.names(other(side)))
        below.note(f"no row with {words} is there to match")
    elif rows.num_rows:
        below.note(f"{rows.num_rows} row(s) have no match")


class _Meeting:
    """Rows of both sides, sorted by key, and what they become; numbers are of the tables."""

    def __init__(self, join: Join, tables: list[pa.Table]) -> None:
        self.join, self.tables = join, tables
        encoded = [
            side.keys.encode([t.column(f"c{i}") for i in range(side.key)], t.num_rows)
            for side, t in zip(join.sides, tables, strict=True)
        ]
        self.keys, codes = group(pa.concat_arrays(encoded))
        places = codes[: len(encoded[LEFT])], codes[len(encoded[LEFT]) :]
        self.order = [order_by(place) for place in places]
        self.matching = Matching(join, None, self.keys)
        self.rows = [
            _rows(table.take(pa.array(order)), place[order], side.key, len(side.types))
            for table, order, place, side in zip(
                tables, self.order, places, join.sides, strict=True
            )
        ]
        self._pairs = list(self._meet())

    def pairs(self) -> Iterator[tuple[_Pair, pa.BinaryArray]]:
        """Pairs that match, and the identities of the rows that they become."""
        left, right = self.rows
        for a, b in self._pairs:
            if self.join.filters:
                ids = left.ids.take(pa.array(a))
            else:
                ids = self.matching.ids(left.take(a), right.take(b), len(a))
            yield (self.order[LEFT][a], self.order[RIGHT][b]), ids

    def alone(self, side: Side) -> tuple[Ints, pa.BinaryArray]:
        """Rows of a side without a match, and the identities of the rows that they become."""
        at = np.flatnonzero(self._counts(side) == 0)
        rows = self.rows[side].take(at)
        left, right = (rows, None) if side == LEFT else (None, rows)
        return self.order[side][at], self.matching.ids(left, right, len(at))

    def matches(self, side: Side) -> Ints:
        """How many partners each row of a side has."""
        counts = np.zeros(len(self.order[side]), np.int64)
        counts[self.order[side]] = self._counts(side)
        return counts

    def would_show(self, side: Side, rows: Ints, counts: Ints, matters: frozenset[int]) -> Mask:
        """Of rows of a side whose partners have so many matches: whether a pair that goes with the
        row leaves nothing behind that looks like it.
        """
        join = self.join
        if join.kind == "full":
            return np.zeros(len(rows), bool)
        if side == LEFT or join.kind == "inner":
            return np.ones(len(rows), bool)
        if join.kind == "semi":
            return np.asarray(counts == 1)
        inverse = np.empty(len(self.order[side]), np.int64)
        inverse[self.order[side]] = np.arange(len(inverse))
        shown = np.zeros(len(rows), bool)
        first = len(join.left.types)
        for i in matters:
            if i >= first:
                column = self.rows[RIGHT].rest[i - first]
                shown |= column.is_valid().to_numpy(zero_copy_only=False)[inverse[rows]]
        return np.asarray(shown & (counts == 1))

    def _meet(self) -> Iterator[_Pair]:
        left, right = self.rows
        able = self.matching.matchable
        count = np.bincount(right.place, minlength=len(self.keys))
        index = Index(np.cumsum(count) - count, np.where(able, count, 0))
        yield from self.matching.pairs(LEFT, left, right, index)

    def _counts(self, side: Side) -> Ints:
        counts = np.zeros(len(self.rows[side]), np.int64)
        for pair in self._pairs:
            counts += np.bincount(pair[side], minlength=len(counts))
        return counts


def _of_side(join: Join, side: Side) -> dict[int, int]:
    """Columns of the result that a side has, and their numbers there."""
    key, left = join.left.key, len(join.left.types)
    if side == LEFT:
        return {i: i for i in range(left)}
    found = {i: i for i in range(key)}
    rest = 0 if join.filters else len(join.right.types) - key
    return found | {left + i: key + i for i in range(rest)}


def _matters(join: Join, side: Side, matters: frozenset[int]) -> frozenset[int]:
    """Columns behind the key: one of the key is also the other side's."""
    mine = _of_side(join, side)
    return frozenset(mine[i] for i in matters if i in mine and i >= join.left.key)


def _tells(join: Join, side: Side) -> bool:
    """Whether the identity of a row of the result is that of its row of a side."""
    return join.kind != "full" and join.identity == ("left", "right")[side]


def _better_right(join: Join, wanted: Wanted, below: Below) -> bool:
    """Whether rows of the right are found at once, and those of the left are not."""
    left, right = sought(join, wanted)
    if right is None or left is None or below.reaches(LEFT, left):
        return False
    return below.reaches(RIGHT, right)


def _keys_of(join: Join, rows: pa.Table) -> Wanted:
    return Wanted.like(rows, range(join.left.key), join.left.types[: join.left.key])


def _either(join: Join, found: list[Wanted]) -> Wanted:
    if not join.left.key:
        return EVERYTHING
    values = [pa.concat_arrays(pair) for pair in zip(*(f.values for f in found), strict=True)]
    return Wanted.of(range(join.left.key), join.left.types[: join.left.key], values)


def _rows(table: pa.Table, place: Ints, key: int, end: int) -> Rows:
    rest = tuple(column_of(table, name) for name in columns(end)[key:])
    return Rows(place, rest, column_of(table, ID))


def _among(ids: pa.BinaryArray, some: pa.BinaryArray) -> Mask:
    return np.asarray(pc.is_in(ids, value_set=some).to_numpy(zero_copy_only=False), bool)
