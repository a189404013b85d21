"""Ranges of keys: what is in them, how they are united and read, and what a reader does that was
overtaken.
"""

from __future__ import annotations

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import belvedere
from belvedere.encoding.ranges import (
    EVERYTHING,
    KeyRange,
    Ranges,
    Span,
    in_order,
    intersect,
    point,
    ranges_of,
    unite,
)
from belvedere.errors import Stale
from belvedere.readers.cut import Cut, at_cut
from belvedere.readers.ranges import Place, by_slot, read_ranges

KEYS = [bytes([a, b]) for a in range(1, 6) for b in range(1, 6)]
ends = st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS))
spans = st.lists(ends.filter(lambda e: e[0] < e[1]).map(lambda e: Span(*e)), max_size=4)


def disjoint(some: list[Span]) -> tuple[Span, ...]:
    """Those that begin after the one before has ended."""
    found: list[Span] = []
    for span in in_order(some):
        if not found or found[-1].high <= span.low:
            found.append(span)
    return tuple(found)


def is_in(key: bytes, some: tuple[Span, ...] | Ranges) -> bool:
    return any(each.low <= key and (each.high is None or key < each.high) for each in some)


@given(spans.map(disjoint), spans.map(disjoint))
def test_an_intersection_has_what_both_have(
    some: tuple[Span, ...], others: tuple[Span, ...]
) -> None:
    both = intersect(some, others)
    for key in KEYS:
        assert is_in(key, both) == (is_in(key, some) and is_in(key, others))
    assert disjoint(list(both)) == both


@given(st.lists(ends.map(lambda e: KeyRange((), min(e), max(e) + b"\xff")), max_size=6))
def test_a_union_is_disjoint_and_has_what_any_has(some: list[KeyRange]) -> None:
    united = unite(some)
    assert [is_in(key, united) for key in KEYS] == [is_in(key, tuple(some)) for key in KEYS]
    assert all(a.high is not None and a.high <= b.low for a, b in itertools.pairwise(united))


def test_columns_are_used_while_those_before_them_have_single_values() -> None:
    one, two = point(b"\x01a"), point(b"\x01b")
    wide = Span(b"\x01", b"\x02")
    assert ranges_of([None, (one,)]) == EVERYTHING
    assert ranges_of([(one,), None]) == (KeyRange((b"\x01a",), b"\x01a", b"\x01a\xff"),)
    assert [r.low for r in ranges_of([(one, two), (one,)])] == [b"\x01a\x01a", b"\x01b\x01a"]
    assert ranges_of([(wide,), (one,)]) == (KeyRange((), b"\x01", b"\x02"),)
    assert ranges_of([(one,), ()]) == ()


def test_batches_grow_from_what_is_asked_for_first() -> None:
    records = pa.array([b"%04d" % i for i in range(2_000)], pa.binary())
    asked: list[int] = []

    def scan(low: bytes, high: bytes | None, size: int) -> object:
        asked.append(size)
        keys = [k for k in records.to_pylist() if k >= low and (high is None or k < high)]
        for start in range(0, len(keys), size):
            batch = pa.array(keys[start : start + size], pa.binary())
            yield batch, batch

    place = Place(scan, lambda keys: keys)  # type: ignore[arg-type]  # a generator is an iterator
    batches = read_ranges((KeyRange((), b"0000", b"1500"),), 1, place, 10)
    read = [key for keys, _ in batches for key in keys.to_pylist()]
    assert read == records.to_pylist()[:1500]
    assert asked == [10, 80, 640, 5120, 40960]


def test_whole_keys_are_looked_up_in_the_slot_that_has_them() -> None:
    keys = ranges_of([tuple(point(b"\x01%03d" % i) for i in range(50))])
    slots = dict(by_slot(keys, 1, 4))
    assert sum(map(len, slots.values())) == 50
    assert dict(by_slot(EVERYTHING, 1, 4)) == {slot: list(EVERYTHING) for slot in range(4)}


def test_a_narrow_read_that_was_overtaken_holds_its_cut() -> None:
    with belvedere.open("memory:", slots=2) as db:
        held: list[int] = []

        def read(cut: Cut) -> int:
            held.append(len(db.store.catalog.read(lambda t: t.scan("pin/"))))
            if len(held) == 1:
                raise Stale("the epoch is gone")
            return cut.epoch

        assert at_cut(db.store, read, tries=1) == 0
        assert held == [0, 1]
