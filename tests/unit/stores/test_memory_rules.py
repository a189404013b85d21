"""Each rule of the store in memory matters: switched off, the misbehaviour that it prevents can be
seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import Conflict, Stale, StoreError
from belvedere.stores.base import Operations, Write
from belvedere.stores.memory import MemoryStore, Rules
from belvedere.types import Vector

TABLE = 1


def binary(*items: bytes | None) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


def attempt(
    store: MemoryStore, epoch: int, key: bytes, change: Callable[[bytes | None], bytes | None]
) -> None:
    shard = store.state.shard(0, epoch)
    before = shard.get_many(TABLE, binary(key))
    shard.write(Write(TABLE, binary(key), binary(change(before[0].as_py())), before))
    shard.commit()


def put(store: MemoryStore, epoch: int, key: bytes, value: bytes | None) -> None:
    attempt(store, epoch, key, lambda _: value)


def look(store: MemoryStore, epoch: int, key: bytes) -> bytes | None:
    reader: Any = store.state.reader(0, epoch)  # in memory it also reads one record
    found: bytes | None = reader.get(TABLE, key)
    return found


def add_one(before: bytes | None) -> bytes:
    return b"%d" % (int(before or b"0") + 1)


@pytest.mark.parametrize("abort", [True, False])
def test_r1_without_abort_a_late_attempt_writes_keys_that_nobody_touched_since(abort: bool) -> None:
    store = MemoryStore(slots=1, rules=Rules(abort_beyond_epoch=abort))
    late = store.state.shard(0, 1)
    late.write(
        Write(TABLE, binary(b"touched", b"untouched"), binary(b"late", b"late"), binary(None, None))
    )
    put(store, 1, b"touched", b"1")
    put(store, 2, b"touched", b"2")
    if abort:
        with pytest.raises(Stale):
            late.commit()
    else:
        late.commit()
        assert look(store, 2, b"touched") == b"2"  # the older write is refused
    assert look(store, 2, b"untouched") == (None if abort else b"late")


@pytest.mark.parametrize("tombstones", [True, False])
def test_r2_without_tombstones_the_epoch_before_loses_a_deleted_record(tombstones: bool) -> None:
    store = MemoryStore(slots=1, rules=Rules(tombstones=tombstones))
    put(store, 1, b"k", b"1")
    put(store, 2, b"k", None)
    assert look(store, 1, b"k") == (b"1" if tombstones else None)
    assert look(store, 2, b"k") is None


@pytest.mark.parametrize("keep", [True, False])
def test_r2_without_the_stored_before_a_retry_counts_twice(keep: bool) -> None:
    store = MemoryStore(slots=1, rules=Rules(keep_before=keep))
    put(store, 1, b"k", b"1")
    for _ in range(3):
        attempt(store, 2, b"k", add_one)
    assert look(store, 2, b"k") == (b"2" if keep else b"3")


@pytest.mark.parametrize("floor", [True, False])
def test_r3_without_the_slot_floor_a_late_attempt_reads_collected_records_as_absent(
    floor: bool,
) -> None:
    store = MemoryStore(slots=1, rules=Rules(slot_floor=floor))
    put(store, 1, b"k", b"7")
    put(store, 2, b"k", None)
    store.state.collect(2)
    late = store.state.shard(0, 2)
    if floor:
        with pytest.raises(Stale):
            late.get_many(TABLE, binary(b"k"))
    else:
        assert late.get_many(TABLE, binary(b"k")).to_pylist() == [None]


def test_r1_meets_records_from_beyond_the_epoch_even_without_the_floor() -> None:
    store = MemoryStore(slots=1, rules=Rules(slot_floor=False))
    put(store, 2, b"k", b"2")
    with pytest.raises(Stale):
        store.state.shard(0, 1).get_many(TABLE, binary(b"k"))
    assert store.state.shard(0, 1).get_many(TABLE, binary(b"other")).to_pylist() == [None]


@pytest.mark.parametrize("floor", [True, False])
def test_r3_without_the_history_floor_a_reader_silently_misses_records(floor: bool) -> None:
    store = MemoryStore(slots=1, rules=Rules(history_floor=floor))
    put(store, 1, b"k", b"1")
    put(store, 2, b"k", b"2")
    reader: Any = store.state.reader(0, 1)
    store.state.collect(2)
    if floor:
        with pytest.raises(Stale):
            reader.get(TABLE, b"k")
    else:
        assert reader.get(TABLE, b"k") is None


@pytest.mark.parametrize("error", [True, False])
def test_r6_without_the_trim_error_a_trimmed_log_has_a_silent_gap(error: bool) -> None:
    store = MemoryStore(rules=Rules(trim_error=error))
    for _ in range(3):
        store.base.put_one(TABLE, b"k", b"v", True)
    store.base.trim("log", 2)
    if error:
        with pytest.raises(Stale):
            list(store.base.read_log("log", 0, 3))
    else:
        assert [block.position for block in store.base.read_log("log", 0, 3)] == [2]


def test_a_wrong_value_before_is_found_out() -> None:
    store = MemoryStore(slots=1)
    put(store, 1, b"k", b"1")
    shard = store.state.shard(0, 2)
    shard.write(Write(TABLE, binary(b"k"), binary(b"2"), binary(b"wrong")))
    with pytest.raises(StoreError, match="value before"):
        shard.commit()


def test_every_visible_step_is_announced_before_it_happens() -> None:
    seen: list[str] = []
    store = MemoryStore(slots=1, point=seen.append)

    def said(*labels: str) -> bool:
        told, seen[:] = list(seen), []
        return told == list(labels)

    store.catalog.transact(lambda transaction: None)
    store.catalog.read(lambda transaction: None)
    assert said("catalog transact", "catalog read")
    store.base.put_one(TABLE, b"k", b"v", True)
    store.base.put_one(TABLE, b"k", b"v", True)
    assert len(list(store.base.read_log("log", 0, 2))) == 2
    assert said("base write", "base write", "log read", "log read", "log read")
    with store.base.snapshot():
        store.base.trim("log", 1)
    assert said("base snapshot", "log trim")
    put(store, 1, b"k", b"v")
    list(store.state.shard(0, 2).scan(TABLE, b"", None))
    assert said("shard get", "shard commit", "shard scan")
    list(store.state.reader(0, 1).scan(TABLE))
    look(store, 1, b"k")
    store.state.collect(1)
    assert said("reader open", "reader scan", "reader open", "reader get", "collect")


def test_a_step_sees_the_store_as_it_is_when_it_happens() -> None:
    store = MemoryStore(slots=1)
    shard = store.state.shard(0, 1)
    put(store, 1, b"k", b"1")
    put(store, 2, b"k", b"2")
    with pytest.raises(Stale):  # nothing was frozen when the shard was opened
        shard.get_many(TABLE, binary(b"k"))


def test_several_streams_share_the_rows_of_a_table_by_their_keys() -> None:
    store = MemoryStore(streams=3)
    keys = [b"%d" % i for i in range(50)]
    for round_ in range(3):
        store.base.write(TABLE, binary(*keys), binary(*([b"%d" % round_] * 50)), True)
    ends = store.base.end()
    assert set(ends) == set(store.base.streams()) == {"log-0", "log-1", "log-2"}
    assert sum(ends.values()) == 150
    homes: dict[bytes, set[str]] = {}
    for stream in store.base.streams():
        for block in store.base.read_log(stream, 0, ends[stream]):
            for key in block.keys.to_pylist():
                homes.setdefault(key, set()).add(stream)
    assert {len(streams) for streams in homes.values()} == {1}
    assert len(set().union(*homes.values())) == 3
    with pytest.raises(Conflict):
        store.base.write(TABLE, binary(b"k"), binary(b"v"), True, unless_after=Vector())
    written = store.base.write(TABLE, binary(b"k"), binary(b"v"), True, unless_after=ends)
    assert len(written) == 1
    both = [Operations(table, binary(b"k"), binary(b"v"), True) for table in (TABLE, TABLE + 1)]
    with pytest.raises(StoreError, match="one stream"):
        store.base.write_all(both)


def test_the_clock_gives_the_time_of_blocks() -> None:
    store = MemoryStore(clock=lambda: 12.5)
    store.base.put_one(TABLE, b"k", b"v", True)
    assert [block.time for block in store.base.read_log("log", 0, 1)] == [12.5]
