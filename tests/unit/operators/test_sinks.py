"""Sinks: what is in the table of a view after each epoch."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.counts import counts_of
from belvedere.operators.sinks import BagSink, KeyedSink, key_codec, row_codec
from belvedere.testing import OneSlot, changes
from belvedere.types import BIGINT, INT, STRING

_TABLE = 3
_KEYED = KeyedSink(_TABLE, (STRING, BIGINT), key=(0,), value=(1,))
_BAG = BagSink(_TABLE, (STRING, INT), order=(1, 0))
_BY_ID = KeyedSink(_TABLE, (BIGINT,), key=(), value=(0,), by_id=True)


def keyed(slot: OneSlot) -> dict[str, int]:
    records = slot.records(_TABLE)
    keys = (
        key_codec(_KEYED.types, _KEYED.key)
        .decode(pa.array(list(records), pa.binary()))[0]
        .to_pylist()
    )
    values = (
        row_codec(_KEYED.types, _KEYED.value)
        .decode(pa.array(list(records.values()), pa.binary()))[0]
        .to_pylist()
    )
    return dict(zip(keys, values, strict=True))


def counted(slot: OneSlot) -> Counter[tuple[str | None, int]]:
    records = slot.records(_TABLE)
    numbers, names = key_codec(_BAG.types, _BAG.order).decode(pa.array(list(records), pa.binary()))
    counts = counts_of(pa.array(list(records.values()), pa.binary())).tolist()
    return Counter(
        dict(zip(zip(names.to_pylist(), numbers.to_pylist(), strict=True), counts, strict=True))
    )


def test_a_keyed_sink_inserts_replaces_and_deletes() -> None:
    slot = OneSlot()
    slot.step(
        _KEYED,
        changes("""
        region | total
        emea   | 5
        apac   | 7
    """),
    )
    assert keyed(slot) == {"emea": 5, "apac": 7}
    slot.step(
        _KEYED,
        changes("""
        region | total | w
        emea   | 5     | -1
        emea   | 6     | +1
        apac   | 7     | -1
    """),
    )
    assert keyed(slot) == {"emea": 6}


def test_both_sides_of_a_replacement_may_come_from_different_producers_in_any_order() -> None:
    old, new = "region | total | w\nemea | 5 | -1", "region | total | w\nemea | 6 | +1"
    for batches in ([old, new], [new, old]):
        slot = OneSlot()
        slot.step(_KEYED, changes("region | total\nemea | 5"))
        slot.step(_KEYED, *map(changes, batches))
        assert keyed(slot) == {"emea": 6}


def test_the_identity_can_be_the_key() -> None:
    slot = OneSlot()
    slot.step(_BY_ID, changes("id | total\nk | 5"))
    assert list(slot.records(_TABLE)) == [b"k"]


def test_a_second_attempt_of_an_epoch_leaves_the_same_records() -> None:
    slot = OneSlot()
    slot.step(_BAG, changes("s | i int\na | 1\na | 1"))
    slot.epoch -= 1
    slot.step(_BAG, changes("s | i int\na | 1\na | 1"))
    assert counted(slot) == {("a", 1): 2}


def rows(found: list[tuple[tuple[str | None, int], int]]) -> pa.Table:
    data = [
        pa.array([r[0][0] for r in found], pa.string()),
        pa.array([r[0][1] for r in found], pa.int32()),
    ]
    meta = [pa.array([r[1] for r in found], pa.int64()), pa.array([b""] * len(found), pa.binary())]
    return pa.table([*data, *meta], names=["c0", "c1", WEIGHT, ID])


_ROWS = st.tuples(st.sampled_from([None, "", "a", "b"]), st.integers(0, 1))


@given(st.lists(st.lists(st.tuples(_ROWS, st.booleans()), min_size=1, max_size=10), max_size=5))
def test_a_bag_counts_equal_rows(epochs: list[list[tuple[tuple[str | None, int], bool]]]) -> None:
    slot, bag = OneSlot(), Counter[tuple[str | None, int]]()
    for epoch in epochs:
        weighted = []
        for row, insert in epoch:
            weight = 1 if insert or not bag[row] else -1
            bag[row] += weight
            weighted.append((row, weight))
        half = len(weighted) // 2
        slot.step(_BAG, rows(weighted[:half]), rows(weighted[half:]))
        assert counted(slot) == +bag


def test_rows_that_cancel_are_not_written() -> None:
    slot = OneSlot()
    slot.step(_BAG, changes("s | i int | w\na | 1 | +1\na | 1 | -1"))
    assert slot.records(_TABLE) == {}
