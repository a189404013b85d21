"""Grouping and exact sums without a Python loop.

Sums are 128-bit integers kept as two 64-bit halves (the layout of Arrow's decimal128), so that SUM
over bigint and over decimals of up to 28 digits is exact at any number of rows; longer decimals are
summed in `Wide` integers. `np.bincount` adds in doubles; it is exact here because every limb is
below 2**32 and at most 2**20 rows are added at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from belvedere.encoding.arrays import Doubles, Ints, Mask
from belvedere.encoding.order import stable_order
from belvedere.libraries import np, npt, pa

Words: TypeAlias = "npt.NDArray[np.uint64]"
_EXACT = 1 << 20


def group(keys: pa.Array) -> tuple[pa.BinaryArray, Ints]:
    """The distinct keys in byte order, and for each input row the index of its key among them."""
    encoded = keys.dictionary_encode()
    ranks = stable_order(encoded.dictionary)
    place = np.empty(len(ranks), np.int64)
    place[ranks] = np.arange(len(ranks))
    codes = (
        place[encoded.indices.to_numpy(zero_copy_only=False)]
        if len(ranks)
        else np.empty(0, np.int64)
    )
    return encoded.dictionary.take(pa.array(ranks)), codes


@dataclass(frozen=True, slots=True)
class Int128:
    """A vector of 128-bit integers in two's complement."""

    low: Words
    high: Ints

    @classmethod
    def zeros(cls, count: int) -> Int128:
        return cls(np.zeros(count, np.uint64), np.zeros(count, np.int64))

    @classmethod
    def from_int64(cls, values: Ints) -> Int128:
        return cls(values.astype(np.uint64), values >> np.int64(63))

    @classmethod
    def from_decimal(cls, array: pa.Array) -> Int128:
        """The unscaled integers of a decimal128 array; NULL counts as 0."""
        words = np.frombuffer(array.buffers()[1], np.uint64)[
            2 * array.offset : 2 * (array.offset + len(array))
        ]
        low, high = words[0::2].copy(), words[1::2].astype(np.int64)
        if array.null_count:
            missing = array.is_null().to_numpy(zero_copy_only=False)
            low[missing], high[missing] = 0, 0
        return cls(low, high)

    def to_decimal(self, scale: int) -> pa.Array:
        words = np.empty((len(self.low), 2), np.uint64)
        words[:, 0], words[:, 1] = self.low, self.high.astype(np.uint64)
        return pa.Array.from_buffers(
            pa.decimal128(38, scale), len(words), [None, pa.py_buffer(words)]
        )

    def __add__(self, other: Int128) -> Int128:
        low = self.low + other.low
        return Int128(low, self.high + other.high + (low < self.low).astype(np.int64))

    def shift32(self) -> Int128:
        """Times 2**32."""
        high = (self.high.astype(np.uint64) << np.uint64(32)) | (self.low >> np.uint64(32))
        return Int128(self.low << np.uint64(32), high.astype(np.int64))

    def fits_int64(self) -> Mask:
        return np.asarray(self.high == (self.low.astype(np.int64) >> np.int64(63)))

    def to_double(self) -> Doubles:
        small = self.low.astype(np.int64).astype(np.float64)
        return np.where(
            self.fits_int64(),
            small,
            self.high.astype(np.float64) * 2.0**64 + self.low.astype(np.float64),
        )


@dataclass(frozen=True, slots=True)
class Wide:
    """A vector of integers high * 2**64 + low with 0 <= low < 2**64: sums of 128-bit integers,
    exact at any number of rows.
    """

    high: Int128
    low: Int128

    @classmethod
    def zeros(cls, count: int) -> Wide:
        return cls(Int128.zeros(count), Int128.zeros(count))

    @classmethod
    def of(cls, high: Int128, low: Int128) -> Wide:
        """With what the lower part has too much carried over."""
        return cls(
            high + Int128.from_int64(low.high), Int128(low.low, np.zeros(len(low.low), np.int64))
        )

    def __add__(self, other: Wide) -> Wide:
        return Wide.of(self.high + other.high, self.low + other.low)

    def narrowed(self) -> tuple[Int128, Mask]:
        """As 128-bit integers, and which of them fit."""
        return Int128(self.low.low, self.high.low.astype(np.int64)), self.high.fits_int64()

    def to_integers(self) -> list[int]:
        pairs = zip(
            self.high.to_decimal(0).to_pylist(), self.low.to_decimal(0).to_pylist(), strict=True
        )
        return [(int(high) << 64) + int(low) for high, low in pairs]


def group_count(codes: Ints, groups: int, weights: Ints) -> Ints:
    return np.bincount(codes, weights, groups).astype(np.int64)


def group_sum(codes: Ints, groups: int, values: Ints | Int128, weights: Ints) -> Int128:
    """The exact sum of value * weight per group."""
    wide = values if isinstance(values, Int128) else Int128.from_int64(values)
    limbs = [
        wide.high >> np.int64(32),
        wide.high & np.int64(0xFFFFFFFF),
        wide.low >> np.uint64(32),
        wide.low & np.uint64(0xFFFFFFFF),
    ]
    if not isinstance(values, Int128):  # two limbs are enough: the upper one is signed
        limbs = [values >> np.int64(32), values & np.int64(0xFFFFFFFF)]
    total = Int128.zeros(groups)
    for limb in limbs:
        total = total.shift32() + _limb_sum(codes, groups, limb.astype(np.int64), weights)
    return total


def wide_sum(codes: Ints, groups: int, values: Int128, weights: Ints) -> Wide:
    """The same for values of up to 128 bits, of which a few already fill an Int128."""
    low = Int128(values.low, np.zeros(len(values.low), np.int64))
    return Wide.of(
        group_sum(codes, groups, values.high, weights), group_sum(codes, groups, low, weights)
    )


def _limb_sum(codes: Ints, groups: int, limb: Ints, weights: Ints) -> Int128:
    heavy = int(np.abs(weights).max(initial=1))
    rows = max(1, _EXACT // heavy)
    if heavy > _EXACT:  # weights beyond any real fan-out: exact, but not fast
        return _big_limb_sum(codes, groups, limb, weights)
    result = np.zeros(groups, np.int64)
    for start in range(0, len(codes), rows):
        part = slice(start, start + rows)
        result += np.bincount(
            codes[part], (limb[part] * weights[part]).astype(np.float64), groups
        ).astype(np.int64)
    return Int128.from_int64(result)


def _big_limb_sum(codes: Ints, groups: int, limb: Ints, weights: Ints) -> Int128:
    sums: list[Any] = [0] * groups
    for code, value, weight in zip(codes.tolist(), limb.tolist(), weights.tolist(), strict=True):
        sums[code] += value * weight
    return Int128(
        np.array([s & 0xFFFF_FFFF_FFFF_FFFF for s in sums], np.uint64),
        np.array([s >> 64 for s in sums], np.int64),
    )
