"""What operators speak: changes, prepared parts, and the two kinds of operator.

Changes are an Arrow table with the columns `c0`, `c1`, ... of the rows and

    _w    int64    the weight: +1 a row appears, -1 a row disappears
    _id   binary   the identity of what the row stands for: the encoded base key, or the group key
                   after an aggregate

As of any epoch a relation has at most one row per identity. In one epoch an identity has at most
one change of weight -1, which is exactly what was emitted before, and at most one of weight +1.
Identities are prefix-free codes, so those of a join are put together.

A stateless operator maps changes to changes. A stateful one works in two halves, so that work can
be combined before it travels (and after):

    prepare(port, changes) -> parts       at the producer: tables with a binary column `_k`, the
                                          state key
    step(shard, parts)     -> changes     at the owner of the state key's slot: read as of e-1,
                                          write as of e, emit

`step` sees all parts of its slot of this epoch at once: `parts[i]` are the tables that producers
prepared as their i-th; of an operator with two ports, those of port i. It yields its changes in
batches, so that one row that matches a million does not fill the memory. What it emits and writes
depends only on the multiset of the changes and on the state as of e-1 (rule R5), so an attempt can
run twice, anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from belvedere.libraries import pa
from belvedere.stores.base import Shard, TableId

WEIGHT = "_w"
ID = "_id"
KEY = "_k"


def columns(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array, which is not copied if it is one already."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def change_schema(types: Sequence[pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, kind) for name, kind in zip(columns(len(types)), types, strict=True)]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64()), pa.field(ID, pa.binary())])


def empty_changes(types: Sequence[pa.DataType]) -> pa.Table:
    return change_schema(types).empty_table()


class Stateless(Protocol):
    errors: TableId  # where rows that raise are kept; 0 if no expression can raise

    def apply(self, changes: pa.Table) -> tuple[pa.Table, pa.Table | None]:
        """Changes, and the error rows if there are any (`operators.errors`)."""


class Stateful(Protocol):
    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]: ...
    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]: ...


class Origin(Stateful, Protocol):
    """A stateful operator whose consumers may come later, and are then loaded from its state."""

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        """The state keys of changes that it emitted."""

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        """All rows of its result as of e-1 with low <= state key <
        high, as insertions, in batches.
        """
