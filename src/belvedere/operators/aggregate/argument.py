"""What is kept of one argument list in every group, and the calls that read it.

    columns of a record   non-NULL count | total | number of distinct values, least, greatest
                          always           if summed  if kept in order

A sum keeps the number of its non-NULL arguments, so that the sum of nothing is NULL and not 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from belvedere.encoding.arrays import Ints, Mask
from belvedere.libraries import np, pa
from belvedere.operators.aggregate.ordered import Ordered, Touched
from belvedere.operators.aggregate.totals import TOTALS, Total, TotalKind
from belvedere.operators.grouping import group_count
from belvedere.stores.base import TableId
from belvedere.types import BIGINT, BINARY, SqlType

Function = Literal["count_rows", "count", "count_distinct", "sum", "avg", "min", "max"]


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: `argument` numbers the aggregate's arguments (-1 for count(*))."""

    function: Function
    argument: int
    type: SqlType
    argument_type: SqlType | None = None

    @property
    def scale(self) -> int:
        """That of the argument."""
        return self.argument_type.scale if self.argument_type else 0


@dataclass(frozen=True, slots=True)
class Extremes:
    """Of each group: how many different values it has, and the outermost ones (encoded, NULL =
    none).
    """

    distinct: Ints
    least: pa.BinaryArray
    greatest: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class ArgumentState:
    """Decoded state of one argument, of all touched groups."""

    non_null: Ints
    total: Total | None
    extremes: Extremes | None

    def add(self, delta: ArgumentState, touched: Touched | None) -> ArgumentState:
        total = self.total
        if total is not None and delta.total is not None:
            total = total + delta.total
        extremes = self.extremes
        if extremes is not None and touched is not None:
            distinct = extremes.distinct + touched.distinct
            extremes = Extremes(distinct, touched.least, touched.greatest)
        return ArgumentState(self.non_null + delta.non_null, total, extremes)


@dataclass(frozen=True, slots=True)
class GroupState:
    """Decoded state of the touched groups: whether each is there, its row count, and its
    arguments.
    """

    exists: Mask
    count: Ints
    arguments: tuple[ArgumentState, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One distinct argument list of the calls: numbers of input columns, and what has to be kept of
    it.

    `total` names a kind of sum (`totals`), or is "". `ordered` is the table of the pre-aggregation,
    or 0; `by_row` says that it keeps rows, not counts (`ordered`).
    """

    inputs: tuple[int, ...]
    types: tuple[SqlType, ...]
    total: TotalKind = ""
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
        """The columns of a record."""
        total = TOTALS[self.total].types(self.scale) if self.total else ()
        extremes = (BIGINT, BINARY, BINARY) if self.ordered else ()
        return (BIGINT, *total, *extremes)

    def with_table(self, table: TableId) -> Argument:
        return replace(self, ordered=table)

    # ------------------------------------------------------------ parts that travel

    def partial(self, changes: pa.Table, codes: Ints, groups: int, weights: Ints) -> list[pa.Array]:
        arrays = [changes.column(f"c{i}").combine_chunks() for i in self.inputs]
        live = np.where(_all_valid(arrays), weights, 0)
        parts = [pa.array(group_count(codes, groups, live))]
        if self.total:
            total = TOTALS[self.total].partial(arrays[0], codes, groups, live)
            parts += total.encode(self.scale)
        return parts

    def nothing(self) -> list[pa.Array]:
        """The part of one group without rows."""
        parts = [pa.array([0], pa.int64())]
        return parts + TOTALS[self.total].zero(1).encode(self.scale) if self.total else parts

    def combine(self, parts: Iterator[pa.ChunkedArray], codes: Ints, groups: int) -> ArgumentState:
        """What the parts of several producers say; `codes` has the group of each row of them."""
        non_null = group_count(codes, groups, next(parts).to_numpy())
        if not self.total:
            return ArgumentState(non_null, None, None)
        kind = TOTALS[self.total]
        columns = [column.combine_chunks() for column in islice(parts, kind.columns)]
        return ArgumentState(non_null, kind.combine(columns, codes, groups), None)

    # ------------------------------------------------------------ records

    def decode(self, columns: Iterator[pa.Array]) -> ArgumentState:
        non_null = stored_integers(next(columns))
        total = extremes = None
        if self.total:
            kind = TOTALS[self.total]
            total = kind.decode(list(islice(columns, kind.columns)))
        if self.ordered:
            extremes = Extremes(stored_integers(next(columns)), next(columns), next(columns))
        return ArgumentState(non_null, total, extremes)

    def encode(self, state: ArgumentState) -> list[pa.Array]:
        columns = [pa.array(state.non_null)]
        if state.total is not None:
            columns += state.total.encode(self.scale)
        if state.extremes is not None:
            kept = state.extremes
            columns += [pa.array(kept.distinct), kept.least, kept.greatest]
        return columns


def stored_integers(array: pa.Array) -> Ints:
    """Integers of records; of one that is not there 0."""
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _all_valid(arrays: Sequence[pa.Array]) -> Mask:
    """Rows in which none of the arguments is NULL."""
    valid = np.ones(len(arrays[0]), bool)
    for array in arrays:
        if array.null_count:
            valid &= array.is_valid().to_numpy(zero_copy_only=False)
    return valid
