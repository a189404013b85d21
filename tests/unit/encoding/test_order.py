"""The order of byte strings as numbers is the order of the byte strings."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding.order import (
    Words,
    distinct,
    order_by,
    run_ends,
    run_starts,
    stable_order,
)

SHORT = st.lists(st.binary(max_size=5))
LIKE = st.builds(
    lambda head, tails: [head + t for t in tails],
    st.binary(max_size=40),
    st.lists(st.binary(max_size=9)),
)
NUMBERED = st.lists(st.integers(0, 10**9).map(lambda i: b"\x01k%09d\x00\x01" % i))
STRINGS = st.one_of(SHORT, LIKE, NUMBERED)


@given(STRINGS)
def test_words_are_ordered_and_equal_as_the_strings_they_stand_for(strings: list[bytes]) -> None:
    words = Words.of(pa.array(strings, pa.binary()))
    if words is None:
        return
    assert all(int(n) < 1 << words.bits for n in words.numbers)
    assert np.argsort(words.numbers, kind="stable").tolist() == sorted(
        range(len(strings)), key=strings.__getitem__
    )
    assert len(set(words.numbers.tolist())) == len(set(strings))


@given(STRINGS, st.integers(1, 300))
def test_a_stable_order_is_that_of_pythons_sort(strings: list[bytes], times: int) -> None:
    many = strings * times  # beyond the size from which words are used
    assert stable_order(pa.array(many, pa.binary())).tolist() == sorted(
        range(len(many)), key=many.__getitem__
    )


@given(STRINGS, st.integers(1, 300))
def test_different_values_are_told_with_their_first_and_last_places(
    strings: list[bytes], times: int
) -> None:
    many = strings * times
    values, first, last = distinct(pa.array(many, pa.binary()))
    assert values.to_pylist() == sorted(set(many))
    assert first.tolist() == [many.index(value) for value in sorted(set(many))]
    places = {value: place for place, value in enumerate(many)}
    assert last.tolist() == [places[value] for value in sorted(places)]


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 3), st.booleans())))
def test_order_by_several_columns_is_that_of_tuples(rows: list[tuple[int, int, bool]]) -> None:
    columns = [
        np.array([r[0] for r in rows], np.int64),
        np.array([r[1] for r in rows], np.int64),
        np.array([r[2] for r in rows], bool),
    ]
    assert order_by(*columns).tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=4))))
def test_words_of_pairs(rows: list[tuple[int, bytes]]) -> None:
    first = Words.of_numbers(np.array([r[0] for r in rows], np.int64))
    words = first.then(Words.of(pa.array([r[1] for r in rows], pa.binary())))
    assert words is not None  # two bits, five bytes
    assert words.order().tolist() == sorted(range(len(rows)), key=rows.__getitem__)


@pytest.mark.parametrize(
    "strings",
    [
        [b"a" * 65, b"b"],  # longer than is looked at
        [bytes(range(i, i + 16)) for i in range(0, 240, 16)],  # 16 bytes that all differ
        [b"a", None],
    ],
)
def test_what_does_not_fit_a_word_is_left_to_arrow(strings: list[bytes | None]) -> None:
    values = pa.array(strings, pa.binary())
    assert Words.of(values) is None
    assert stable_order(values).tolist() == pc.sort_indices(values).to_pylist()


def test_a_slice_is_ordered_like_a_copy() -> None:
    whole = pa.array([b"zz", b"b2", b"a1", b"b1", b"\x00"], pa.binary())
    words = Words.of(whole.slice(1, 3))
    assert words is not None
    assert words.order().tolist() == [1, 2, 0]


@given(st.lists(st.binary(max_size=1)))
def test_runs_start_and_end_where_values_change(strings: list[bytes]) -> None:
    first = np.flatnonzero(run_starts(pa.array(strings, pa.binary())))
    last = run_ends(first, len(strings))
    spans = [strings[a : b + 1] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    assert [s for span in spans for s in span] == strings
    assert all(len(set(span)) == 1 for span in spans)
    assert all(a[0] != b[0] for a, b in itertools.pairwise(spans))
