"""Sinks: the tables that views expose, written by the task that owns the record's key (rule R8).

    KeyedSink   at most one row per key:   view[k] = the row with weight +1, or nothing
    BagSink     equal rows are counted:    view[row] = view[row] + sum of weights

A keyed sink reads nothing: the retraction carries the row before, so writes are blind and the value
before is known. A bag reads one count per touched row. Cost: O(|dV|) record writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.encoding.arrays import Ints
from belvedere.encoding.order import Words, order_by, run_ends, run_starts, stable_order
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Identity,
    NewId,
    StateTable,
    ViewTable,
    Wording,
    column_of,
)
from belvedere.operators.counts import counted, counts_of
from belvedere.operators.grouping import group, group_count
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, SqlType

VALUE = "_v"


@dataclass(frozen=True, slots=True)
class KeyedSink(ViewTable):
    """`key` and `value` are numbers of input columns; `by_id` says that the key columns are the
    identity itself.
    """

    table: TableId
    types: tuple[SqlType, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    by_id: bool = False

    def leads(self) -> tuple[int, ...]:
        return self.key

    def identities(
        self, shard: Shard, prefixes: pa.BinaryArray, parts: Sequence[int]
    ) -> Iterator[pa.BinaryArray]:
        kinds = tuple(self.types[i] for i in self.key)
        record = KeyCodec(kinds, normalize=False)
        identity = KeyCodec(tuple(kinds[i] for i in parts), normalize=False)
        for _, records, _ in shard.scan_prefixes(self.table, prefixes):
            columns = record.decode(records)
            yield identity.encode([columns[i] for i in parts])

    def tables(self) -> tuple[StateTable, ...]:
        key, value = (tuple(self.types[i] for i in part) for part in (self.key, self.value))
        return (StateTable(self.table, "rows", key, value),)

    def explain(self, words: Wording) -> str:
        return f"one record per {', '.join(words.key)}" if words.key else "one record"

    def value_columns(self) -> tuple[int, ...]:
        return self.value

    def with_tables(self, new_id: NewId) -> KeyedSink:
        return replace(self, table=new_id())

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys = (
            changes.column(ID).combine_chunks()
            if self.by_id
            else key_codec(self.types, self.key).encode(_pick(changes, self.key))
        )
        values = (
            row_codec(self.types, self.value).encode(_pick(changes, self.value))
            if self.value
            else _empty_values(len(keys))
        )
        return (pa.table([keys, values, changes.column(WEIGHT)], names=[KEY, VALUE, WEIGHT]),)

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        rows = pa.concat_tables(parts[0]).combine_chunks()
        keys, values = column_of(rows, KEY), column_of(rows, VALUE)
        weights = rows.column(WEIGHT).to_numpy()
        first, last = _runs(keys, weights)
        has_old, has_new = weights[first] < 0, weights[last] > 0
        before = values.take(pa.array(first, mask=~has_old))
        after = values.take(pa.array(last, mask=~has_new))
        shard.write(Write(self.table, keys.take(pa.array(first)), after, before))
        yield from ()


@dataclass(frozen=True, slots=True)
class BagSink(ViewTable):
    """`order` numbers all input columns in the order of the record key."""

    table: TableId
    types: tuple[SqlType, ...]
    order: tuple[int, ...]

    counts_rows: ClassVar[bool] = True

    def tables(self) -> tuple[StateTable, ...]:
        key = tuple(self.types[i] for i in self.order)
        return (StateTable(self.table, "counts of rows", key, (BIGINT,)),)

    def explain(self, words: Wording) -> str:
        return f"one counted record per {', '.join(words.key)}"

    def value_columns(self) -> tuple[int, ...]:
        return ()

    def row_counts(self, table: TableId, values: pa.BinaryArray) -> Ints | None:
        return counts_of(values)

    def with_tables(self, new_id: NewId) -> BagSink:
        return replace(self, table=new_id())

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys, codes = group(key_codec(self.types, self.order).encode(_pick(changes, self.order)))
        counts = group_count(codes, len(keys), changes.column(WEIGHT).to_numpy())
        return (pa.table([keys, pa.array(counts)], names=[KEY, WEIGHT]),)

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        rows = pa.concat_tables(parts[0]).combine_chunks()
        keys, codes = group(column_of(rows, KEY))
        delta = group_count(codes, len(keys), rows.column(WEIGHT).to_numpy())
        touched = pa.array(delta != 0)
        keys, delta = keys.filter(touched), delta[delta != 0]
        before = shard.get_many(self.table, keys)
        after = counts_of(before) + delta
        shard.write(Write(self.table, keys, counted(after), before))
        yield from ()


def key_codec(types: Sequence[SqlType], order: Sequence[int]) -> KeyCodec:
    return KeyCodec(tuple(types[i] for i in order), normalize=False)


def row_codec(types: Sequence[SqlType], order: Sequence[int]) -> RowCodec:
    return RowCodec(tuple(types[i] for i in order))


def _pick(changes: pa.Table, order: Sequence[int]) -> list[pa.Array]:
    return [column_of(changes, f"c{i}") for i in order]


def _empty_values(count: int) -> pa.BinaryArray:
    return pa.array([b""] * count, pa.binary())


def _runs(keys: pa.BinaryArray, weights: Ints) -> tuple[Ints, Ints]:
    """The rows with the least and the greatest weight of every key, in key order: a key has one
    retraction and one insertion at most.
    """
    if _is_sorted(keys, weights):
        first = np.flatnonzero(run_starts(keys))
        return first, run_ends(first, len(keys))
    words, comes = Words.of(keys), weights > 0
    signed = None if words is None else words.then(Words.of_numbers(comes))
    if words is None or signed is None:
        order = stable_order(keys)
        new = run_starts(keys.take(pa.array(order)))
        order = order[order_by(np.cumsum(new), comes[order])]
    else:
        order = signed.order()
        new = np.append(True, np.diff(words.numbers[order]) != 0)
    first = np.flatnonzero(new)
    return order[first], order[run_ends(first, len(order))]


def _is_sorted(keys: pa.BinaryArray, weights: Ints) -> bool:
    if len(keys) < 2:
        return True
    left, right = keys.slice(0, len(keys) - 1), keys.slice(1)
    rising = pc.less(left, right).to_numpy(zero_copy_only=False)
    if rising.all():
        return True
    falling_back = ~rising
    same = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return bool(
        (same | rising).all() and (weights[:-1][falling_back] <= weights[1:][falling_back]).all()
    )
