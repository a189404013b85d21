"""Exact sums of doubles: independent of order, and what is added can be taken away again.

A total is an integer multiple of 2**-1074 (the smallest double), with NaN and the infinities
counted apart:

    total = (units, nans, positive infinities, negative infinities)

A sum in doubles depends on the order of additions and does not cancel; an attempt that adds in
another order would emit another row, and its retraction would not match (rule R5). Here the double
that a reader sees is the exact sum, rounded once. The work per row is vectorised; Python integers
are touched once per group and binary exponent.
"""

from __future__ import annotations

import math
import struct

from belvedere.encoding.arrays import Doubles, Ints, Mask
from belvedere.encoding.order import order_by
from belvedere.libraries import np

Total = tuple[int, int, int, int]
ZERO: Total = (0, 0, 0, 0)
_UNIT = 1074
_HALF = 27  # bits of the lower half of a mantissa
_PLACES = 4096  # more than there are binary exponents
_SHIFT, _SHIFT_MOST = 64, -60  # a mantissa has 53 bits, so nothing is shifted further to the right
_SPECIALS = struct.Struct("<qqqH")


def group_totals(codes: Ints, groups: int, values: Doubles, weights: Ints) -> list[Total]:
    """The total of value * weight per group."""
    units = _group_units(codes, groups, values, weights)
    counts = [
        np.bincount(codes, np.where(test, weights, 0), groups).astype(np.int64).tolist()
        for test in _specials(values)
    ]
    return list(zip(units, *counts, strict=True))


def _group_units(codes: Ints, groups: int, values: Doubles, weights: Ints) -> list[int]:
    """The sum of the finite values in units of 2**-1074, per group.

    A double is whole * 2**place, with |whole| < 2**53. Rows of one group and place are added up in
    two halves of `whole`, none of which leaves 64 bits; Python adds the sums of the places.
    """
    finite = np.isfinite(values) & (weights != 0)
    whole, place = _split(np.where(finite, values, 0.0))
    order = order_by(codes, place)
    order = order[finite[order] & (whole[order] != 0)]
    units = [0] * groups
    if not len(order):
        return units
    pair = codes[order] * _PLACES + place[order]
    starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
    sums = _sums(whole[order], weights[order], starts)
    for at, total in zip(pair[starts].tolist(), sums, strict=True):
        group, exponent = divmod(at, _PLACES)
        units[group] += (total << exponent) >> _SHIFT
    return units


def _sums(whole: Ints, weights: Ints, starts: Ints) -> list[int]:
    """The sum of whole * weight of each run of rows."""
    high = np.add.reduceat((whole >> _HALF) * weights, starts)
    low = np.add.reduceat((whole & (2**_HALF - 1)) * weights, starts)
    return [(h << _HALF) + lo for h, lo in zip(high.tolist(), low.tolist(), strict=True)]


def _split(values: Doubles) -> tuple[Ints, Ints]:
    """Whole numbers and how many bits each is to be shifted, plus _SHIFT, so that no subnormal has
    a negative one.
    """
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    place = np.maximum(exponent.astype(np.int64) - 53 + _UNIT, _SHIFT_MOST) + _SHIFT
    return whole, place


def _specials(values: Doubles) -> tuple[Mask, ...]:
    return np.isnan(values), np.isposinf(values), np.isneginf(values)


def add(a: Total, b: Total) -> Total:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


def to_double(total: Total) -> float:
    """The exact sum, rounded once to the nearest double."""
    units, nans, positive, negative = total
    if nans or (positive and negative):
        return math.nan
    if positive or negative:
        return math.inf if positive else -math.inf
    try:
        return units / (1 << _UNIT)
    except OverflowError:
        return math.inf if units > 0 else -math.inf


def pack(total: Total) -> bytes:
    units = total[0]
    zeros = (units & -units).bit_length() - 1 if units else 0
    digits = units >> zeros
    return _SPECIALS.pack(*total[1:], zeros) + digits.to_bytes(
        (digits.bit_length() + 8) // 8, "little", signed=True
    )


def unpack(data: bytes) -> Total:
    nans, positive, negative, zeros = _SPECIALS.unpack_from(data)
    return (
        int.from_bytes(data[_SPECIALS.size :], "little", signed=True) << zeros,
        nans,
        positive,
        negative,
    )
