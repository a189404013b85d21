"""Aggregate: COUNT, SUM, AVG, MIN, MAX and COUNT(DISTINCT) by group.

    state[g](e) = state[g](e-1) + sum over changes of g of weight * contribution
    d(out)      = - out(state(e-1)) + out(state(e))            for every touched g

Counts and sums are linear: a group's changes are added up before they travel and once more on
arrival, so a hot group costs one record write per epoch. MIN, MAX and COUNT(DISTINCT) keep a
pre-aggregation (`aggregate.ordered`): the values of each group in order, counted; the base table is
never read. Without GROUP BY the one group has its row from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.encoding.arrays import Ints, Mask
from belvedere.libraries import np, pa, pc
from belvedere.operators.aggregate import members
from belvedere.operators.aggregate.argument import (
    Argument,
    Call,
    GroupState,
    stored_integers,
)
from belvedere.operators.aggregate.ordered import Touched
from belvedere.operators.aggregate.results import result_of
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Identity,
    IdentityPart,
    KeptTable,
    NewId,
    Origin,
    StateTable,
    Wording,
    column_of,
    columns,
)
from belvedere.operators.counts import counts_of
from belvedere.operators.errors import error_rows, error_state, record_errors
from belvedere.operators.grouping import group, group_count
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, SqlType

GLOBAL = b""  # the key of the one group of an aggregate without GROUP BY
_CALLS = {"count_rows": "count(*)", "count_distinct": "count(DISTINCT {})"}  # others: name({})


@dataclass(frozen=True, slots=True)
class Aggregate(Origin):
    """The first columns of the input are the group, in key order; `errors` keeps groups whose
    result overflows.
    """

    table: TableId
    groups: tuple[SqlType, ...]
    arguments: tuple[Argument, ...]
    calls: tuple[Call, ...]
    errors: TableId

    errors_of: ClassVar[Literal["input", "result"]] = "result"
    condition_word: ClassVar[str] = "HAVING"
    adds_doubles: ClassVar[bool] = True

    @property
    def types(self) -> tuple[SqlType, ...]:
        return (*self.groups, *(call.type for call in self.calls))

    @property
    def codec(self) -> RowCodec:
        return RowCodec((BIGINT, *(t for a in self.arguments for t in a.state)))

    # ------------------------------------------------------------ what it says of itself

    def tables(self) -> tuple[StateTable, ...]:
        groups = StateTable(self.table, "groups", self.groups, self.codec.types)
        ordered = (self._ordered_table(a) for a in self.arguments if a.ordered)
        errors = [error_state(self.errors)] if self.errors else []
        return (groups, *ordered, *errors)

    def _ordered_table(self, argument: Argument) -> StateTable:
        key = (*self.groups, *argument.types)
        value = () if argument.by_row else (BIGINT,)
        return StateTable(
            argument.ordered, "values", key, value, identity=argument.by_row, of=argument.inputs
        )

    def with_tables(self, new_id: NewId) -> Aggregate:
        return replace(
            self,
            table=new_id(),
            arguments=tuple(a.with_table(new_id()) if a.ordered else a for a in self.arguments),
            errors=new_id() if self.errors else 0,
        )

    def kept(self) -> tuple[KeptTable, ...]:
        return (KeptTable(self.table, self.groups),)

    def error_table(self) -> TableId:
        return self.errors

    def describe(self, number: int) -> str:
        return "the result of an aggregate is out of range"

    def explain(self, words: Wording) -> str:
        named = self.columns(words.inputs)
        groups, calls = named[: len(self.groups)], named[len(self.groups) :]
        what = ", ".join(calls) or "the groups themselves"
        return f"by {', '.join(groups)}: {what}" if groups else f"over all rows: {what}"

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        (below,) = inputs
        return (*below[: len(self.groups)], *(self._call_text(c, below) for c in self.calls))

    def _call_text(self, call: Call, below: Sequence[str]) -> str:
        text = _CALLS.get(call.function, call.function + "({})")
        if call.argument < 0:
            return text
        return text.format(", ".join(below[i] for i in self.arguments[call.argument].inputs))

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        names = tuple(f"group {i + 1}" for i in range(len(self.groups)))
        return (IdentityPart(names, self.groups),)

    def row_counts(self, table: TableId, values: pa.BinaryArray) -> Ints | None:
        if table == self.table:
            return stored_integers(self.codec.decode(values)[0])
        counted = any(a.ordered == table and not a.by_row for a in self.arguments)
        return counts_of(values) if counted else None

    # ------------------------------------------------------------ of which rows its rows are made

    @property
    def grows(self) -> bool:
        return not self.calls

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        return (members.sought(self, wanted),)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        return (members.made_of(self, made, below),)

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        return members.why_not(self, wanted, below)

    def rows_in(self, shard: Shard, group: bytes) -> int:
        """How many rows of the input a group has as of e-1."""
        return int(
            self._decode(shard.get_many(self.table, pa.array([group], pa.binary()))).count[0]
        )

    # ------------------------------------------------------------ at the producer

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys, codes = self.group(changes)
        weights = changes.column(WEIGHT).to_numpy()
        parts = [pa.array(group_count(codes, len(keys), weights))]
        for argument in self.arguments:
            parts += argument.partial(changes, codes, len(keys), weights)
        ordered = (
            argument.pre_aggregation.partial(changes, argument.inputs, keys, codes)
            for argument in self.arguments
            if argument.ordered
        )
        return (_part(keys, parts), *ordered)

    def first_part(self) -> pa.Table | None:
        """What `prepare` would say of an empty table, if all rows are one group."""
        return None if self.groups else self.start()

    def start(self) -> pa.Table:
        """The part that gives a global aggregate its first row."""
        parts = [pa.array([0], pa.int64())]
        for argument in self.arguments:
            parts += argument.nothing()
        return _part(pa.array([GLOBAL], pa.binary()), parts)

    def group(self, changes: pa.Table) -> tuple[pa.BinaryArray, Ints]:
        """The groups of some rows, and for each row the number of its group."""
        if not self.groups:
            keys = pa.array([GLOBAL] if changes.num_rows else [], pa.binary())
            return keys, np.zeros(changes.num_rows, np.int64)
        codec = KeyCodec(self.groups)
        inputs = [column_of(changes, f"c{i}") for i in range(len(self.groups))]
        if len(inputs) > 1:
            return group(codec.encode(inputs))
        # encode each distinct value once, not each row
        encoded = inputs[0].dictionary_encode(null_encoding="encode")
        keys, codes = group(codec.encode([encoded.dictionary]))
        if not len(encoded):
            return keys, np.empty(0, np.int64)
        return keys, codes[encoded.indices.to_numpy(zero_copy_only=False)]

    # ------------------------------------------------------------ at the owner of the group

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        keys, delta = self._combine(parts[0])
        before = shard.get_many(self.table, keys)
        old = self._decode(before)
        new = self._added(old, delta, self._touched(shard, keys, parts[1:], old))
        shard.write(Write(self.table, keys, self._encode(new), before))
        images = [self._image(keys, old, -1), self._image(keys, new, +1)]
        errors = pa.concat_tables([failed for _, failed in images])
        if errors.num_rows:
            record_errors(shard, self.errors, errors)
        yield pa.concat_tables([image for image, _ in images])

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        return column_of(changes, ID)

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for keys, values in shard.scan_batches(self.table, low, high):
            yield self._image(keys, self._decode(values), +1)[0]

    def _combine(self, parts: Sequence[pa.Table]) -> tuple[pa.BinaryArray, GroupState]:
        """The touched groups, and by how much their state grows."""
        rows = pa.concat_tables(parts).combine_chunks()
        keys, codes = group(column_of(rows, KEY))
        arrived = iter(rows.columns[1:])
        count = group_count(codes, len(keys), next(arrived).to_numpy())
        arguments = tuple(a.combine(arrived, codes, len(keys)) for a in self.arguments)
        return keys, GroupState(np.ones(len(keys), bool), count, arguments)

    def _touched(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        parts: Sequence[Sequence[pa.Table]],
        old: GroupState,
    ) -> list[Touched | None]:
        """What becomes of the values in order, per argument; None where there are none."""
        entries = iter(parts)
        return [
            self._touched_values(shard, keys, argument, next(entries, ()), old, i)
            if argument.ordered
            else None
            for i, argument in enumerate(self.arguments)
        ]

    def _touched_values(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        argument: Argument,
        entries: Sequence[pa.Table],
        old: GroupState,
        number: int,
    ) -> Touched | None:
        extremes = old.arguments[number].extremes
        if not entries or extremes is None:
            return None
        return argument.pre_aggregation.apply(
            shard, keys, entries, extremes.least, extremes.greatest
        )

    def _decode(self, values: pa.BinaryArray) -> GroupState:
        stored = iter(self.codec.decode(values))
        exists = values.is_valid().to_numpy(zero_copy_only=False)
        count = stored_integers(next(stored))
        return GroupState(exists, count, tuple(a.decode(stored) for a in self.arguments))

    def _added(
        self, old: GroupState, delta: GroupState, touched: Sequence[Touched | None]
    ) -> GroupState:
        count = old.count + delta.count
        exists = (count > 0) if self.groups else np.ones(len(count), bool)
        states = zip(old.arguments, delta.arguments, touched, strict=True)
        return GroupState(exists, count, tuple(a.add(more, found) for a, more, found in states))

    def _encode(self, state: GroupState) -> pa.BinaryArray:
        data: list[pa.Array] = [pa.array(state.count)]
        for argument, kept in zip(self.arguments, state.arguments, strict=True):
            data += argument.encode(kept)
        encoded = self.codec.encode(data)
        return pc.if_else(pa.array(state.exists), encoded, pa.scalar(None, pa.binary()))

    def _image(
        self, keys: pa.BinaryArray, state: GroupState, weight: int
    ) -> tuple[pa.Table, pa.Table]:
        """The rows of these groups in this state, and error rows for those whose result
        overflows.
        """
        group_columns = KeyCodec(self.groups).decode(keys) if self.groups else []
        results = [result_of(call, state) for call in self.calls]
        raised = np.zeros(len(keys), bool)
        for _, overflow in results:
            raised |= overflow
        weights = pa.array(np.full(len(keys), weight))
        data = [*group_columns, *(values for values, _ in results), weights, keys]
        rows = pa.table(data, names=[*columns(len(self.types)), WEIGHT, ID])
        fine = rows.filter(pa.array(state.exists & ~raised))
        return fine, _failures(keys, state.exists & raised, weight)


def _part(keys: pa.BinaryArray, parts: Sequence[pa.Array]) -> pa.Table:
    return pa.table([keys, *parts], names=[KEY, *(f"p{i}" for i in range(len(parts)))])


def _failures(keys: pa.BinaryArray, mask: Mask, weight: int) -> pa.Table:
    bad = keys.filter(pa.array(mask))
    return error_rows(
        bad, pa.array(np.full(len(bad), weight)), pa.array(np.zeros(len(bad), np.int32))
    )
