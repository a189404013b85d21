"""Results: what a reader sees of a group's state, with Spark's types and overflow rules.

    count = n
    sum = NULL if nothing was summed
    avg = sum / non-NULL count
    min, max = the extremes

Each function gives the values and a mask of the groups whose result cannot be represented; those
are errors of the view (rule R9), while the state behind them stays exact and recovers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from belvedere.encoding import KeyCodec
from belvedere.libraries import np, npt, pa, pc
from belvedere.operators import exact
from belvedere.operators.grouping import Int128, Wide
from belvedere.types import SqlType

if TYPE_CHECKING:
    from belvedere.operators.aggregate import GroupState

Mask: TypeAlias = "npt.NDArray[np.bool_]"
FUNCTIONS = ("count_rows", "count", "count_distinct", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class Call:
    """One aggregate call: `argument` numbers the aggregate's arguments (-1 for count(*))."""

    function: str
    argument: int
    type: SqlType
    argument_type: SqlType | None = None


def result_of(call: Call, state: GroupState, argument: int) -> tuple[pa.Array, Mask]:
    fine = np.zeros(len(state.count), bool)
    if call.function == "count_rows":
        return pa.array(state.count), fine
    if call.function == "count":
        return pa.array(state.non_null[argument]), fine
    if call.function == "count_distinct":
        return pa.array(state.distinct[argument]), fine
    if call.function in ("min", "max"):
        ends = state.least if call.function == "min" else state.greatest
        return _extreme(call, ends[argument]), fine
    total, empty = state.total[argument], state.non_null[argument] == 0
    if isinstance(total, Wide):
        return _wide(call, total, state.non_null[argument])
    if isinstance(total, Int128):
        return (
            _sum(call, total, empty)
            if call.function == "sum"
            else _average(call, total, state.non_null[argument])
        )
    assert total is not None  # kept for every sum and average
    doubles = np.array([exact.to_double(t) for t in total], np.float64)
    if call.function == "avg":
        doubles = doubles / np.maximum(state.non_null[argument], 1)
    return pa.array(doubles, mask=empty), fine


def _extreme(call: Call, suffixes: pa.BinaryArray) -> pa.Array:
    """Decode the extremes; a group without one has NULL, which is encoded as the tag byte 0."""
    return KeyCodec((call.type,)).decode(suffixes.fill_null(b"\x00"))[0]


def _sum(call: Call, total: Int128, empty: Mask) -> tuple[pa.Array, Mask]:
    if call.type.name == "bigint":
        overflow = ~total.fits_int64() & ~empty
        return pa.array(total.low.astype(np.int64), mask=empty | overflow), overflow
    wide = pc.if_else(pa.array(empty), None, total.to_decimal(call.type.scale))
    overflow = (
        pc.greater(pc.abs(wide), _largest(call.type))
        .fill_null(False)
        .to_numpy(zero_copy_only=False)
    )
    kept = pc.if_else(pa.array(overflow), None, wide)
    return kept.cast(call.type.arrow), overflow


@lru_cache(maxsize=64)
def _largest(kind: SqlType) -> pa.Scalar:
    """The largest decimal of a type, as one of 38 digits."""
    with localcontext() as context:
        context.prec = 60
        return pa.scalar(
            Decimal(10**kind.precision - 1).scaleb(-kind.scale), pa.decimal128(38, kind.scale)
        )


def _wide(call: Call, total: Wide, count: npt.NDArray[np.int64]) -> tuple[pa.Array, Mask]:
    """The sum or average of decimals so long that their sum may not be one."""
    if call.function == "sum":
        narrow, fits = total.narrowed()
        values, overflow = _sum(call, narrow, (count == 0) | ~fits)
        return values, overflow | (~fits & (count > 0))
    scale = call.argument_type.scale if call.argument_type else 0
    bound = Decimal(10) ** (call.type.precision - call.type.scale)
    with localcontext() as context:
        context.prec, context.rounding = 120, ROUND_HALF_UP
        unit = Decimal(1).scaleb(-call.type.scale)
        sums = [Decimal(s).scaleb(-scale) for s in total.to_integers()]
        means = [
            (s / n).quantize(unit) if n else None for s, n in zip(sums, count.tolist(), strict=True)
        ]
    overflow = np.array([m is not None and m.copy_abs() >= bound for m in means], bool)
    return (
        pa.array(
            [None if o else m for m, o in zip(means, overflow.tolist(), strict=True)],
            call.type.arrow,
        ),
        overflow,
    )


def _average(call: Call, total: Int128, count: npt.NDArray[np.int64]) -> tuple[pa.Array, Mask]:
    empty = count == 0
    if call.type.name == "double":
        return pa.array(total.to_double() / np.maximum(count, 1), mask=empty), np.zeros(
            len(count), bool
        )
    scale = call.argument_type.scale if call.argument_type else 0
    unit = Decimal(1).scaleb(-call.type.scale)
    with localcontext() as context:
        context.prec, context.rounding = 80, ROUND_HALF_UP
        sums = total.to_decimal(scale).to_pylist()
        values = [
            (s / n).quantize(unit) if n else None for s, n in zip(sums, count.tolist(), strict=True)
        ]
    return pa.array(values, call.type.arrow), np.zeros(len(count), bool)
