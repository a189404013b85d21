"""The files of the log: writers that share a sync, and writers that are killed at any step."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from belvedere.errors import Damaged, Stale, StoreError
from belvedere.stores.embedded import EmbeddedStore, disk, log, log_file
from belvedere.stores.embedded.log_ends import ENDS
from belvedere.stores.embedded.log_file import LogFile
from belvedere.stores.embedded.log_segments import Segment


def forked(body: Callable[[], object]) -> int:
    """Run it in a child, which ends without a word."""
    child = os.fork()
    if child == 0:
        try:
            body()
        finally:
            os._exit(0)
    return child


def rows_of(store: EmbeddedStore) -> dict[bytes, bytes]:
    with store.base.snapshot() as snapshot:
        return {
            key: value
            for keys, values in snapshot.scan(5)
            for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)
        }


def log_of(path: Path) -> Path:
    return max((path / "base" / "log").glob("*.log"))


def test_writers_that_wait_share_one_sync(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        store.base.put_one(5, b"first", b"v", True)
        before = store._log.ends.syncs
        with (tmp_path / "base" / "log" / "sync").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as somebody who waits for the disk
            children = [
                forked(partial(store.base.put_one, 5, b"%d" % i, b"v", True)) for i in range(8)
            ]
            while store._log.ends.appended < 9:
                os.sched_yield()
            assert store.base.end() == {"log": 1}  # nobody sees what is not durable
            assert len(rows_of(store)) == 1
            fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: the children have it open too
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        assert store.base.end() == {"log": 9}
        assert len(rows_of(store)) == 9
        assert (
            store._log.ends.syncs - before <= 1
        )  # or who recovered what others had appended did it


def test_what_a_thread_writes_together_waits_for_the_disk_once(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        store.base.put_one(5, b"first", b"v", True)
        before = store._log.ends.syncs
        with store.base.together():
            for i in range(50):
                store.base.put_one(5, b"%d" % i, b"v", True)
            assert store._log.ends.syncs == before
            assert store.base.end() == {"log": 1}  # nobody sees what is not durable
        assert store._log.ends.syncs == before + 1
        assert len(rows_of(store)) == 51


_TRIM = """
import sys
from belvedere.stores.embedded import EmbeddedStore
with EmbeddedStore.open(sys.argv[1]) as store:
    store.base.trim("log", store.base.end()["log"])
"""


def test_a_store_is_opened_while_others_trim_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "FULL", 1000)
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        for i in range(50):
            store.base.put_one(5, b"%d" % i, bytes(100), True)
    opening, segments = LogFile.open, len(list((tmp_path / "base" / "log").glob("*.log")))

    def trimmed_first(self: LogFile) -> None:
        if not self._is_open:
            subprocess.run([sys.executable, "-c", _TRIM, str(tmp_path)], check=True)
        opening(self)

    monkeypatch.setattr(LogFile, "open", trimmed_first)
    with EmbeddedStore.open(tmp_path) as store:
        assert len(rows_of(store)) == 50
    assert len(list((tmp_path / "base" / "log").glob("*.log"))) < segments


_CALLS = ("write", "sync", "truncate", "create", "rename", "unlink", "sync_folder")


def killed_at(step: int, where: str, patch: pytest.MonkeyPatch) -> None:
    """Let this process be killed at its n-th call of the file system: before it, after it, or when
    half of it is written.
    """
    left = step

    def wrap(name: str) -> None:
        real = getattr(disk, name)

        def call(*arguments: object) -> object:
            nonlocal left
            left -= 1
            if left < 0 and where == "half" and name == "write":
                descriptor, parts, offset = arguments
                content = b"".join(parts)  # type: ignore[arg-type]
                os.pwrite(descriptor, content[: len(content) // 2], offset)  # type: ignore[arg-type]
            if left < 0 and where != "after":
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments)
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        patch.setattr(disk, name, call)

    for name in _CALLS:
        wrap(name)


@pytest.mark.parametrize("where", ["before", "half", "after"])
@pytest.mark.parametrize("is_open", [True, False])
def test_who_is_killed_at_any_step_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, is_open: bool
) -> None:
    """Appends, changes of segments, trims; beside a process that goes on, and one that comes."""
    monkeypatch.setattr(log_file, "FULL", 2000)
    monkeypatch.setattr(log_file, "_AHEAD", 1000)
    store = EmbeddedStore.open(tmp_path, slots=2)
    expected: dict[bytes, bytes] = {}
    for step in range(30):
        receive, send = os.pipe()

        def work(step: int = step, send: int = send, store: EmbeddedStore = store) -> None:
            store.base.end()
            killed_at(step, where, monkeypatch)
            for i in range(9):
                store.base.put_one(5, b"%d-%d" % (step, i), bytes(300), True)
                os.write(send, b"+")
                if i % 4 == 3:
                    store.base.trim("log", store.base.end()["log"])

        child = forked(work)
        os.close(send)
        os.waitpid(child, 0)
        done = len(os.read(receive, 100))
        os.close(receive)
        if not is_open:
            store.close()
            store = EmbeddedStore.open(tmp_path)
        store.base.put_one(5, b"%d" % step, b"after", True)
        expected |= {b"%d-%d" % (step, i): bytes(300) for i in range(done)}
        expected[b"%d" % step] = b"after"
        found = rows_of(store)
        maybe = b"%d-%d" % (step, done)
        if maybe in found:  # written whole, and not told
            expected[maybe] = bytes(300)
        assert found == expected, step
    store.close()
    with EmbeddedStore.open(tmp_path) as again:
        assert rows_of(again) == expected


def filled(path: Path) -> None:
    with EmbeddedStore.open(path, slots=2) as store:
        for i in range(20):
            store.base.put_one(5, b"%d" % i, b"value %d" % i, True)


def test_a_flipped_byte_names_file_and_position(tmp_path: Path) -> None:
    filled(tmp_path)
    path = log_of(tmp_path)
    content = bytearray(path.read_bytes())
    content[content.index(b"value 7")] ^= 1
    path.write_bytes(content)
    with (
        EmbeddedStore.open(tmp_path) as store,
        pytest.raises(Damaged, match=rf"{path.name}: the record of the log at position 7 is not"),
    ):
        rows_of(store)


def test_a_log_that_is_cut_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    path = log_of(tmp_path)
    os.truncate(path, path.read_bytes().index(b"value 19"))
    with pytest.raises(Damaged, match="the log ends at 19, and should at 20"):
        EmbeddedStore.open(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"\xff" * 64, bytes(64)])
def test_without_shared_memory_what_is_whole_counts(tmp_path: Path, content: bytes | None) -> None:
    filled(tmp_path)
    ends = tmp_path / "base" / "log" / ENDS
    ends.unlink()
    if content is not None:
        ends.write_bytes(content)
    with EmbeddedStore.open(tmp_path) as store:
        assert len(rows_of(store)) == 20


@pytest.mark.parametrize("what", ["folder", "segment", "empty", "stranger"])
def test_a_log_that_is_lost_is_refused(tmp_path: Path, what: str) -> None:
    filled(tmp_path / "one")
    filled(tmp_path / "two")
    path = log_of(tmp_path / "one")
    if what == "folder":
        for entry in path.parent.iterdir():
            entry.unlink()
        path.parent.rmdir()
    elif what == "segment":
        path.unlink()
    elif what == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(log_of(tmp_path / "two").read_bytes())
    with pytest.raises(StoreError):
        EmbeddedStore.open(tmp_path / "one")


def put_some(store: EmbeddedStore, operations: int) -> None:
    for i in range(operations):
        store.base.put_one(5, b"%03d" % i, b"v" * 50, True)


@pytest.fixture
def segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "FULL", 1000)
    monkeypatch.setattr(log_file, "_AHEAD", 0)


@pytest.mark.usefixtures("segments")
def test_who_is_late_trims_nothing_that_is_not_trimmed(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        put_some(store, 40)
        store.base.trim("log", 30)
        assert len(list((tmp_path / "base" / "log").glob("*.log"))) < 4
        for position in (0, 7, 29):
            store.base.trim("log", position)
            assert [block.position for block in store.base.read_log("log", 30, 40)] == [
                *range(30, 40)
            ]


@pytest.mark.usefixtures("segments")
def test_two_that_trim_at_once_are_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        put_some(store, 40)
        ends, is_first = log._table_ends, [True]

        def after_another(*arguments: Any) -> Any:
            if is_first[0]:
                is_first[0] = False
                store.base.trim("log", 30)
                store.base._log.known.clear()  # type: ignore[attr-defined]  # not another process's
            return ends(*arguments)

        monkeypatch.setattr(log, "_table_ends", after_another)
        store.base.trim("log", 20)
        assert [block.position for block in store.base.read_log("log", 30, 40)] == [*range(30, 40)]
        assert len(rows_of(store)) == 40
        with pytest.raises(Stale):
            list(store.base.read_log("log", 20, 40))


@pytest.mark.usefixtures("segments")
def test_who_reads_what_is_trimmed_meanwhile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not given what comes behind it."""
    with EmbeddedStore.open(tmp_path, slots=2) as store:
        put_some(store, 40)
        check, is_first = log.check_trim, [True]

        def before_another(transaction: Any, position: int) -> None:
            check(transaction, position)
            if is_first[0]:
                is_first[0] = False
                store._log._trimmed = lambda: 30  # another process has trimmed it
                store._log._load()

        monkeypatch.setattr(log, "check_trim", before_another)
        with pytest.raises((Stale, Damaged)):
            list(store.base.read_log("log", 10, 40))


@pytest.mark.usefixtures("segments")
def test_a_segment_that_goes_while_segments_are_opened_closes_no_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedStore.open(tmp_path, slots=2) as store, EmbeddedStore.open(tmp_path) as other:
        put_some(store, 20)
        assert len(rows_of(other)) == 20
        real, close, closed = Segment.open, Segment.close, []

        def unlucky(*arguments: Any) -> Segment:
            monkeypatch.setattr(Segment, "open", real)
            raise FileNotFoundError("it was trimmed meanwhile")

        def closing(segment: Segment) -> None:
            closed.append(segment.descriptor)
            close(segment)

        put_some(store, 40)
        store.base.trim("log", 40)
        monkeypatch.setattr(Segment, "open", unlucky)
        monkeypatch.setattr(Segment, "close", closing)
        other._log._load()
        assert closed
        assert len(closed) == len(set(closed))
