"""Totals: one class per kind of sum, each a vector with the total of every group.

    int      a 128-bit integer: bigint, and decimals of up to 28 digits by their unscaled integers
    wide     a longer one: decimals so long that a few of them fill 128 bits
    double   an exact binary sum (`operators.exact`)

A kind of total is a commutative group: `zero` and `+`, and what was added can be taken away again,
whatever the order (rule R5). `encode` and `decode` give the columns of a group's record and of the
parts that travel: their types are a format.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import ClassVar, Literal, Self, TypeAlias

from belvedere.encoding.arrays import Ints, Mask
from belvedere.libraries import np, pa, pc
from belvedere.operators import exact
from belvedere.operators.grouping import Int128, Wide, group_sum, wide_sum
from belvedere.types import BINARY, SqlType, decimal

TotalKind = Literal["", "int", "wide", "double"]
TotalFunction = Literal["sum", "avg"]
# the values, and which of them cannot be represented
Result: TypeAlias = "tuple[pa.Array, Mask]"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a total: its sum or average as a type; `scale` is that of the argument."""

    function: TotalFunction
    type: SqlType
    scale: int


class Total(ABC):
    """The totals of one argument, one per group."""

    __slots__ = ()

    columns: ClassVar[int] = 1  # how many columns it is stored in

    @staticmethod
    @abstractmethod
    def types(scale: int) -> tuple[SqlType, ...]:
        """The types of these columns; `scale` is that of the argument."""

    @classmethod
    @abstractmethod
    def zero(cls, groups: int) -> Self: ...

    @classmethod
    @abstractmethod
    def partial(cls, values: pa.Array, codes: Ints, groups: int, weights: Ints) -> Self:
        """The sum of value * weight; `codes` has the group of each value. The weight of NULL is
        0.
        """

    @classmethod
    @abstractmethod
    def combine(cls, parts: Sequence[pa.Array], codes: Ints, groups: int) -> Self:
        """The sum of encoded totals; `codes` has the group of each."""

    @classmethod
    @abstractmethod
    def decode(cls, stored: Sequence[pa.Array]) -> Self:
        """From the columns of records; a record that is not there has NULL and counts as zero."""

    @abstractmethod
    def encode(self, scale: int) -> list[pa.Array]: ...

    @abstractmethod
    def __add__(self, other: Self) -> Self: ...

    @abstractmethod
    def result(self, wanted: Wanted, count: Ints) -> Result:
        """The sum or average of so many values; of none it is NULL."""


@dataclass(frozen=True, slots=True)
class IntTotal(Total):
    values: Int128

    @staticmethod
    def types(scale: int) -> tuple[SqlType, ...]:
        return (decimal(38, scale),)

    @classmethod
    def zero(cls, groups: int) -> IntTotal:
        return cls(Int128.zeros(groups))

    @classmethod
    def partial(cls, values: pa.Array, codes: Ints, groups: int, weights: Ints) -> IntTotal:
        return cls(group_sum(codes, groups, _integers(values), weights))

    @classmethod
    def combine(cls, parts: Sequence[pa.Array], codes: Ints, groups: int) -> IntTotal:
        return cls(_column_sum(parts[0], codes, groups))

    @classmethod
    def decode(cls, stored: Sequence[pa.Array]) -> IntTotal:
        return cls(Int128.from_decimal(stored[0]))

    def encode(self, scale: int) -> list[pa.Array]:
        return [self.values.to_decimal(scale)]

    def __add__(self, other: IntTotal) -> IntTotal:
        return IntTotal(self.values + other.values)

    def result(self, wanted: Wanted, count: Ints) -> Result:
        if wanted.function == "sum":
            return sum_of_integers(self.values, wanted.type, count == 0)
        if wanted.type.name == "double":
            means = self.values.to_double() / np.maximum(count, 1)
            return pa.array(means, mask=count == 0), _nowhere(count)
        sums = self.values.to_decimal(wanted.scale).to_pylist()
        rounded = _means(sums, count, wanted.type.scale, precision=80)
        return pa.array(rounded, wanted.type.arrow), _nowhere(count)


@dataclass(frozen=True, slots=True)
class WideTotal(Total):
    values: Wide

    columns: ClassVar[int] = 2

    @staticmethod
    def types(scale: int) -> tuple[SqlType, ...]:
        return decimal(38, 0), decimal(38, 0)  # the upper part, and the lower 64 bits

    @classmethod
    def zero(cls, groups: int) -> WideTotal:
        return cls(Wide.zeros(groups))

    @classmethod
    def partial(cls, values: pa.Array, codes: Ints, groups: int, weights: Ints) -> WideTotal:
        return cls(wide_sum(codes, groups, Int128.from_decimal(values), weights))

    @classmethod
    def combine(cls, parts: Sequence[pa.Array], codes: Ints, groups: int) -> WideTotal:
        high, low = (_column_sum(part, codes, groups) for part in parts)
        return cls(Wide.of(high, low))

    @classmethod
    def decode(cls, stored: Sequence[pa.Array]) -> WideTotal:
        high, low = (Int128.from_decimal(column) for column in stored)
        return cls(Wide(high, low))

    def encode(self, scale: int) -> list[pa.Array]:
        return [self.values.high.to_decimal(0), self.values.low.to_decimal(0)]

    def __add__(self, other: WideTotal) -> WideTotal:
        return WideTotal(self.values + other.values)

    def result(self, wanted: Wanted, count: Ints) -> Result:
        return self._sum(wanted, count) if wanted.function == "sum" else self._mean(wanted, count)

    def _sum(self, wanted: Wanted, count: Ints) -> Result:
        narrow, fits = self.values.narrowed()
        values, overflow = sum_of_integers(narrow, wanted.type, (count == 0) | ~fits)
        return values, overflow | (~fits & (count > 0))

    def _mean(self, wanted: Wanted, count: Ints) -> Result:
        with localcontext() as context:
            context.prec = _WIDE_DIGITS
            sums = [Decimal(s).scaleb(-wanted.scale) for s in self.values.to_integers()]
        means = _means(sums, count, wanted.type.scale, precision=_WIDE_DIGITS)
        bound = Decimal(10) ** (wanted.type.precision - wanted.type.scale)
        overflow = np.array([m is not None and m.copy_abs() >= bound for m in means], bool)
        kept = [None if over else m for m, over in zip(means, overflow.tolist(), strict=True)]
        return pa.array(kept, wanted.type.arrow), overflow


@dataclass(frozen=True, slots=True)
class DoubleTotal(Total):
    values: list[exact.Total]

    @staticmethod
    def types(scale: int) -> tuple[SqlType, ...]:
        return (BINARY,)

    @classmethod
    def zero(cls, groups: int) -> DoubleTotal:
        return cls([exact.ZERO] * groups)

    @classmethod
    def partial(cls, values: pa.Array, codes: Ints, groups: int, weights: Ints) -> DoubleTotal:
        doubles = values.fill_null(0.0).to_numpy(zero_copy_only=False)
        return cls(exact.group_totals(codes, groups, doubles, weights))

    @classmethod
    def combine(cls, parts: Sequence[pa.Array], codes: Ints, groups: int) -> DoubleTotal:
        totals = [exact.ZERO] * groups
        for code, value in zip(codes.tolist(), parts[0].to_pylist(), strict=True):
            totals[code] = exact.add(totals[code], exact.unpack(value))
        return cls(totals)

    @classmethod
    def decode(cls, stored: Sequence[pa.Array]) -> DoubleTotal:
        found = stored[0].to_pylist()
        return cls([exact.ZERO if value is None else exact.unpack(value) for value in found])

    def encode(self, scale: int) -> list[pa.Array]:
        return [pa.array([exact.pack(total) for total in self.values], pa.binary())]

    def __add__(self, other: DoubleTotal) -> DoubleTotal:
        pairs = zip(self.values, other.values, strict=True)
        return DoubleTotal([exact.add(a, b) for a, b in pairs])

    def result(self, wanted: Wanted, count: Ints) -> Result:
        doubles = np.array([exact.to_double(total) for total in self.values], np.float64)
        if wanted.function == "avg":
            doubles = doubles / np.maximum(count, 1)
        return pa.array(doubles, mask=count == 0), _nowhere(count)


TOTALS: dict[TotalKind, type[Total]] = {"int": IntTotal, "wide": WideTotal, "double": DoubleTotal}

_WIDE_DIGITS = 120  # more than a wide total of any number of rows has


def sum_of_integers(total: Int128, kind: SqlType, empty: Mask) -> Result:
    """Sums as bigint or as decimals of a type; those out of its range overflow."""
    if kind.name == "bigint":
        overflow = ~total.fits_int64() & ~empty
        return pa.array(total.low.astype(np.int64), mask=empty | overflow), overflow
    sums = pc.if_else(pa.array(empty), None, total.to_decimal(kind.scale))
    beyond = pc.greater(pc.abs(sums), _largest(kind)).fill_null(False)
    kept = pc.if_else(beyond, None, sums)
    return kept.cast(kind.arrow), beyond.to_numpy(zero_copy_only=False)


def _means(
    sums: Sequence[Decimal], count: Ints, scale: int, precision: int
) -> list[Decimal | None]:
    """Decimal averages, rounded as Spark rounds them; of no values NULL."""
    unit = Decimal(1).scaleb(-scale)
    with localcontext() as context:
        context.prec, context.rounding = precision, ROUND_HALF_UP
        pairs = zip(sums, count.tolist(), strict=True)
        return [(total / n).quantize(unit) if n else None for total, n in pairs]


@lru_cache(maxsize=64)
def _largest(kind: SqlType) -> pa.Scalar:
    """The largest decimal of a type, as one of 38 digits."""
    with localcontext() as context:
        context.prec = 60
        return pa.scalar(
            Decimal(10**kind.precision - 1).scaleb(-kind.scale), pa.decimal128(38, kind.scale)
        )


def _column_sum(column: pa.Array, codes: Ints, groups: int) -> Int128:
    return group_sum(codes, groups, Int128.from_decimal(column), np.ones(len(codes), np.int64))


def _integers(array: pa.Array) -> Ints | Int128:
    if pa.types.is_decimal(array.type):
        return Int128.from_decimal(array)
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _nowhere(count: Ints) -> Mask:
    return np.zeros(len(count), bool)
