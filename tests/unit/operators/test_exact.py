"""Exact sums of doubles against fractions, which do not round."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from belvedere.operators import exact

_TINY = 5e-324
_FINITE = st.one_of(
    st.sampled_from(
        [0.0, -0.0, _TINY, -_TINY, 2.2250738585072014e-308, 1e308, -1e308, 0.1, 1.0, 2.0**53]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
_ANY = st.one_of(_FINITE, st.sampled_from([math.nan, math.inf, -math.inf]))
Rows = list[tuple[float, int]]
rows = st.lists(st.tuples(_FINITE, st.integers(-3, 3)), max_size=30)


def total(found: Rows) -> exact.Total:
    values, weights = (
        np.array([v for v, _ in found], np.float64),
        np.array([w for _, w in found], np.int64),
    )
    return exact.group_totals(np.zeros(len(found), np.int64), 1, values, weights)[0]


def fraction(found: Rows) -> Fraction:
    return sum((Fraction(v) * w for v, w in found), Fraction(0))


@given(rows)
def test_a_total_is_the_fraction(found: Rows) -> None:
    assert Fraction(total(found)[0], 2**1074) == fraction(found)


@given(st.lists(_FINITE, max_size=30))
def test_the_double_is_the_exact_sum_rounded_once(values: list[float]) -> None:
    try:
        expected = math.fsum(values)
    except OverflowError:  # fsum gives up on intermediate sums that are too large
        wide = fraction([(v, 1) for v in values])
        expected = (
            float(wide)
            if abs(wide) < Fraction(2) ** 1024 - Fraction(2) ** 970
            else math.inf
            if wide > 0
            else -math.inf
        )
    assert exact.to_double(total([(v, 1) for v in values])) == expected


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(found: Rows, random: object) -> None:
    shuffled = found[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert total(shuffled) == total(found)


@given(
    st.lists(st.tuples(_ANY, st.integers(-3, 3)), max_size=20),
    st.lists(st.tuples(_ANY, st.integers(1, 3)), max_size=20),
)
def test_what_is_taken_away_again_cancels_exactly(kept: Rows, gone: Rows) -> None:
    assert exact.add(total(kept + gone), total([(v, -w) for v, w in gone])) == total(kept)


@given(st.lists(st.tuples(_ANY, st.integers(1, 3)), max_size=20))
def test_not_a_number_and_infinities_decide_while_they_are_there(found: Rows) -> None:
    expected = sum((v for v, _ in found if not math.isfinite(v)), 0.0)
    if any(not math.isfinite(v) for v, _ in found):
        assert math.isnan(expected) == math.isnan(exact.to_double(total(found)))
        assert math.isnan(expected) or exact.to_double(total(found)) == expected


@given(st.lists(st.tuples(_ANY, st.integers(-3, 3)), max_size=20))
def test_totals_are_packed_without_loss(found: Rows) -> None:
    assert exact.unpack(exact.pack(total(found))) == total(found)


@given(st.lists(st.tuples(st.integers(0, 3), _FINITE), max_size=40))
def test_groups_do_not_mix(found: list[tuple[int, float]]) -> None:
    codes, values = (
        np.array([c for c, _ in found], np.int64),
        np.array([v for _, v in found], np.float64),
    )
    totals = exact.group_totals(codes, 4, values, np.ones(len(found), np.int64))
    assert totals == [total([(v, 1) for c, v in found if c == g]) for g in range(4)]


def test_subnormals_add_up() -> None:
    assert exact.to_double(total([(_TINY, 1)] * 7)) == 7 * _TINY


def test_a_sum_beyond_all_doubles_is_infinite_and_comes_back() -> None:
    huge = total([(1.7e308, 1), (1.7e308, 1)])
    assert exact.to_double(huge) == math.inf
    assert exact.to_double(exact.add(huge, total([(1.7e308, -1)]))) == 1.7e308
