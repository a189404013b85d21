"""Rules H1 to H5, which make state tables right without slot transactions, on a real HBase.

H1  versions: a read takes the newest version of its epoch or before; none is lost
H2  deletes are values
H3  looks at the catalog's floor, by attempts before they write, by readers after they read
H4  removal comes after the floor, at the timestamps of what is removed
H5  the fence: a region refuses what comes after the floor has risen
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from belvedere.errors import Stale, StoreError
from belvedere.stores.base import FLOOR
from belvedere.stores.hbase import columns, counts
from belvedere.stores.hbase.client import Cell
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.store import HBaseStore
from tests.conformance.test_stores import TABLE, as_of, binary, buffer, write_epoch
from tests.hbase.stores import open_new

pytestmark = pytest.mark.hbase


@pytest.fixture
def store(cluster: Cluster) -> Iterator[HBaseStore]:
    made = open_new(cluster, (TABLE,))
    yield made
    made.close()


def raise_floor(store: HBaseStore, keep: int) -> None:
    store.catalog.transact(lambda t: t.put(FLOOR, b"%d" % keep))


def sweep(store: HBaseStore, keep: int) -> int:
    raise_floor(store, keep)
    removed: int = store.sweeper.sweep_all(keep)
    return removed


def compact(store: HBaseStore) -> None:
    store.client.tables.compact(f"{store.address.namespace}:state")


def put_unseen(store: HBaseStore, epoch: int, key: bytes, value: bytes) -> bool:
    """A write that nobody looked at before it was sent; whether the region took it."""
    registry = store._tables._registry
    place = registry.find(TABLE)
    assert place is not None
    commit = store.client.commit(0, epoch)
    packed = columns.pack([binary(key), binary(value)])
    commit.add(registry.records(place), packed, counts.Count(1, 1, 1).pack())
    return commit.finish()


def test_h1_every_version_is_there_also_after_a_compaction(store: HBaseStore) -> None:
    for epoch in range(1, 13):
        write_epoch(store, epoch, {b"a": b"%d" % epoch, b"b%d" % epoch: b"x"})
        if epoch == 6:
            compact(store)
    compact(store)
    for epoch in range(13):
        expected = {b"b%d" % e: b"x" for e in range(1, epoch + 1)}
        assert as_of(store, epoch) == expected | ({b"a": b"%d" % epoch} if epoch else {})


def test_h2_a_delete_hides_nothing_from_readers_of_the_past(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"a": b"1", b"b": b"1"})
    write_epoch(store, 2, {b"a": None})
    write_epoch(store, 3, {b"a": b"3"})
    for _ in range(2):
        assert as_of(store, 1) == {b"a": b"1", b"b": b"1"}
        assert as_of(store, 2) == {b"b": b"1"}
        assert as_of(store, 3) == {b"a": b"3", b"b": b"1"}
        compact(store)


def test_h3_an_attempt_that_read_before_the_floor_rose_writes_nothing(store: HBaseStore) -> None:
    """The floors in the rows have not risen: it is the look that stops the attempt."""
    write_epoch(store, 1, {b"a": b"1"})
    late = store.state.shard(0, 2)
    buffer(late, {b"a": b"late", b"new": b"late"})
    write_epoch(store, 2, {b"a": b"2"})
    raise_floor(store, 2)
    with pytest.raises(Stale):
        late.commit()
    assert as_of(store, 2) == {b"a": b"2"}
    assert put_unseen(store, 2, b"seen", b"x")


def test_h3_a_reader_looks_after_each_batch(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"%02d" % i: b"1" for i in range(20)})
    write_epoch(store, 2, {b"%02d" % i: None for i in range(20)})
    scan = store.state.reader(0, 1).scan(TABLE, batch=5)
    assert len(next(scan)[0]) == 5
    assert sweep(store, 2) == 20
    with pytest.raises(Stale, match="too old"):
        next(scan)
    with pytest.raises(Stale, match="too old"):
        store.state.getter(TABLE)(0, 1, b"00")


def test_h4_nothing_is_removed_before_the_floor_has_risen(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    write_epoch(store, 2, {b"a": b"2"})
    with pytest.raises(StoreError, match="floor is below"):
        store.sweeper.sweep(TABLE, 0, 2)
    assert as_of(store, 1) == {b"a": b"1"}


def test_h4_what_readers_of_the_floor_need_stays_and_the_rest_goes(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"a": b"1", b"gone": b"1", b"old": b"1"})
    write_epoch(store, 2, {b"a": b"2", b"gone": None})
    write_epoch(store, 3, {b"a": b"3"})
    write_epoch(store, 4, {b"a": None})
    write_epoch(store, 5, {b"gone": b"back"})
    later = {epoch: as_of(store, epoch) for epoch in (3, 4, 5)}
    count = store.state.count(0, TABLE)
    assert sweep(store, 3) == 2
    for _ in range(2):
        assert {epoch: as_of(store, epoch) for epoch in later} == later
        assert store.state.count(0, TABLE) == count
        assert sweep(store, 3) == 0
        compact(store)
    assert stored(store) == {(b"a", 3), (b"a", 4), (b"gone", 5), (b"old", 1)}


def test_h4_markers_hide_nothing_that_is_written_later(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    write_epoch(store, 2, {b"a": None})
    write_epoch(store, 3, {b"b": b"3"})
    assert sweep(store, 3) == 1
    write_epoch(store, 4, {b"a": b"4"})
    assert as_of(store, 4) == {b"a": b"4", b"b": b"3"}
    compact(store)
    assert as_of(store, 4) == {b"a": b"4", b"b": b"3"}


def test_h4_a_floor_never_falls(store: HBaseStore) -> None:
    for epoch in range(1, 7):
        write_epoch(store, epoch, {b"a": b"%d" % epoch})
    sweep(store, 5)
    store.sweeper.sweep(TABLE, 0, 3)  # by a collector that was asleep
    assert not put_unseen(store, 4, b"a", b"late")
    assert not put_unseen(store, 5, b"new", b"late")
    assert put_unseen(store, 6, b"a", b"6")
    assert as_of(store, 5) == {b"a": b"5"}


def test_h5_a_late_write_after_sweep_and_compaction_changes_nothing(store: HBaseStore) -> None:
    """The same put without the fence would bring back a record that was deleted."""
    write_epoch(store, 1, {b"k": b"1"})
    write_epoch(store, 2, {b"x": b"2"})
    write_epoch(store, 3, {b"x": None})
    write_epoch(store, 4, {b"k": b"4"})
    sweep(store, 4)
    compact(store)
    assert not put_unseen(store, 2, b"x", b"2")
    assert as_of(store, 4) == {b"k": b"4"}
    row = b"\0" + TABLE.to_bytes(4, "big") + b"x"
    cells = store.client.cells(f"{store.address.namespace}:state")
    cells.apply([Cell(row, "s", b"_", 2, b"\x012")])
    assert as_of(store, 4) == {b"k": b"4", b"x": b"2"}


def test_h5_a_call_is_refused_as_a_whole(store: HBaseStore) -> None:
    """Also a large one, of several calls to the region."""
    write_epoch(store, 1, {b"a": b"1"})
    sweep(store, 3)
    late = store.state.shard(0, 3)
    buffer(late, {b"%05d" % i: b"late" for i in range(7_000)})
    late._floor = lambda: 0  # type: ignore[attr-defined]  # as if it had looked earlier
    with pytest.raises(Stale):
        late.commit()
    assert as_of(store, 3) == {b"a": b"1"}
    assert store.state.count(0, TABLE) == (1, 2)


def test_a_worker_that_is_stopped_between_check_and_put_changes_nothing(store: HBaseStore) -> None:
    write_epoch(store, 1, {b"a": b"1"})
    command = [sys.executable, "-m", "tests.hbase.late", store.url, "2"]
    worker = subprocess.Popen(command)
    try:
        _, status = os.waitpid(worker.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        write_epoch(store, 2, {b"a": b"late", b"b": b"late"})
        write_epoch(store, 3, {b"b": None})
        write_epoch(store, 4, {b"a": b"4"})
        sweep(store, 4)
        compact(store)
        os.kill(worker.pid, signal.SIGCONT)
        assert worker.wait(60) == 3
    finally:
        worker.kill()
        worker.wait()
    assert as_of(store, 4) == {b"a": b"4"}
    assert stored(store) == {(b"a", 4)}


def test_sweeps_are_done_in_the_background_when_much_was_written(
    store: HBaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.stores.hbase.sweep._LEAST", 10)
    for epoch in range(1, 6):
        write_epoch(store, epoch, {b"%d" % i: b"%d" % epoch for i in range(5)})
    raise_floor(store, 5)
    store.state.collect(5)
    assert store.sweeper._thread is not None
    store.sweeper._thread.join(30)
    assert stored(store) == {(b"%d" % i, 5) for i in range(5)}
    assert store.sweeper.sweep_due(5) == []


def stored(store: HBaseStore) -> set[tuple[bytes, int]]:
    """Keys and timestamps of all versions that HBase gives."""
    cells = store.client.cells(f"{store.address.namespace}:state")
    prefix = b"\0" + TABLE.to_bytes(4, "big")
    keys = {b"a", b"b", b"gone", b"old", b"x", *(b"%d" % i for i in range(10))}
    found = [(key, cell) for key in keys for cell in cells.versions(prefix + key, "s", b"_")]
    return {(key, cell.timestamp) for key, cell in found}
