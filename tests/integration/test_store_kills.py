"""Real processes, killed and stopped at bad moments: what was acknowledged is there, what was not
is there whole or not at all.

A child tells its steps on its standard output, and goes on or not as its standard input says:
nothing here waits for time to pass.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from belvedere.errors import Stale, StoreError
from belvedere.stores.base import Write
from belvedere.stores.embedded import EmbeddedStore, log, open_cached
from belvedere.types import Vector

PRELUDE = """
import random, sys
import pyarrow as pa
from belvedere.stores.base import Write
from belvedere.stores.embedded import EmbeddedStore, run_lists
from belvedere.stores.embedded.log_file import LogFile
store = EmbeddedStore.open(sys.argv[1], slots=2, map_size=int(sys.argv[2]))
binary = lambda items: pa.array(items, pa.binary())
def say(*what): print(*what, flush=True)
def inside(module, name):
    "Stop in the middle of the next write transaction that calls this function."
    original = getattr(module, name)
    def stopping(*arguments):
        original(*arguments)
        say("inside")
        sys.stdin.readline()
    setattr(module, name, stopping)
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def run(code: str, map_size: int = 1 << 30) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + code, str(path), str(map_size)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)
        }
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        child.communicate()


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def kill(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()


def binary(*items: bytes | None) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


def rows_of(store: EmbeddedStore, table: int) -> dict[bytes, bytes]:
    with store.base.snapshot() as snapshot:
        return {
            k: v
            for keys, values in snapshot.scan(table)
            for k, v in zip(keys.to_pylist(), values.to_pylist(), strict=True)
        }


def replayed(store: EmbeddedStore, table: int) -> dict[bytes, bytes]:
    """The rows that the log says there are; also checks that blocks follow each other, and that
    rows can be read as of the beginning of each.
    """
    rows: dict[bytes, bytes] = {}
    position = 0
    for block in store.base.read_log("log", 0, store.base.end()["log"]):
        assert block.position == position
        position = block.end
        assert store.history is not None
        with store.history.as_of(Vector({"log": block.position})) as before:
            assert before.get_many(table, block.keys).to_pylist() == [
                rows.get(key) for key in block.keys.to_pylist()
            ]
        for key, value in zip(block.keys.to_pylist(), block.values.to_pylist(), strict=True):
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
    assert position == store.base.end()["log"]
    return rows


def test_a_writer_killed_at_any_moment_leaves_rows_and_log_in_agreement(
    path: Path, start: Start
) -> None:
    writer = """
seed = random.Random(int(sys.stdin.readline()))
while True:
    keys = [b"%04d" % seed.randrange(3000) for _ in range(seed.choice([1, 10, 2000]))]
    values = [None if seed.random() < 0.2 else b"%d" % seed.random().__hash__() for _ in keys]
    if len(keys) == 1:
        say(store.base.put_one(5, keys[0], values[0], True)["log"])
    else:
        say(store.base.write(5, binary(keys), binary(values), True)["log"])
"""
    with EmbeddedStore.open(path, slots=2, map_size=1 << 30) as store:
        for seed in range(4):
            child = start(writer)
            assert child.stdin is not None
            child.stdin.write(f"{seed}\n")
            child.stdin.flush()
            acknowledged = [said(child) for _ in range(random.Random(seed).randrange(1, 60))][-1]
            kill(child)
            assert store.base.end()["log"] >= int(acknowledged)
            assert replayed(store, 5) == rows_of(store, 5)
        store.base.put_one(5, b"still", b"works", True)


def test_a_writer_killed_inside_its_transaction_has_written_nothing(
    path: Path, start: Start
) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        store.base.put_one(5, b"k", b"1", True)
        child = start(
            'inside(LogFile, "_check_room")\nstore.base.write(5, binary([b"k", b"l"]), binary([b"2", b"2"]),'
            " True)"
        )
        assert said(child) == "inside"
        kill(child)
        assert rows_of(store, 5) == replayed(store, 5) == {b"k": b"1"}
        assert store.base.put_one(5, b"k", b"3", True)["log"] == 2


COMMIT = """
def commit(epoch):
    shard = store.state.shard(0, epoch)
    for table in (1, 2):
        keys = binary([b"%04d" % i for i in range(epoch % 7, 2000, 3)])
        before = shard.get_many(table, keys)
        values = binary([b"%d" % (int(v or b"0") + epoch) for v in before.to_pylist()])
        shard.write(Write(table, keys, values, before))
    shard.commit()
"""


def state(store: EmbeddedStore, epoch: int) -> list[list[tuple[bytes, bytes]]]:
    reader = store.state.reader(0, epoch)
    return [
        [
            pair
            for k, v in reader.scan(table)
            for pair in zip(k.to_pylist(), v.to_pylist(), strict=True)
        ]
        for table in (1, 2)
    ]


def expected_state(epoch: int) -> list[list[tuple[bytes, bytes]]]:
    sums: dict[bytes, int] = {}
    for e in range(1, epoch + 1):
        for i in range(e % 7, 2000, 3):
            sums[b"%04d" % i] = sums.get(b"%04d" % i, 0) + e
    return [[(key, b"%d" % total) for key, total in sorted(sums.items())]] * 2


def test_a_task_killed_at_any_moment_of_its_commits_leaves_whole_epochs_that_can_be_run_again(
    path: Path, start: Start
) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        done = 0
        for wait in (1, 5, 2):
            child = start(
                COMMIT + f"for epoch in range({done} + 1, 1000):\n    commit(epoch)\n    say(epoch)"
            )
            acknowledged = int([said(child) for _ in range(wait)][-1])
            kill(child)
            floor = store.state.status(0).write_floor
            assert floor >= acknowledged
            assert state(store, floor) == expected_state(floor)
            assert state(store, floor - 1) == expected_state(floor - 1)
            done = floor - 1  # the next child begins with another attempt of the last epoch


def test_a_task_killed_inside_its_commit_has_written_nothing(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        first = start(COMMIT + "commit(1)\nsay('done')")
        assert said(first) == "done"
        child = start(COMMIT + 'inside(run_lists, "set_floors")\ncommit(2)')
        assert said(child) == "inside"
        kill(child)
        assert state(store, 1) == state(store, 2) == expected_state(1)
        again = start(COMMIT + "commit(2)\nsay('done')")
        assert said(again) == "done"
        assert state(store, 1) == expected_state(1)
        assert state(store, 2) == expected_state(2)


def test_a_stopped_holder_of_a_write_lock_is_ended_after_its_deadline(
    path: Path, start: Start
) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        idle = start(
            'store.base.put_one(5, b"i", b"1",'
            ' True)\nsay("idle")\nsys.stdin.readline()\nsay("alive")'
        )
        assert said(idle) == "idle"
        child = start(COMMIT + 'inside(run_lists, "set_floors")\ncommit(1)')
        assert said(child) == "inside"
        os.kill(child.pid, signal.SIGSTOP)
        assert store.end_stuck_holders(deadline_seconds=3600) == []
        assert store.end_stuck_holders(deadline_seconds=0) == [child.pid]
        assert child.wait() == -signal.SIGKILL
        shard = store.state.shard(0, 1)
        shard.write(Write(1, binary(b"a"), binary(b"1"), binary(None)))
        shard.commit()
        assert store.state.getter(1)(0, 1, b"a") == b"1"
        assert store.end_stuck_holders(deadline_seconds=0) == []
        idle.communicate("\n")
        assert idle.returncode == 0


def test_opening_and_reading_do_not_wait_for_a_stopped_writer(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        store.base.put_one(5, b"k", b"1", True)
    child = start('inside(LogFile, "_check_room")\nstore.base.put_one(5, b"k", b"2", True)')
    assert said(child) == "inside"
    os.kill(child.pid, signal.SIGSTOP)
    with EmbeddedStore.open(path) as store:
        assert rows_of(store, 5) == {b"k": b"1"}


def test_a_holder_is_not_taken_for_a_later_process_with_its_id(path: Path, start: Start) -> None:
    child = start(
        "say('idle')\nstore.base.put_one(5, b'k', b'1', True)\nsay('idle')\nsys.stdin.readline()"
    )
    assert (said(child), said(child)) == ("idle", "idle")
    holder = path / "base" / "holder"
    entries = bytearray(holder.read_bytes())
    assert int.from_bytes(entries[0:8], "little") == child.pid
    # it started at another time
    entries[8:16] = (int.from_bytes(entries[8:16], "little") - 1).to_bytes(8, "little")
    # and holds the lock since the first second of the machine
    entries[16:24] = b"\0\0\0\0\0\0\xf0\x3f"
    with holder.open("r+b") as file:
        file.write(entries)
    with EmbeddedStore.open(path) as store:
        assert store.end_stuck_holders(deadline_seconds=0) == []
    assert child.poll() is None


def test_readers_of_killed_processes_are_cleared(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        store.base.put_one(5, b"k", b"1", True)
        child = start(
            "reading = store.base._environment.begin_read()\nsay(reading.id())\n"
            "sys.stdin.readline()"
        )
        assert int(said(child)) > 0
        assert store.maintain() == 0
        kill(child)
        assert store.maintain() == 1
        assert store.maintain() == 0


def test_several_processes_create_one_store_at_the_same_time(path: Path, start: Start) -> None:
    code = (
        "for i in range(20):\n    store.base.put_one(5, b'%s-%d' % (sys.argv[2].encode(), i), b'v',"
        " True)\nsay(store.state.slots)"
    )
    children = [start(code, map_size=(1 << 24) + 4096 * number) for number in range(3)]
    assert [said(child) for child in children] == ["2"] * 3
    with EmbeddedStore.open(path) as store:
        assert store.base.end() == {"log": 60}
        assert len(rows_of(store, 5)) == 60


def test_a_process_adopts_the_map_that_another_one_has_grown(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2, map_size=1 << 17) as store:
        store.base.put_one(5, b"k", b"1", True)
        code = (
            "for i in range(40):\n    store.base.put_one(5, b'%d' % i, bytes(50_000),"
            " True)\nsay('grown')\nsys.stdin.readline()"
        )
        child = start(code, map_size=1 << 17)
        assert said(child) == "grown"
        assert rows_of(store, 5)[b"39"] == bytes(50_000)
        assert store.base.put_one(5, b"k", b"2", True)["log"] == 42
        assert rows_of(store, 5)[b"k"] == b"2"


def in_forked_child(body: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_store_works_in_a_forked_child_and_goes_on_in_the_parent(path: Path) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        store.base.put_one(5, b"k", b"1", True)
        store.catalog.transact(lambda transaction: transaction.put("a", b"1"))

        def child() -> None:
            assert rows_of(store, 5) == {b"k": b"1"}
            assert store.base.put_one(5, b"k", b"2", True)["log"] == 2
            store.catalog.transact(lambda transaction: transaction.put("a", b"2"))
            assert (
                in_forked_child(
                    lambda: store.catalog.transact(lambda transaction: transaction.put("b", b"3"))
                )
                == 0
            )
            store.close()

        assert in_forked_child(child) == 0
        assert rows_of(store, 5) == {b"k": b"2"}
        assert store.base.put_one(5, b"k", b"3", True)["log"] == 3
        assert store.catalog.read(lambda transaction: transaction.scan("")) == [
            ("a", b"2"),
            ("b", b"3"),
        ]


def test_a_fork_takes_nothing_from_who_reads_in_the_parent(path: Path) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        store.base.put_one(5, b"k", b"1", True)
        store.catalog.transact(lambda transaction: transaction.put("a", b"1"))
        environment = store._environments[1]
        reading = environment.begin_read()  # as a thread of the parent may have it
        with store.base.snapshot() as snapshot:

            def child() -> None:
                with pytest.raises(StoreError, match="before a fork"):
                    store.base.end()
                store.catalog.transact(lambda transaction: transaction.put("a", b"2"))
                store.close()

            assert in_forked_child(child) == 0
            for i in range(20):
                store.base.put_one(5, b"k", b"more %d" % i, True)
            assert snapshot.get(5, b"k") == b"1"
        assert log.trim_point(reading) == 0
        environment.end_read(reading)
        assert rows_of(store, 5) == {b"k": b"more 19"}


def test_a_pickled_store_opens_again_by_its_path_once_per_process(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2, map_size=1 << 30) as store:
        store.base.put_one(5, b"k", b"1", True)
        pickled = pickle.dumps(store)
        child = start(
            "import pickle\ncopies = [pickle.loads(bytes.fromhex(sys.stdin.readline())) for _ in"
            " range(2)]\nsay(copies[0] is copies[1], copies[0].base.put_one(5, b'k', b'2', True)['log'])"
        )
        assert child.stdin is not None
        child.stdin.write(f"{pickled.hex()}\n" * 2)
        child.stdin.flush()
        assert said(child) == "True 2"
        with pickle.loads(pickled) as here:
            assert here is open_cached(path)
            assert rows_of(here, 5) == {b"k": b"2"}
        assert rows_of(store, 5) == {b"k": b"2"}


def test_a_late_attempt_in_another_process_is_refused(path: Path, start: Start) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        late = store.state.shard(0, 1)
        late.write(Write(9, binary(b"z"), binary(b"late"), late.get_many(9, binary(b"z"))))
        child = start(COMMIT + "commit(1)\ncommit(2)\nsay('done')")
        assert said(child) == "done"
        with pytest.raises(Stale):
            late.commit()
        assert store.state.getter(9)(0, 2, b"z") is None


def test_a_disk_that_is_full_refuses_writes_whole_and_is_used_on_when_there_is_room(
    path: Path, start: Start
) -> None:
    code = """
import resource
from belvedere.errors import StoreFull
end = store.base.put_one(5, b"first", b"1", True)["log"]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
try:
    while True:
        end = store.base.put_one(5, b"%d" % end, bytes(20_000), True)["log"]
except StoreFull as error:
    say("disk" in str(error), store.base.end()["log"] == end)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
say(store.base.put_one(5, b"last", b"1", True)["log"] - end)
"""
    child = start(code)
    assert (said(child), said(child)) == ("True True", "1")
    with EmbeddedStore.open(path) as store:
        assert rows_of(store, 5) == replayed(store, 5)
