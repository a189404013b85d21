"""What only the embedded store has: directories, formats, growth, limits, threads."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import Damaged, SchemaError, StoreError, StoreFull
from belvedere.stores.base import Write
from belvedere.stores.embedded import (
    EmbeddedStore,
    merging,
    open_cached,
    pages,
    run_lists,
)
from belvedere.stores.embedded.run_files import RunWriter


def binary(*items: bytes | None) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


def rows_of(store: EmbeddedStore, table: int = 1) -> dict[bytes, bytes]:
    with store.base.snapshot() as snapshot:
        return {
            k: v
            for keys, values in snapshot.scan(table)
            for k, v in zip(keys.to_pylist(), values.to_pylist(), strict=True)
        }


# ---------------------------------------------------------------- opening


def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "s", slots=3) as store:
        store.base.put_one(1, b"k", b"v", True)
    with EmbeddedStore.open(tmp_path / "s") as store:
        assert store.state.slots == 3
        assert rows_of(store) == {b"k": b"v"}
    assert {entry.name for entry in (tmp_path / "s").iterdir()} == {
        "format.json",
        "catalog",
        "base",
        "slots",
    }


def test_an_existing_empty_directory_and_a_half_made_store_are_completed(tmp_path: Path) -> None:
    (tmp_path / "format.json.new").write_text("{")
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        assert store.state.slots == 2


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(StoreError, match=r"not a Belvedere store.*thesis\.txt"):
        EmbeddedStore.open(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be opened"):
        EmbeddedStore.open(tmp_path / "file")


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    EmbeddedStore.open(tmp_path, slots=2).close()
    (tmp_path / "format.json").write_text(json.dumps({"format": 99, "slots": 2}))
    with pytest.raises(StoreError, match="format 99"):
        EmbeddedStore.open(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 1}',
        '{"format": 1, "slots": 0}',
        '{"format": "x", "slots": 2}',
    ],
)
def test_a_damaged_format_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "format.json").write_text(content)
    with pytest.raises(StoreError, match="damaged"):
        EmbeddedStore.open(tmp_path)


def test_a_damaged_environment_is_refused(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2):
        pass
    (tmp_path / "base" / "data.mdb").write_bytes(b"garbage" * 4000)
    with pytest.raises(
        StoreError, match=r"base is damaged .* Restore the whole directory from one backup"
    ):
        EmbeddedStore.open(tmp_path)


def test_the_number_of_slots_is_fixed_at_creation(tmp_path: Path) -> None:
    EmbeddedStore.open(tmp_path, slots=2).close()
    with pytest.raises(StoreError, match="has 2 slots, not 4"):
        EmbeddedStore.open(tmp_path, slots=4)
    with pytest.raises(StoreError, match="slots"):
        EmbeddedStore.open(tmp_path / "new", slots=0)


@pytest.mark.parametrize(
    "sizes",
    [
        {"slots": 1.5},
        {"slots": 0},
        {"slots": 1000},
        {"slots": True},
        {"map_size": 0},
        {"max_size": "1"},
    ],
)
def test_sizes_that_make_no_sense_are_refused_before_anything_is_made(
    tmp_path: Path, sizes: dict[str, Any]
) -> None:
    with pytest.raises(StoreError, match=r"(slots|map_size|max_size) is .*: use a whole number"):
        EmbeddedStore.open(tmp_path / "s", **sizes)
    assert not (tmp_path / "s").exists()


def test_one_process_may_open_a_store_several_times(tmp_path: Path) -> None:
    first = EmbeddedStore.open(tmp_path / "s", slots=2)
    (tmp_path / "link").symlink_to(tmp_path / "s")
    second = EmbeddedStore.open(tmp_path / "link")
    first.base.put_one(1, b"k", b"1", True)
    first.close()
    first.close()
    with pytest.raises(StoreError, match="closed"):
        first.base.put_one(1, b"k", b"2", True)
    assert rows_of(second) == {b"k": b"1"}
    second.close()
    with pytest.raises(StoreError, match="closed"):
        second.base.end()
    with EmbeddedStore.open(tmp_path / "s") as third:
        assert rows_of(third) == {b"k": b"1"}


def test_cached_stores_are_one_until_closed(tmp_path: Path) -> None:
    store = open_cached(tmp_path / "s", slots=2)
    assert open_cached(tmp_path / "s") is store
    store.close()
    again = open_cached(tmp_path / "s")
    assert again is not store
    assert again.base.end() == {"log": 0}
    again.close()


def test_a_cached_store_is_opened_anew_when_its_directory_was_made_anew(tmp_path: Path) -> None:
    for _ in range(20):  # file systems like to give the number of a removed file to the next one
        with EmbeddedStore.open(tmp_path / "s", slots=1) as made:
            cached = pickle.loads(pickle.dumps(made))
            assert rows_of(cached) == {}
            cached.base.put_one(1, b"k", b"v", True)
            assert rows_of(made) == {b"k": b"v"}
        shutil.rmtree(tmp_path / "s")
    cached.close()


def test_a_store_that_was_removed_while_open_is_not_written_to_and_does_not_stand_in_the_way_of_a_new_one(
    tmp_path: Path,
) -> None:
    old = EmbeddedStore.open(tmp_path / "s", slots=1)
    old.base.put_one(1, b"k", b"old", True)
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(
        StoreError, match=r"was removed or replaced while it was open; nothing was written"
    ):
        old.base.put_one(1, b"k", b"lost", True)
    with EmbeddedStore.open(tmp_path / "s", slots=1) as new:
        assert rows_of(new) == {}
        new.base.put_one(1, b"k", b"new", True)
        with pytest.raises(StoreError, match="removed or replaced"):
            old.base.put_one(1, b"k", b"lost", True)
        assert (rows_of(old), rows_of(new)) == ({b"k": b"old"}, {b"k": b"new"})
        old.close()
        assert rows_of(new) == {b"k": b"new"}


# ---------------------------------------------------------------- room


def test_the_map_grows_as_needed(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 17) as store:
        value = os.urandom(1 << 20)
        store.base.write(1, binary(b"a", b"b", b"c"), binary(value, value, value), True)
        store.catalog.transact(lambda transaction: transaction.put("big", value))
        shard = store.state.shard(0, 1)
        shard.write(Write(1, binary(b"a"), binary(value), binary(None)))
        shard.commit()
        assert rows_of(store) == {b"a": value, b"b": value, b"c": value}
        assert store.catalog.read(lambda transaction: transaction.get("big")) == value
        assert store.state.getter(1)(0, 1, b"a") == value


def filled(store: EmbeddedStore, rows: int) -> int:
    """Write calls of so many rows until there is no room; the end of the log as the last good call
    told it.
    """
    end = 0
    while True:
        keys = binary(*(b"%d-%d" % (end, i) for i in range(rows)))
        try:
            end = store.base.write(1, keys, binary(*[bytes(100)] * rows), True).operations
        except StoreFull:
            return end


def test_a_full_store_refuses_writes_whole_and_can_be_used_on(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 18, max_size=1 << 20) as store:
        written = filled(store, 50)
        assert store.base.end() == {"log": written}
        assert len(rows_of(store)) == written
        assert sum(len(block.keys) for block in store.base.read_log("log", 0, written)) == written
        with pytest.raises(StoreFull, match="max_size"):
            store.base.put_one(1, b"big", bytes(1 << 20), True)
        store.base.trim("log", written)
        assert store.base.put_one(1, b"k", b"v", True).operations == written + 1
    with EmbeddedStore.open(tmp_path, map_size=1 << 18, max_size=1 << 22) as store:
        assert store.base.put_one(1, b"big", bytes(1 << 20), True).operations == written + 2


def test_a_full_store_of_single_puts_can_be_trimmed(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 18, max_size=1 << 19) as store:
        end = filled(store, 1)
        store.base.trim("log", end)
        for _ in range(100):
            end = store.base.put_one(1, b"k", bytes(300), True)["log"]
        assert store.base.end() == {"log": end}


def test_a_full_slot_refuses_a_commit_whole(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 18, max_size=1 << 19) as store:
        shard = store.state.shard(0, 1)
        keys = binary(*(b"%06d" % i for i in range(20_000)))
        shard.write(Write(1, keys, binary(*[b"v" * 50] * 20_000), pa.nulls(20_000, pa.binary())))
        with pytest.raises(StoreFull):
            shard.commit()
        assert store.state.status(0).write_floor == 0
        assert list(store.state.reader(0, 1).scan(1)) == []


def test_growing_waits_for_readers_of_other_threads_and_they_see_nothing_of_it(
    tmp_path: Path,
) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 17) as store:
        store.base.put_one(1, b"k", b"v" * 100, True)
        stop, failures = threading.Event(), []

        def read() -> None:
            try:
                while not stop.is_set():
                    assert rows_of(store)[b"k"] == b"v" * 100
            except BaseException as error:  # to be shown by the main thread
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(60):
            store.base.put_one(2, b"%d" % i, os.urandom(40_000), True)
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(rows_of(store, 2)) == 60


def test_a_snapshot_does_not_keep_the_map_from_growing(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2, map_size=1 << 17) as store:
        store.base.put_one(1, b"k", b"v", True)
        with store.base.snapshot() as snapshot:
            assert store.base.put_one(1, b"big", bytes(1 << 20), True).operations == 2
            assert snapshot.get(1, b"k") == b"v"
            assert snapshot.get(1, b"big") is None


# ---------------------------------------------------------------- limits


def test_base_rows_have_keys_of_any_length(tmp_path: Path) -> None:
    """Also keys that differ only at their end, in the log and settled."""
    keys = [b"k" * size + b"%d" % i for size in (600, 100_000) for i in range(9)]
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        store.base.put_one(1, keys[0], b"0", True)
        store.base.write(1, binary(*keys), binary(*[b"1"] * 18), True)
        expected = dict.fromkeys(sorted(keys), b"1")
        assert rows_of(store) == expected
        store.base.trim("log", 19)
        assert rows_of(store) == expected
        with store.base.snapshot() as snapshot:
            assert [snapshot.get(1, key) for key in keys] == [b"1"] * 18
            assert snapshot.get(1, keys[-1] + b"x") is None


def test_state_tables_have_keys_of_any_length(tmp_path: Path) -> None:
    """Also keys that differ only at their end."""
    keys = [b"k" * 100_000 + b"%d" % i for i in range(9)]
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        for epoch in (1, 2):
            shard = store.state.shard(0, epoch)
            before = shard.get_many(1, binary(*keys))
            shard.write(Write(1, binary(*keys), binary(*[b"%d" % epoch] * 9), before))
            shard.commit()
        get = store.state.getter(1)
        assert [get(0, 2, key) for key in keys] == [b"2"] * 9
        assert [get(0, 1, key) for key in keys] == [b"1"] * 9
        assert get(0, 2, keys[0] + b"0") is None
        prefixes = binary(keys[3], keys[7])
        (found,) = store.state.shard(0, 3).scan_prefixes(1, prefixes)
        assert found[1].to_pylist() == [keys[3], keys[7]]


@pytest.mark.parametrize("table", [1, 2**32 - 1])
def test_scans_pass_over_the_longest_keys(tmp_path: Path, table: int) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        keys = [b"a" * 507, b"b", b"b" * 506, b"b" * 507, b"b" * 506 + b"c", b"\xff" * 507]
        shard = store.state.shard(0, 1)
        shard.write(Write(table, binary(*keys), binary(*keys), pa.nulls(len(keys), pa.binary())))
        shard.commit()
        store.base.write(table, binary(*keys), binary(*keys), True)
        with store.base.snapshot() as snapshot:
            assert [
                k for found, _ in snapshot.scan(table, batch=1) for k in found.to_pylist()
            ] == keys
            assert snapshot.get(table, b"x" * 600) is None
        shard, reader = store.state.shard(0, 2), store.state.reader(0, 1)
        for low in [b"", *keys, b"a" * 600, b"b" * 508, b"\xff" * 508]:
            expected = [key for key in keys if key >= low]
            assert [key for key, _ in shard.scan(table, low, None)] == expected
            assert [key for key, _ in shard.scan(table, low, None, reverse=True)] == expected[::-1]
            assert [key for key, _ in shard.scan(table, b"", low, reverse=True)] == [
                key for key in keys if key < low
            ][::-1]
            assert [
                k for found, _ in reader.scan(table, low, batch=1) for k in found.to_pylist()
            ] == expected
        assert store.state.getter(table)(0, 1, b"x" * 600) is None
        assert reader.get_many(table, binary(b"x" * 600, b"b")).to_pylist() == [None, b"b"]


def test_bad_arguments_are_refused_with_a_reason(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        with pytest.raises(SchemaError, match="2 keys but 1 values"):
            store.base.write(1, binary(b"a", b"b"), binary(b"1"), True)
        with pytest.raises(SchemaError, match="NULL"):
            store.base.write(1, binary(None), binary(b"1"), True)
        with pytest.raises(StoreError, match="no slot 2"):
            store.state.shard(2, 1)
        with pytest.raises(SchemaError, match="catalog key"):
            store.catalog.transact(lambda transaction: transaction.put("", b"1"))
        with pytest.raises(SchemaError, match="1 keys but 0 values"):
            store.state.shard(0, 1).write(Write(1, binary(b"a"), binary(), binary()))
        with pytest.raises(SchemaError, match="not large_binary"):
            store.base.write(1, binary(b"a"), binary(b"a").cast(pa.large_binary()), True)


def test_a_write_inside_a_write_of_the_same_thread_raises_instead_of_hanging(
    tmp_path: Path,
) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        with pytest.raises(StoreError, match="open already"):
            store.catalog.transact(
                lambda _: store.catalog.transact(lambda inner: inner.put("a", b"1"))
            )
        store.catalog.transact(lambda transaction: transaction.put("a", b"1"))


def test_threads_write_one_after_the_other(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:

        def add(_: Any) -> None:
            for _ in range(25):
                store.catalog.transact(lambda t: t.put("n", b"%d" % (int(t.get("n") or b"0") + 1)))

        threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.catalog.read(lambda transaction: transaction.get("n")) == b"100"


def test_quick_single_reads_agree_with_the_others(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        catalog: Any = store.catalog
        state: Any = store.state
        assert catalog.get_one("epoch") is None
        store.catalog.transact(lambda transaction: transaction.put("epoch", b"3"))
        assert catalog.get_one("epoch") == b"3"
        for epoch in (1, 2, 3):
            shard = store.state.shard(1, epoch)
            shard.write(
                Write(1, binary(b"k"), binary(b"%d" % epoch), shard.get_many(1, binary(b"k")))
            )
            shard.commit()
        assert [state.getter(1)(1, epoch, b"k") for epoch in range(5)] == [
            None,
            b"1",
            b"2",
            b"3",
            b"3",
        ]


def test_collecting_gives_the_room_of_old_runs_back(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        keys = binary(*(b"%06d" % i for i in range(2000)))
        sizes = []
        for epoch in range(1, 41):
            shard = store.state.shard(0, epoch)
            shard.write(
                Write(
                    1, keys, binary(*(os.urandom(20) for _ in range(2000))), shard.get_many(1, keys)
                )
            )
            shard.commit()
            store.state.collect(epoch - 1)
            sizes.append(store.state.status(0).bytes)
        assert sizes[-1] <= 2 * sizes[9]


@pytest.mark.parametrize("where", ["before its files", "before it names them"])
def test_an_attempt_that_ends_early_leaves_nothing_but_files_that_are_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr("belvedere.stores.embedded.shard.SMALL_BYTES", 0)
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        for epoch in (1, 2, 3):
            broken: Any = store.state.shard(0, epoch)
            _write(broken, epoch)
            with monkeypatch.context() as patch:
                _crash(patch, store, broken, where)
                with pytest.raises(SystemExit):
                    broken.commit()
            broken._place.files.in_flight.clear()
            for table in (1, 2):  # a reader of the epoch before notices nothing
                before = store.state.getter(table)(0, epoch - 1, b"0")
                assert before == (b"%d" % (epoch - 1) if epoch > 1 else None)
            shard = store.state.shard(0, epoch)
            _write(shard, epoch)
            shard.commit()
            assert [store.state.count(0, table)[0] for table in (1, 2)] == [1, 2]
        store.state.collect(3)
        shard = store.state.shard(0, 4)
        _write(shard, 4)
        shard.commit()
        store.state.collect(4)
        assert len(list(tmp_path.glob("slots/000/*.run"))) == 1


def _write(shard: Any, epoch: int) -> None:
    for table in (1, 2):
        keys = binary(*(b"%d" % i for i in range(table)))
        values = binary(*[b"%d" % epoch] * table)
        shard.write(Write(table, keys, values, shard.get_many(table, keys)))


def _crash(patch: pytest.MonkeyPatch, store: EmbeddedStore, shard: Any, where: str) -> None:
    """As if the process had ended: nothing is cleaned up."""

    def end(*_: object, **__: object) -> None:
        raise SystemExit

    patch.setattr(RunWriter, "abandon", lambda _: None)
    patch.setattr(RunWriter, "done", lambda _: None)
    if where == "before its files":
        patch.setattr(RunWriter, "finish", end)
    else:
        patch.setattr(shard._place.environment, "write", end)


def test_runs_that_are_merged_while_an_attempt_commits_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It builds on the runs that are there when it names its own."""
    monkeypatch.setattr(merging, "INLINE_ROWS", 0)
    monkeypatch.setattr("belvedere.stores.embedded.state.Merging.go_on", lambda _: None)
    monkeypatch.setattr("belvedere.stores.embedded.shard.SMALL_BYTES", 0)
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        for epoch in range(1, 4):
            shard = store.state.shard(0, epoch)
            _write(shard, epoch)
            shard.commit()
        place = store.state._slot(0)  # type: ignore[attr-defined]
        tries: list[int] = []

        def merge_first(self: RunWriter) -> None:
            finish(self)
            tries.append(1)
            if len(tries) == 1:
                store.state.collect(3)
                merge = place.environment.read(merging.next_merge)
                assert merge is not None
                assert merging.do(place.environment, place.files, merge, lambda: False)
                place.environment.write(lambda t: run_lists.set_floors(t, 3, 2, 0))
                store.state.collect(3)  # the old runs go

        finish = RunWriter.finish
        shard = store.state.shard(0, 4)
        _write(shard, 4)
        with monkeypatch.context() as patch:
            patch.setattr(RunWriter, "finish", merge_first)
            shard.commit()
        assert len(tries) > 2
        for table in (1, 2):
            assert store.state.getter(table)(0, 4, b"0") == b"4"
            assert store.state.getter(table)(0, 3, b"0") == b"3"


def test_a_reader_whose_files_are_merged_away_goes_on_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.stores.embedded.shard.SMALL_BYTES", 0)
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        for epoch in range(1, 6):
            shard = store.state.shard(0, epoch)
            _write(shard, epoch)
            shard.commit()
        shard = store.state.shard(0, 6)
        batches = shard.scan_batches(2, b"", None, batch=1)
        assert next(batches)[1].to_pylist() == [b"5"]
        with EmbeddedStore.open(tmp_path) as other:
            for path in tmp_path.glob("slots/000/*.run"):
                path.unlink()
            assert next(batches)[1].to_pylist() == [b"5"]
            with pytest.raises(Damaged, match=r"\.run is missing, which has records of table 1 in"):
                other.state.shard(0, 6).get_many(1, binary(b"0"))


def test_mapped_pages_are_given_back_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        keys = binary(*(b"%06d" % i for i in range(60_000)))
        store.base.write(1, keys, binary(*[b"x" * 500] * len(keys)), True)
        store.base.trim("log", len(keys))

        def scanned(snapshot: Any) -> int:
            """How many rows there are, each of them read."""
            return sum(len(values.to_pylist()) for _, values in snapshot.scan(1))

        with store.base.snapshot() as snapshot:
            assert scanned(snapshot) == len(keys)
            mapped = pages._resident()
            assert not pages.unmap([str(tmp_path / "base")])  # too few to bother
            monkeypatch.setattr(pages, "_ALLOWED", 0)
            store.rest()
            left = pages._resident()
            assert left < mapped - (20 << 20)
            assert scanned(snapshot) == len(keys)  # also of a snapshot that was open
            assert pages._resident() > left + (20 << 20)
