"""Delivery: every row goes to the slot of its key, once, and arrives under its part."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import slots_of
from belvedere.operators.base import KEY
from belvedere.operators.delivery import Inbox, by_slot

_KEYS = st.lists(st.binary(max_size=3), max_size=20)


def rows(keys: list[bytes]) -> pa.Table:
    return pa.table({KEY: pa.array(keys, pa.binary()), "n": pa.array(range(len(keys)), pa.int64())})


@given(_KEYS, st.integers(1, 5))
def test_every_row_goes_to_the_slot_of_its_key(keys: list[bytes], slots: int) -> None:
    delivered = by_slot(rows(keys), slots)
    assert len({slot for slot, _ in delivered}) == len(delivered)
    assert sorted(n for _, part in delivered for n in part.column("n").to_pylist()) == list(
        range(len(keys))
    )
    for slot, part in delivered:
        assert set(slots_of(part.column(KEY).combine_chunks(), slots).tolist()) == {slot}


@given(_KEYS, st.integers(1, 5), st.sets(st.integers(0, 4)))
def test_of_rows_that_every_task_has_each_keeps_its_own(
    keys: list[bytes], slots: int, own: set[int]
) -> None:
    everything = {slot: part.to_pylist() for slot, part in by_slot(rows(keys), slots)}
    kept = {slot: part.to_pylist() for slot, part in by_slot(rows(keys), slots, own)}
    assert kept == {slot: part for slot, part in everything.items() if slot in own}


def test_what_arrives_stands_under_its_part_and_missing_parts_are_empty() -> None:
    inbox = Inbox()
    tables = [rows([b"a"]), rows([b"b"]), rows([b"c"])]
    inbox.add(3, 1, tables[0])
    inbox.add(0, 0, tables[1])
    inbox.add(3, 1, tables[2])
    assert list(inbox.arrived(2)) == [
        (0, [[tables[1]], []]),
        (3, [[], [tables[0], tables[2]]]),
    ]
    assert [len(parts) for _, parts in inbox.arrived(1)] == [1, 2]  # more parts than ports
