"""Aggregate: COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT) by group.

    state[g](e) = state[g](e-1) + sum over changes of g of weight * contribution
    d(out)      = - out(state(e-1)) + out(state(e))            for every touched g

Counts and sums are linear: a group's changes are added up before they travel and once more on
arrival, so a hot group costs one record write per epoch. MIN, MAX and COUNT(DISTINCT) keep a
pre-aggregation (`operators.ordered`): the values of each group in order, counted; the base table is
never read. A SUM keeps the number of its non-NULL arguments, so that the sum of nothing is NULL and
not 0. Without GROUP BY the one group has its row from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.libraries import np, npt, pa, pc
from belvedere.operators import exact
from belvedere.operators.base import ID, KEY, WEIGHT, columns
from belvedere.operators.errors import error_rows, record_errors
from belvedere.operators.grouping import Int128, Ints, Wide, group, group_count, group_sum, wide_sum
from belvedere.operators.ordered import Ordered, Touched
from belvedere.operators.results import Call, result_of
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, BINARY, SqlType, decimal

GLOBAL = b""  # the key of the one group of an aggregate without GROUP BY


_TOTALS: dict[str, tuple[SqlType, ...]] = {
    "double": (BINARY,),
    "wide": (decimal(38, 0), decimal(38, 0)),
    "int": (),
}
Total = Int128 | Wide | list[exact.Total]


@dataclass(frozen=True, slots=True)
class Argument:
    """One distinct argument list of the calls: numbers of input columns, and what has to be kept of
    it.

    `total` is "" (nothing), "int" (an exact 128-bit sum), "wide" (a longer one) or "double" (an
    exact binary sum). `ordered` is the table of the pre-aggregation, or 0; `by_row` says that it
    keeps rows, not counts (`operators.ordered`).
    """

    inputs: tuple[int, ...]
    types: tuple[SqlType, ...]
    total: str = ""
    ordered: TableId = 0
    by_row: bool = False

    @property
    def pre_aggregation(self) -> Ordered:
        return Ordered(self.ordered, self.types, self.by_row)

    @property
    def scale(self) -> int:
        return self.types[0].scale

    @property
    def state(self) -> tuple[SqlType, ...]:
        kept: list[SqlType] = [BIGINT]
        if self.total:
            kept += _TOTALS[self.total] or (decimal(38, self.scale),)
        if self.ordered:
            kept += [BIGINT, BINARY, BINARY]
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class GroupState:
    """Decoded state of the touched groups: the row count, and per argument what `Argument.state`
    lists.
    """

    exists: npt.NDArray[np.bool_]
    count: Ints
    non_null: list[Ints]
    total: list[Total | None]
    distinct: list[Ints | None]
    least: list[pa.Array | None]
    greatest: list[pa.Array | None]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The first columns of the input are the group, in key order; `errors` keeps groups whose
    result overflows.
    """

    table: TableId
    groups: tuple[SqlType, ...]
    arguments: tuple[Argument, ...]
    calls: tuple[Call, ...]
    errors: TableId

    @property
    def types(self) -> tuple[SqlType, ...]:
        return (*self.groups, *(call.type for call in self.calls))

    @property
    def codec(self) -> RowCodec:
        return RowCodec((BIGINT, *(t for a in self.arguments for t in a.state)))

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys, codes = self._group(changes)
        weights = changes.column(WEIGHT).to_numpy()
        parts = [pa.array(group_count(codes, len(keys), weights))]
        for argument in self.arguments:
            parts += _partial(argument, changes, codes, len(keys), weights)
        names = [KEY, *(f"p{i}" for i in range(len(parts)))]
        tables = [pa.table([keys, *parts], names=names)]
        for argument in self.arguments:
            if argument.ordered:
                tables.append(
                    argument.pre_aggregation.partial(changes, argument.inputs, keys, codes)
                )
        return tuple(tables)

    def _group(self, changes: pa.Table) -> tuple[pa.BinaryArray, Ints]:
        if not self.groups:
            return pa.array([GLOBAL] if changes.num_rows else [], pa.binary()), np.zeros(
                changes.num_rows, np.int64
            )
        codec = KeyCodec(self.groups)
        inputs = [changes.column(f"c{i}").combine_chunks() for i in range(len(self.groups))]
        if len(inputs) > 1:
            return group(codec.encode(inputs))
        # encode each distinct value once, not each row
        encoded = inputs[0].dictionary_encode(null_encoding="encode")
        keys, codes = group(codec.encode([encoded.dictionary]))
        return keys, (
            codes[encoded.indices.to_numpy(zero_copy_only=False)]
            if len(encoded)
            else np.empty(0, np.int64)
        )

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        keys, delta = self._combine(parts[0])
        before = shard.get_many(self.table, keys)
        old = self._decode(before)
        new = self._added(old, delta, self._touched(shard, keys, parts[1:], old))
        after = self._encode(new)
        shard.write(Write(self.table, keys, after, before))
        images = [self._image(keys, old, -1), self._image(keys, new, +1)]
        errors = pa.concat_tables([failed for _, failed in images])
        if errors.num_rows:
            record_errors(shard, self.errors, errors)
        yield pa.concat_tables([image for image, _ in images])

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return changes.column(ID).combine_chunks()

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for keys, values in shard.scan_batches(self.table, low, high):
            yield self._image(keys, self._decode(values), +1)[0]

    def start(self) -> pa.Table:
        """What `prepare` would say of an empty table: the part that gives a global aggregate its
        first row.
        """
        keys = pa.array([GLOBAL], pa.binary())
        parts = [pa.array([0], pa.int64())]
        for argument in self.arguments:
            parts += _nothing(argument)
        return pa.table([keys, *parts], names=[KEY, *(f"p{i}" for i in range(len(parts)))])

    def _combine(self, parts: Sequence[pa.Table]) -> tuple[pa.BinaryArray, GroupState]:
        rows = pa.concat_tables(parts).combine_chunks()
        keys, codes = group(rows.column(KEY).combine_chunks())
        ones = np.ones(len(codes), np.int64)
        at = iter(rows.columns[1:])
        count = group_count(codes, len(keys), next(at).to_numpy())
        non_null, totals = [], []
        for argument in self.arguments:
            non_null.append(group_count(codes, len(keys), next(at).to_numpy()))
            totals.append(_combined_total(argument, at, codes, len(keys), ones))
        nothing: list[None] = [None] * len(self.arguments)
        return keys, GroupState(
            np.ones(len(keys), bool), count, non_null, totals, [*nothing], [*nothing], [*nothing]
        )

    def _touched(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        parts: Sequence[Sequence[pa.Table]],
        old: GroupState,
    ) -> list[Touched | None]:
        found: list[Touched | None] = [None] * len(self.arguments)
        ordered = [i for i, argument in enumerate(self.arguments) if argument.ordered]
        for i, entries in zip(ordered, parts, strict=False):
            if entries:
                found[i] = self.arguments[i].pre_aggregation.apply(
                    shard, keys, entries, old.least[i], old.greatest[i]
                )
        return found

    def _decode(self, values: pa.BinaryArray) -> GroupState:
        state = iter(self.codec.decode(values))
        exists = values.is_valid().to_numpy(zero_copy_only=False)
        count = _ints(next(state))
        non_null, total, distinct, least, greatest = [], [], [], [], []
        for argument in self.arguments:
            non_null.append(_ints(next(state)))
            total.append(_decoded_total(argument, state) if argument.total else None)
            distinct.append(_ints(next(state)) if argument.ordered else None)
            least.append(next(state) if argument.ordered else None)
            greatest.append(next(state) if argument.ordered else None)
        return GroupState(exists, count, non_null, total, distinct, least, greatest)

    def _added(
        self, old: GroupState, delta: GroupState, touched: list[Touched | None]
    ) -> GroupState:
        count = old.count + delta.count
        exists = (count > 0) if self.groups else np.ones(len(count), bool)
        distinct, least, greatest = [*old.distinct], [*old.least], [*old.greatest]
        for i, found in enumerate(touched):
            if found is not None:
                distinct[i] = old.distinct[i] + found.distinct  # type: ignore[operator]  # kept whenever ordered is
                least[i], greatest[i] = found.least, found.greatest
        non_null = [a + b for a, b in zip(old.non_null, delta.non_null, strict=True)]
        total = [_sum(a, b) for a, b in zip(old.total, delta.total, strict=True)]
        return GroupState(exists, count, non_null, total, distinct, least, greatest)

    def _encode(self, state: GroupState) -> pa.BinaryArray:
        data: list[pa.Array] = [pa.array(state.count)]
        for i, argument in enumerate(self.arguments):
            data.append(pa.array(state.non_null[i]))
            total = state.total[i]
            data += _encoded_total(argument, total) if total is not None else []
            if argument.ordered:
                data += [pa.array(state.distinct[i]), state.least[i], state.greatest[i]]
        return pc.if_else(
            pa.array(state.exists), self.codec.encode(data), pa.scalar(None, pa.binary())
        )

    def _image(
        self, keys: pa.BinaryArray, state: GroupState, weight: int
    ) -> tuple[pa.Table, pa.Table]:
        """The rows of these groups in this state, and error rows for
        those whose result overflows.
        """
        group_columns = KeyCodec(self.groups).decode(keys) if self.groups else []
        results = [result_of(call, state, call.argument) for call in self.calls]
        raised = np.zeros(len(keys), bool)
        for _, overflow in results:
            raised |= overflow
        data = [
            *group_columns,
            *(values for values, _ in results),
            pa.array(np.full(len(keys), weight)),
            keys,
        ]
        rows = pa.table(data, names=[*columns(len(self.types)), WEIGHT, ID]).filter(
            pa.array(state.exists & ~raised)
        )
        return rows, _failures(keys, state.exists & raised, weight)


def _failures(keys: pa.BinaryArray, mask: npt.NDArray[np.bool_], weight: int) -> pa.Table:
    bad = keys.filter(pa.array(mask))
    return error_rows(
        bad, pa.array(np.full(len(bad), weight)), pa.array(np.zeros(len(bad), np.int32))
    )


def _partial(
    argument: Argument, changes: pa.Table, codes: Ints, groups: int, weights: Ints
) -> list[pa.Array]:
    arrays = [changes.column(f"c{i}").combine_chunks() for i in argument.inputs]
    valid = np.ones(len(codes), bool)
    for array in arrays:
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
    live = np.where(valid, weights, 0)
    parts = [pa.array(group_count(codes, groups, live))]
    return (
        parts + _encoded_total(argument, _partial_total(argument, arrays[0], codes, groups, live))
        if argument.total
        else parts
    )


def _partial_total(
    argument: Argument, array: pa.Array, codes: Ints, groups: int, weights: Ints
) -> Total:
    if argument.total == "int":
        return group_sum(codes, groups, _integers(array), weights)
    if argument.total == "wide":
        return wide_sum(codes, groups, Int128.from_decimal(array), weights)
    return exact.group_totals(
        codes, groups, array.fill_null(0.0).to_numpy(zero_copy_only=False), weights
    )


def _encoded_total(argument: Argument, total: Total) -> list[pa.Array]:
    if isinstance(total, Int128):
        return [total.to_decimal(argument.scale)]
    if isinstance(total, Wide):
        return [total.high.to_decimal(0), total.low.to_decimal(0)]
    return [pa.array([exact.pack(t) for t in total], pa.binary())]


def _nothing(argument: Argument) -> list[pa.Array]:
    parts = [pa.array([0], pa.int64())]
    zero: dict[str, Total] = {"int": Int128.zeros(1), "wide": Wide.zeros(1), "double": [exact.ZERO]}
    return parts + _encoded_total(argument, zero[argument.total]) if argument.total else parts


def _combined_total(
    argument: Argument, at: Iterator[pa.ChunkedArray], codes: Ints, groups: int, ones: Ints
) -> Total | None:
    if not argument.total:
        return None
    column = next(at).combine_chunks()
    if argument.total == "int":
        return group_sum(codes, groups, Int128.from_decimal(column), ones)
    if argument.total == "wide":
        low = Int128.from_decimal(next(at).combine_chunks())
        return Wide.of(
            group_sum(codes, groups, Int128.from_decimal(column), ones),
            group_sum(codes, groups, low, ones),
        )
    totals = [exact.ZERO] * groups
    for code, value in zip(codes.tolist(), column.to_pylist(), strict=True):
        totals[code] = exact.add(totals[code], exact.unpack(value))
    return totals


def _decoded_total(argument: Argument, state: Iterator[pa.Array]) -> Total:
    column = next(state)
    if argument.total == "int":
        return Int128.from_decimal(column)
    if argument.total == "wide":
        return Wide(Int128.from_decimal(column), Int128.from_decimal(next(state)))
    return [
        exact.unpack(value) if value is not None else exact.ZERO for value in column.to_pylist()
    ]


def _sum(a: Total | None, b: Total | None) -> Total | None:
    if isinstance(a, Int128) and isinstance(b, Int128):
        return a + b
    if isinstance(a, Wide) and isinstance(b, Wide):
        return a + b
    if isinstance(a, list) and isinstance(b, list):
        return [exact.add(x, y) for x, y in zip(a, b, strict=True)]
    return None


def _ints(array: pa.Array) -> Ints:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _integers(array: pa.Array) -> Ints | Int128:
    if pa.types.is_decimal(array.type):
        return Int128.from_decimal(array)
    return _ints(array)
