"""Arrange: rows under a key.

The auxiliary view of a join, an index, or the rows of a group in order.

    table[key, order, id](e) = the row with weight +1, or nothing
    d(out)                   = the changes, without those that change nothing

Linear. A retraction carries the row before, so writes are blind and nothing is read. Cost: O(|dA|)
record writes.

    record key   KeyCodec of the key columns | order part | _id    (unique: the key columns alone)
    order part   KeyCodec of each order column; descending: see `_descending`
    value        RowCodec of the columns behind the key            (unique: of _id and these)

A record key begins with its state key, and what follows never begins with FF, so the rows of a key
are one range; the slot is that of the state key. Key columns are read back from the record, so they
are emitted as they are read: 0.0 for -0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.encoding.arrays import BATCH, Ints, Mask
from belvedere.encoding.binaries import data_of, offsets_of, unpack, weave
from belvedere.encoding.fields import width
from belvedere.encoding.order import order_by, run_ends, run_starts, stable_order
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Identity,
    KeptTable,
    NewId,
    Operator,
    Origin,
    StateTable,
    ViewTable,
    Wording,
    column_of,
    columns,
)
from belvedere.operators.grouping import group
from belvedere.operators.rows import Gone, Rows
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BINARY, SqlType

# numbers of keys, record keys, values
Records: TypeAlias = "tuple[Ints, pa.BinaryArray, pa.BinaryArray]"

_NULL_LAST = 2  # the tag of NULL in descending order; a value's is 1 as ever


@dataclass(frozen=True, slots=True)
class Arrange(Origin, ViewTable):
    """The first `key` columns are the key (0: all rows are under one), the next ones order the rows
    within it: True = descending.
    """

    table: TableId
    types: tuple[SqlType, ...]
    key: int
    order: tuple[bool, ...] = ()
    unique: bool = False

    def tables(self) -> tuple[StateTable, ...]:
        if self.unique:
            key, value = self.types[: self.key], self.values.types
            return (StateTable(self.table, "rows", key, value),)
        end = self.key + len(self.order)
        return (StateTable(self.table, "rows", self.types[:end], self.values.types, identity=True),)

    def with_tables(self, new_id: NewId) -> Arrange:
        return replace(self, table=new_id())

    @property
    def slot_columns(self) -> int:
        return self.key

    def value_columns(self) -> tuple[int, ...]:
        return tuple(range(self.key, len(self.types)))

    def kept(self) -> tuple[KeptTable, ...]:
        return (KeptTable(self.table, self.types[: self.key]),)

    def explain(self, words: Wording) -> str:
        (columns_below,) = words.inputs
        end = self.key + len(self.order)
        keys, order = columns_below[: self.key], columns_below[self.key : end]
        what = "one row" if self.unique else "rows"
        what += f" by {', '.join(keys)}" if keys else " under one key"
        if order:
            sorts = zip(order, self.order, strict=True)
            what += " in order of " + ", ".join(f"{x} DESC" if down else x for x, down in sorts)
        rest = ", ".join(columns_below[end:])
        return f"{what}: {rest}" if rest else what

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    @property
    def keys(self) -> KeyCodec:
        return KeyCodec(self.types[: self.key])

    @property
    def values(self) -> RowCodec:
        rest = self.types[self.key :]
        return RowCodec((BINARY, *rest) if self.unique else rest)

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys = self.state_key(changes)
        data = [
            changes.column(name).cast(kind.arrow)
            for name, kind in zip(columns(len(self.types)), self.types, strict=True)
        ]
        if any(kind.name == "double" for kind in self.types[: self.key]):
            data[: self.key] = self.keys.decode(keys)
        return (self._table(data, changes.column(WEIGHT), changes.column(ID), keys),)

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        rows = pa.concat_tables(parts[0]).combine_chunks()
        if not rows.num_rows:
            return
        rows, same = _sorted(rows)
        values = self._encoded(rows)
        if same.any():
            idle = same & ~run_starts(values)
            kept = pa.array(~(idle | np.append(idle[1:], False)))
            rows, values = rows.filter(kept).combine_chunks(), values.filter(kept)
        if rows.num_rows:
            self._write(shard, rows, values)
        for start in range(0, rows.num_rows, BATCH):
            yield rows.slice(start, BATCH)

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return self.keys.encode(
            [changes.column(f"c{i}") for i in range(self.key)], rows=changes.num_rows
        )

    def record_key(self, changes: pa.Table) -> pa.BinaryArray:
        """The record keys of changes that it emitted."""
        keys = column_of(changes, KEY)
        if self.unique:
            return keys
        order = self._order_part(
            [column_of(changes, f"c{self.key + i}") for i in range(len(self.order))]
        )
        return weave([keys, *order, column_of(changes, ID)], len(keys))

    def nothing(self) -> pa.Table:
        """No changes."""
        empty = pa.array([], pa.binary())
        return self._table(
            [pa.array([], kind.arrow) for kind in self.types],
            pa.array([], pa.int64()),
            empty,
            empty,
        )

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for keys, rows in self.stretches(shard, low, high):
            at = pa.array(rows.place)
            data = [*(column.take(at) for column in self.keys.decode(keys)), *rows.rest]
            yield self._table(data, pa.array(np.ones(len(rows), np.int64)), rows.ids, keys.take(at))

    def under(
        self, shard: Shard, keys: pa.BinaryArray, first: int | None = None
    ) -> Iterator[pa.Table]:
        keys = keys.take(pa.array(stable_order(keys)))
        every = np.arange(len(keys))
        for found in self.records(shard, keys, every, limit=first):
            rows = self.decode(keys, found)
            at = pa.array(rows.place)
            data = [*(column.take(at) for column in self.keys.decode(keys)), *rows.rest]
            yield self._table(data, pa.array(np.ones(len(rows), np.int64)), rows.ids, keys.take(at))

    names_rows = True

    def leads(self) -> tuple[int, ...]:
        return tuple(range(self.key))

    def identities(
        self, shard: Shard, prefixes: pa.BinaryArray, parts: Sequence[int]
    ) -> Iterator[pa.BinaryArray]:
        for rows in self.under(shard, prefixes):
            yield rows.column("_id").combine_chunks()

    # ------------------------------------------------------------ what operators above read

    def stretches(
        self, shard: Shard, low: bytes, high: bytes | None
    ) -> Iterator[tuple[pa.BinaryArray, Rows]]:
        """Rows as of e-1 with low <= state key < high, in batches, each with its keys; a key may
        span batches.
        """
        first, last = self._bound(shard, low), None if high is None else self._bound(shard, high)
        for records, values in shard.scan_batches(self.table, first, last, BATCH):
            packed = unpack(records, 0)
            keys = packed.slices(
                packed.starts, packed.starts + self.keys.lengths(records), None, pa.binary()
            )
            new = np.append(
                True,
                pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).to_numpy(
                    zero_copy_only=False
                ),
            )
            distinct = keys.filter(pa.array(new))
            yield distinct, self.decode(distinct, (np.cumsum(new) - 1, records, values))

    def records(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        wanted: Ints,
        gone: Gone | None = None,
        limit: int | None = None,
    ) -> Iterator[Records]:
        """Records as of e-1 under keys[wanted], except those gone, in key order; `wanted` is
        sorted, `limit` is per key.
        """
        if not len(wanted):
            return
        if self.unique:
            yield from self._unique_records(shard, keys, wanted, gone)
            return
        for numbers, records, values in shard.scan_prefixes(
            self.table, keys.take(pa.array(wanted)), limit, BATCH
        ):
            place = wanted[numbers]
            stays = None if gone is None else gone.not_among(place, records)
            if stays is None:
                yield place, records, values
            elif stays.any():
                yield place[stays], records.filter(pa.array(stays)), values.filter(pa.array(stays))

    def rows(
        self, shard: Shard, keys: pa.BinaryArray, wanted: Ints, gone: Gone | None = None
    ) -> Iterator[Rows]:
        """The same, decoded."""
        for found in self.records(shard, keys, wanted, gone):
            yield self.decode(keys, found)

    def present(
        self, shard: Shard, keys: pa.BinaryArray, wanted: Ints, gone: Gone | None = None
    ) -> Mask:
        """Which of the keys are wanted and have a record as of e-1 that is not gone; reads at most
        twice as many as are gone, and one.
        """
        found = np.zeros(len(keys), bool)
        lost = np.zeros(len(keys), np.int64) if gone is None else gone.counts
        # the power of two above
        limits = 1 << np.frexp(lost[wanted].astype(np.float64))[1].astype(np.int64)
        for limit in np.unique(limits).tolist():
            for place, _, _ in self.records(shard, keys, wanted[limits == limit], gone, limit):
                found[place] = True
        return found

    def decode(self, keys: pa.BinaryArray, found: Records) -> Rows:
        place, records, values = found
        rest = self.values.decode(values)
        if self.unique:
            return Rows(place, tuple(rest[1:]), rest[0])
        packed = unpack(records, 0)
        starts = packed.starts + np.diff(offsets_of(keys))[place]
        for part in self._order_part(rest[: len(self.order)]):
            starts += np.diff(offsets_of(part)) if isinstance(part, pa.Array) else len(part)
        return Rows(place, tuple(rest), packed.slices(starts, packed.ends, None, pa.binary()))

    def _unique_records(
        self, shard: Shard, keys: pa.BinaryArray, wanted: Ints, gone: Gone | None
    ) -> Iterator[Records]:
        if gone is not None:
            wanted = wanted[gone.counts[wanted] == 0]
        for start in range(0, len(wanted), BATCH):
            place = wanted[start : start + BATCH]
            records = keys.take(pa.array(place))
            values = shard.get_many(self.table, records)
            if values.null_count == len(values):
                continue
            if values.null_count:
                present = values.is_valid()
                place, records, values = (
                    place[present.to_numpy(zero_copy_only=False)],
                    records.filter(present),
                    values.filter(present),
                )
            yield place, records, values

    def _bound(self, shard: Shard, bound: bytes) -> bytes:
        """The bound for records that has the same state keys below it: a key may be below although
        its records are not.
        """
        if self.unique:
            return bound
        for record, _ in shard.scan(self.table, bound, None):
            key = record[: int(self.keys.lengths(pa.array([record], pa.binary()))[0])]
            return key + b"\xff" if key < bound else bound
        return bound

    # ------------------------------------------------------------ writing

    def _write(self, shard: Shard, rows: pa.Table, values: pa.BinaryArray) -> None:
        records, weights = self.record_key(rows), rows.column(WEIGHT).to_numpy()
        if self.unique or self.order:
            if self.unique:  # the new row of a key may have the smaller identity
                order = order_by(np.cumsum(run_starts(records)), weights > 0)
            else:  # stable: the retraction of a record stays before its insertion
                order = stable_order(records)
            records, values, weights = (
                records.take(pa.array(order)),
                values.take(pa.array(order)),
                weights[order],
            )
        first = np.flatnonzero(run_starts(records))
        last = run_ends(first, len(records))
        before = values.take(pa.array(first, mask=weights[first] > 0))
        after = values.take(pa.array(last, mask=weights[last] < 0))
        shard.write(Write(self.table, records.take(pa.array(first)), after, before))

    def _encoded(self, rows: pa.Table) -> pa.BinaryArray:
        rest = [column_of(rows, f"c{i}") for i in range(self.key, len(self.types))]
        return self.values.encode(
            [column_of(rows, ID), *rest] if self.unique else rest, rows=rows.num_rows
        )

    def _order_part(self, ordering: Sequence[pa.Array]) -> list[pa.Array | bytes]:
        pieces: list[pa.Array | bytes] = []
        for array, kind, descending in zip(
            ordering, self.types[self.key :], self.order, strict=False
        ):
            encoded = KeyCodec((kind,)).encode([array])
            pieces += _descending(encoded, kind) if descending else [encoded]
        return pieces

    def _table(
        self, data: Sequence[pa.Array], weights: pa.Array, ids: pa.BinaryArray, keys: pa.BinaryArray
    ) -> pa.Table:
        return pa.table(
            [*data, weights, ids, keys], names=[*columns(len(self.types)), WEIGHT, ID, KEY]
        )


def arranged(operator: Operator) -> Arrange:
    """An input of an operator that reads what its inputs keep: the planner arranges it."""
    if not isinstance(operator, Arrange):
        raise TypeError(f"rows of a {type(operator).__name__} are not arranged")
    return operator


def _descending(encoded: pa.BinaryArray, kind: SqlType) -> list[pa.Array | bytes]:
    """Bytes whose order is the reverse: inverted, but a tag is 1 or 2, because FF must not follow a
    key.

    The end of an inverted string, FF, gets another one: its escapes are FF 00, and what follows may
    begin with 00.
    """
    starts = offsets_of(encoded).astype(np.int64)
    data = ~data_of(encoded)
    at = starts[:-1] - starts[0]
    data[at] = np.where(data[at] == 0xFF, _NULL_LAST, 1)
    offsets = pa.py_buffer((starts - starts[0]).astype(np.int32))
    inverted = pa.Array.from_buffers(pa.binary(), len(encoded), [None, offsets, pa.py_buffer(data)])
    return [inverted] if width(kind) else [inverted, b"\xff"]


def _sorted(rows: pa.Table) -> tuple[pa.Table, Mask]:
    """The rows by (key, identity, weight), and which of them has the key and identity of the row
    before it.
    """
    ids, weights = column_of(rows, ID), rows.column(WEIGHT).to_numpy()
    keys, codes = group(column_of(rows, KEY))
    first = run_starts(ids)
    # as producers send them, and one producer is common
    if _rising(ids) and (first[1:] | (np.diff(weights) >= 0)).all():
        ranks: Ints = np.cumsum(first, dtype=np.int64)
        order = order_by(codes)
    else:
        ranks = group(ids)[1]
        order = order_by(codes, ranks, weights > 0)
    if not (np.diff(order) == 1).all():
        codes, ranks = codes[order], ranks[order]
        at = rows.column_names.index(KEY)
        rows = (
            rows.remove_column(at)
            .take(pa.array(order))
            .combine_chunks()
            .add_column(at, KEY, keys.take(pa.array(codes)))
        )
    return rows, np.append(False, (np.diff(codes) == 0) & (np.diff(ranks) == 0))


def _rising(values: pa.BinaryArray) -> bool:
    return (
        pc.all(pc.less_equal(values.slice(0, max(len(values) - 1, 0)), values.slice(1))).as_py()
        is not False
    )
