"""128-bit sums against Python's integers, which have no limit."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.operators.grouping import Int128, group, group_count, group_sum, wide_sum

_INT64 = st.one_of(
    st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32), 2**31]),
    st.integers(-(2**63), 2**63 - 1),
)
_LIMIT = 10**28 - 1
_UNSCALED = st.one_of(
    st.sampled_from([0, 1, -1, _LIMIT, -_LIMIT, 2**64, -(2**64)]), st.integers(-_LIMIT, _LIMIT)
)
_WEIGHTS = st.one_of(st.sampled_from([1, -1]), st.integers(-5, 5))


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def python(value: Int128) -> list[int]:
    return [(int(h) << 64) + int(lo) for h, lo in zip(value.high, value.low, strict=True)]


def decimals(values: list[int | None], scale: int) -> pa.Array:
    with localcontext() as context:
        context.prec = 60
        return pa.array(
            [None if v is None else Decimal(v).scaleb(-scale) for v in values],
            pa.decimal128(38, scale),
        )


def sums(rows: list[tuple[int, int, int]]) -> list[int]:
    totals = [0, 0, 0]
    for code, value, weight in rows:
        totals[code] += value * weight
    return totals


@given(st.lists(st.tuples(st.integers(0, 2), _INT64, _WEIGHTS), max_size=40))
def test_sums_of_bigints_are_exact(rows: list[tuple[int, int, int]]) -> None:
    codes, values, weights = (ints([r[i] for r in rows]) for i in range(3))
    assert python(group_sum(codes, 3, values, weights)) == sums(rows)


@given(st.lists(st.tuples(st.integers(0, 2), _UNSCALED, _WEIGHTS), max_size=40))
def test_sums_of_decimals_of_28_digits_are_exact(rows: list[tuple[int, int, int]]) -> None:
    codes, weights = ints([r[0] for r in rows]), ints([r[2] for r in rows])
    values = Int128.from_decimal(decimals([r[1] for r in rows], 3))
    assert python(group_sum(codes, 3, values, weights)) == sums(rows)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(-(10**38) + 1, 10**38 - 1), _WEIGHTS), max_size=40
    )
)
def test_sums_of_decimals_of_38_digits_are_exact_beyond_128_bits(
    rows: list[tuple[int, int, int]],
) -> None:
    codes, weights = ints([r[0] for r in rows]), ints([r[2] for r in rows])
    values = Int128.from_decimal(decimals([r[1] for r in rows], 3))
    once = wide_sum(codes, 3, values, weights)
    assert once.to_integers() == sums(rows)
    assert (once + once).to_integers() == [2 * total for total in sums(rows)]
    narrow, fits = once.narrowed()
    assert fits.tolist() == [-(2**127) <= total < 2**127 for total in sums(rows)]
    assert [v for v, ok in zip(python(narrow), fits, strict=True) if ok] == [
        t for t in sums(rows) if -(2**127) <= t < 2**127
    ]


@given(st.lists(st.tuples(st.integers(0, 2), _INT64, st.integers(-(2**30), 2**30)), max_size=10))
def test_sums_with_large_weights_are_exact(rows: list[tuple[int, int, int]]) -> None:
    codes, values, weights = (ints([r[i] for r in rows]) for i in range(3))
    assert python(group_sum(codes, 3, values, weights)) == sums(rows)


def test_a_hot_group_of_two_million_extremes_is_exact() -> None:
    count = 2 * 2**20 + 7
    values, weights = np.full(count, 2**63 - 1, np.int64), np.ones(count, np.int64)
    assert python(group_sum(np.zeros(count, np.int64), 1, values, weights)) == [count * (2**63 - 1)]


@given(st.lists(st.tuples(_UNSCALED, _UNSCALED), min_size=1, max_size=10))
def test_addition_and_doubles_agree_with_python(pairs: list[tuple[int, int]]) -> None:
    left, right = (Int128.from_decimal(decimals([p[i] for p in pairs], 0)) for i in (0, 1))
    total = left + right
    assert python(total) == [a + b for a, b in pairs]
    assert total.fits_int64().tolist() == [-(2**63) <= a + b < 2**63 for a, b in pairs]
    assert total.to_double().tolist() == pytest.approx([float(a + b) for a, b in pairs], rel=1e-15)


@given(st.lists(st.one_of(st.none(), _UNSCALED), max_size=10), st.integers(0, 5))
def test_decimals_come_back_and_null_is_zero(values: list[int | None], offset: int) -> None:
    array = decimals(values, 4).slice(min(offset, len(values)))
    kept = values[offset:]
    wide = Int128.from_decimal(array)
    assert python(wide) == [v or 0 for v in kept]
    assert wide.to_decimal(4).to_pylist() == decimals([v or 0 for v in kept], 4).to_pylist()


@given(st.lists(st.sampled_from([b"", b"a", b"b", b"a\x00", b"\xff"])), st.integers(0, 3))
def test_groups_are_distinct_keys_in_byte_order(keys: list[bytes], offset: int) -> None:
    found, codes = group(pa.array(keys, pa.binary()).slice(min(offset, len(keys))))
    assert found.to_pylist() == sorted(set(keys[offset:]))
    assert [found[int(c)].as_py() for c in codes] == keys[offset:]


def test_counts_are_sums_of_weights() -> None:
    assert group_count(ints([0, 1, 0]), 3, ints([2, -1, 3])).tolist() == [5, -1, 0]
