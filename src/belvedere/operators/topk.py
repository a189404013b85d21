"""TopK: the first k rows of each group, in the order that an arrangement keeps.

    first[g](e) = the first k of (rows[g](e-1) - retracted + inserted)
    d(out)      = - first[g](e-1) + first[g](e)   for every touched g, without what is in both

It keeps nothing itself: the arrangement's records stand in order, so the first rows of a group are
the beginning of its prefix as of e-1, whatever has been written in e. Ties in the order columns are
broken by the identity at the end of the record key, so the order is total (rule R5). With a rank, a
row whose number changes is retracted and inserted again. Cost per touched group: O(k + retracted
rows among the first) records read; only rows that enter, leave or change rank are decoded.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from belvedere.encoding import KeyCodec
from belvedere.encoding.arrays import BATCH, Ints, Mask
from belvedere.encoding.order import order_by, run_starts, stable_order
from belvedere.libraries import np, pa, pc
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
    columns,
)
from belvedere.operators.grouping import group
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted
from belvedere.operators.rows import Rows
from belvedere.stores.base import Shard
from belvedere.types import INT, SqlType


@dataclass(frozen=True, slots=True)
class _Records:
    """Records as of e-1: the number of each one's group, its key and value, and whether it is
    retracted in this epoch.
    """

    place: Ints
    keys: pa.BinaryArray
    values: pa.BinaryArray
    gone: Mask

    def __len__(self) -> int:
        return len(self.place)

    def where(self, mask: Mask) -> _Records:
        chosen = pa.array(mask)
        return _Records(
            self.place[mask], self.keys.filter(chosen), self.values.filter(chosen), self.gone[mask]
        )


@dataclass(frozen=True, slots=True)
class _Came:
    """Rows that are inserted in this epoch, with the number of each one's group and its record
    key.
    """

    changes: pa.Table
    place: Ints
    keys: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class _Line:
    """Old and new rows of some groups, group by group in the order of their records.

    `row` numbers them: the old ones first, then those that came. `there`: it is among the old ones;
    `stays`: it is there after the epoch. `before` and `after` are its numbers within its group.
    """

    row: Ints
    there: Mask
    stays: Mask
    before: Ints
    after: Ints

    def moves(self, limit: int, rank: bool) -> tuple[Mask, Mask, Mask]:
        """Which rows are taken back, which old ones are emitted (they move up, or get another
        rank), and which of those that came.
        """
        was = self.there & (self.before <= limit)
        now = self.stays & (self.after <= limit)
        same = was & now
        if rank:
            same &= self.before == self.after
        emitted = now & ~same
        return was & ~same, emitted & self.there, emitted & ~self.there


@dataclass(frozen=True, slots=True)
class TopK(Derived):
    """`rows` has an order and is not unique; its key is the partition.

    `rank` adds the row number, 1 to `limit`, as last column.
    """

    rows: Arrange
    limit: int
    rank: bool = False

    @property
    def types(self) -> tuple[SqlType, ...]:
        return (*self.rows.types, INT) if self.rank else self.rows.types

    def with_tables(self, new_id: NewId) -> TopK:
        return replace(self, rows=self.rows.with_tables(new_id))

    def with_inputs(self, inputs: Sequence[Operator]) -> TopK:
        return replace(self, rows=arranged(inputs[0]))

    def kept(self) -> tuple[KeptTable, ...]:
        return self.rows.kept()

    def explain(self, words: Wording) -> str:
        return f"the first {self.limit} row(s)" + (" of each group" if self.rows.key else "")

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return (*inputs[0], "row_number()") if self.rank else inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        return (changes,)

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        changes = pa.concat_tables(parts[0]).combine_chunks()
        keys, codes = group(column_of(changes, KEY))
        order = order_by(codes)
        changes, codes = changes.take(pa.array(order)), codes[order]
        # groups whose first rows, before and after, are one batch
        some = max(1, BATCH // max(1, 2 * self.limit))
        for first in range(0, len(keys), some):
            low, high = np.searchsorted(codes, [first, first + some]).tolist()
            moved = self._moved(
                shard,
                keys.slice(first, some),
                changes.slice(low, high - low),
                codes[low:high] - first,
            )
            for start in range(0, moved.num_rows, BATCH):
                yield moved.slice(start, BATCH)

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return self.rows.state_key(changes)

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        """The rest of a group whose first rows are read is skipped, from one batch to the next."""
        after: bytes | None = low
        while after is not None and (high is None or after < high):
            after = yield from self._output(shard, after, high)

    def _output(
        self, shard: Shard, low: bytes, high: bytes | None
    ) -> Generator[pa.Table, None, bytes | None]:
        """Rows up to the end of a batch that ends in a group with enough rows; returns where to go
        on.
        """
        last: bytes = b""
        seen = 0
        for keys, rows in self.rows.stretches(shard, low, high):
            number = _numbers(rows.place, np.ones(len(rows), bool))
            if keys[0].as_py() == last:
                number[rows.place == 0] += seen
            within = np.flatnonzero(number <= self.limit)
            if len(within):
                yield self._table(keys, rows.take(within), number[within], 1)
            last, seen = keys[-1].as_py(), int(number[-1])
            if seen >= self.limit:
                return last + b"\xff"
        return None

    # ------------------------------------------------------------ of which rows its rows are made

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        return (wanted.among({i: i for i in range(len(self.rows.types))}, ids=True),)

    def needs(self, wanted: Wanted, below: Below) -> tuple[Wanted, ...]:
        """All of each group of which a row is wanted: others of it may be before that row."""
        if wanted.keys(self.rows.key) is not None:
            return (wanted.only(range(self.rows.key)),)
        (sought,) = self.sought(wanted)
        assert sought is not None
        return (self._groups(below.find(0, sought)),)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        """The row itself, and if it is numbered all rows before it.

        When one goes the others move up, so the next row takes a place: a row decides if that one
        differs, or is not there.
        """
        line = below.find(0, self._groups(made.rows), first=self.limit + 1)
        place = self._places(line)
        wanted, deciding = Wanted(ids=made.ids).holds(line), made.deciding(line)
        rank = len(self.rows.types)
        replaced = deciding & self._differs_from_next(line, place, made.matters - {rank})
        if not self.rank:
            return (Pieces(line.filter(pa.array(wanted)), replaced[wanted]),)
        return (self._with_those_before(line, wanted, replaced, rank in made.matters),)

    def _with_those_before(
        self, line: pa.Table, wanted: Mask, replaced: Mask, shows_place: bool
    ) -> Pieces:
        """Numbered rows and all before them: these decide too, if the view shows the place and one
        row of the group is wanted.
        """
        place = self._places(line)
        _, codes = group(self._keys(line))
        last = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
        np.maximum.at(last, codes[wanted], place[wanted])
        before = place <= last[codes]
        decides = replaced
        if shows_place and np.bincount(codes[wanted]).max(initial=0) == 1:
            moved = np.bincount(codes, replaced, len(last)) > 0
            decides = replaced | (before & moved[codes])
        return Pieces(line.filter(pa.array(before)), decides[before])

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        (sought,) = self.sought(wanted)
        assert sought is not None
        rows = below.find(0, sought)
        if not rows.num_rows:
            return Gap("", 0, sought)
        line = below.find(0, self._groups(rows.slice(0, 1)))
        place = self._places(line)[Wanted(ids=column_of(rows, ID)).holds(line)]
        best = int(place.min())
        where = " of its group" if self.rows.key else ""
        if best > self.limit:
            text = f"it stands at place {best}{where}, and only the first {self.limit} are taken"
        else:
            text = f"it stands at place {best}{where}"
        return Gap(text, 0, rows=rows)

    def _groups(self, rows: pa.Table) -> Wanted:
        return Wanted.like(rows, range(self.rows.key), self.rows.types[: self.rows.key])

    def _keys(self, rows: pa.Table) -> pa.BinaryArray:
        columns = [rows.column(f"c{i}") for i in range(self.rows.key)]
        return self.rows.keys.encode(columns, rows.num_rows)

    def _places(self, line: pa.Table) -> Ints:
        """The place of each row in its group; the rows of a group stand together, in order."""
        starts = np.flatnonzero(run_starts(self._keys(line)))
        sizes = np.diff(np.append(starts, line.num_rows))
        return np.asarray(np.arange(line.num_rows) - np.repeat(starts, sizes) + 1)

    def _differs_from_next(self, line: pa.Table, place: Ints, matters: frozenset[int]) -> Mask:
        """Whether what comes when a row goes differs from it in a column that matters, or nothing
        comes: with a rank the next row, else the first one that was not taken.
        """
        ends = np.flatnonzero(np.append(place[1:] == 1, True)) if len(place) else place
        last = np.repeat(ends, place[ends])
        at = np.arange(len(place))
        comes = np.minimum(at + 1, last) if self.rank else last
        differs = comes == at if self.rank else place[last] <= self.limit
        for i in matters:
            column = KeyCodec((self.rows.types[i],)).encode([line.column(f"c{i}")])
            differs = differs | pc.not_equal(column, column.take(pa.array(comes))).to_numpy(False)
        return np.asarray(differs, bool)

    # ------------------------------------------------------------ what moves

    def _moved(
        self, shard: Shard, keys: pa.BinaryArray, changes: pa.Table, codes: Ints
    ) -> pa.Table:
        """What enters, leaves, or changes its rank in some groups."""
        came = changes.column(WEIGHT).to_numpy() > 0
        records = self.rows.record_key(changes)
        old = self._first(shard, keys, codes[~came], records.filter(pa.array(~came)))
        new = _Came(changes.filter(pa.array(came)), codes[came], records.filter(pa.array(came)))
        line = _lined_up(old, new)
        leaves, returns, enters = line.moves(self.limit, self.rank)
        return pa.concat_tables(
            [
                self._kept(keys, old, line.row[leaves], line.before[leaves], -1),
                self._kept(keys, old, line.row[returns], line.after[returns], 1),
                self._inserted(new.changes, line.row[enters] - len(old), line.after[enters]),
            ]
        )

    # ------------------------------------------------------------ reading

    def _first(
        self, shard: Shard, keys: pa.BinaryArray, losing: Ints, lost: pa.BinaryArray
    ) -> _Records:
        """Of every group so many records as of e-1 that k of them stay, or all; `lost` are the
        retracted ones.

        A group that loses nothing is read up to k. Of the others a few more are read; where too
        many of these are retracted, as at the front of a queue, twice as many, and so on: all in
        all at most four times what is needed.
        """
        counts = np.bincount(losing, minlength=len(keys))
        spare = min(self.limit, int(counts.max(initial=0)))
        todo = [
            (np.flatnonzero(counts == 0), self.limit),
            (np.flatnonzero(counts > 0), self.limit + spare),
        ]
        found = []
        while todo:
            wanted, limit = todo.pop()
            if not len(wanted):
                continue
            part = self._read(shard, keys, wanted, limit, lost)
            read, gone = (
                np.bincount(p, minlength=len(keys)) for p in (part.place, part.place[part.gone])
            )
            short = (read == limit) & (read - gone < self.limit)
            found.append(part.where(~short[part.place]) if short.any() else part)
            todo.append((np.flatnonzero(short), 2 * limit))
        return _together(found)

    def _read(
        self, shard: Shard, keys: pa.BinaryArray, wanted: Ints, limit: int, lost: pa.BinaryArray
    ) -> _Records:
        found = [
            _Records(place, records, values, pc.is_in(records, lost).to_numpy(zero_copy_only=False))
            for place, records, values in self.rows.records(shard, keys, wanted, limit=limit)
        ]
        return _together(found)

    # ------------------------------------------------------------ emitting

    def _kept(
        self, keys: pa.BinaryArray, old: _Records, at: Ints, number: Ints, weight: int
    ) -> pa.Table:
        rows = self.rows.decode(
            keys, (old.place[at], old.keys.take(pa.array(at)), old.values.take(pa.array(at)))
        )
        return self._table(keys, rows, number, weight)

    def _table(self, keys: pa.BinaryArray, rows: Rows, number: Ints, weight: int) -> pa.Table:
        group_columns = [
            column.take(pa.array(rows.place)) for column in self.rows.keys.decode(keys)
        ]
        return self._changes(
            [*group_columns, *rows.rest], number, pa.array(np.full(len(rows), weight)), rows.ids
        )

    def _inserted(self, changes: pa.Table, at: Ints, number: Ints) -> pa.Table:
        chosen = changes.take(pa.array(at))
        data = [chosen.column(name) for name in columns(len(self.rows.types))]
        return self._changes(data, number, chosen.column(WEIGHT), chosen.column(ID))

    def _changes(
        self, data: list[pa.Array], number: Ints, weights: pa.Array, ids: pa.BinaryArray
    ) -> pa.Table:
        ranks = [pa.array(number.astype(np.int32))] if self.rank else []
        return pa.table(
            [*data, *ranks, weights, ids], names=[*columns(len(self.types)), WEIGHT, ID]
        )


def _together(found: Sequence[_Records]) -> _Records:
    nothing = pa.array([], pa.binary())
    return _Records(
        np.concatenate([np.empty(0, np.int64), *(part.place for part in found)]),
        pa.concat_arrays([nothing, *(part.keys for part in found)]),
        pa.concat_arrays([nothing, *(part.values for part in found)]),
        np.concatenate([np.empty(0, bool), *(part.gone for part in found)]),
    )


def _lined_up(old: _Records, new: _Came) -> _Line:
    place = np.concatenate([old.place, new.place])
    row = _order(place, pa.concat_arrays([old.keys, new.keys]))
    there = row < len(old)
    stays = ~np.append(old.gone, np.zeros(len(new.place), bool))[row]
    place = place[row]
    return _Line(row, there, stays, _numbers(place, there), _numbers(place, stays))


def _order(place: Ints, records: pa.BinaryArray) -> Ints:
    """By group and record."""
    order = stable_order(records)
    return order[order_by(place[order])]


def _numbers(place: Ints, counted: Mask) -> Ints:
    """How many rows of its group are counted up to each row, itself included; rows stand group by
    group.
    """
    total = np.cumsum(counted)
    return np.asarray(total - np.append(0, total)[np.searchsorted(place, place)])
