"""Change capture on a real HBase, while everything happens to it that can."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from belvedere.stores.hbase.barrier import Barrier
from belvedere.stores.hbase.base_tables import HBaseBase
from belvedere.stores.hbase.capture import Marks
from belvedere.stores.hbase.install import install
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.segments import SegmentFiles
from tests.hbase.users import User, Writer, check_order, history, mapping, quorum

pytestmark = pytest.mark.hbase
_DISCOVER = """
import sys, threading, zlib
from belvedere.stores.hbase.base_tables import HBaseBase
base = HBaseBase(*sys.argv[1:])
end = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
while not end.wait(0.01):
    base.discover()
state = base.discover()
print(zlib.crc32(repr(state.entries).encode()))
"""


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    return User(cluster)


@pytest.fixture(scope="module")
def base(cluster: Cluster) -> HBaseBase:
    install(quorum(cluster), "capture", str(cluster.capture))
    return HBaseBase(quorum(cluster), "capture", str(cluster.capture))


class Discovery(threading.Thread):
    """Discovers every 10 ms."""

    def __init__(self, base: HBaseBase) -> None:
        super().__init__(name="discovery")
        self._base, self._end = base, threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._end.wait(0.01):
                self._base.discover()
        except BaseException as error:  # told to the test by `finish`
            self.error = error

    def finish(self) -> None:
        self._end.set()
        self.join(60)
        if self.error is not None:
            raise self.error


@pytest.fixture
def discovery(base: HBaseBase) -> Iterator[Discovery]:
    thread = Discovery(base)
    thread.start()
    yield thread
    thread.finish()


@pytest.fixture
def other_process(cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    arguments = [quorum(cluster), "capture", str(cluster.capture)]
    with subprocess.Popen(
        [sys.executable, "-c", _DISCOVER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        yield process


def rows_of(first: bytes, count: int) -> list[bytes]:
    return [first + str(number).encode() for number in range(count)]


def test_regions_move_split_merge_and_a_server_dies_while_rows_are_written(
    cluster: Cluster,
    user: User,
    base: HBaseBase,
    discovery: Discovery,
    other_process: subprocess.Popen[str],
) -> None:
    user.create("faults", [b"d", b"g", b"k"])
    base.adopt(1, mapping("faults"))
    writers = [Writer(user, "faults", rows_of(first, 6)) for first in (b"a", b"e", b"h", b"m")]
    for writer in writers:
        writer.start()
    try:
        for _ in range(2):  # away, and back into a file that knows the region
            for region in user.regions("faults"):
                user.move("faults", region)
        first, *_ = user.regions("faults")
        user.split(first, b"a3")
        user.merge(*user.regions("faults")[-2:])
        cluster.kill("region-server-2")
        cluster.start("region-server-2")
        reached = {row: n for writer in writers for row, n in writer.acknowledged.items()}
        high = base.barrier()["log"]
        check_order(history(base, 1, high), reached)
        for region in user.regions("faults"):
            user.move("faults", region)
    finally:
        least = {row: n for writer in writers for row, n in writer.finish().items()}
    high = base.barrier()["log"]
    check_order(history(base, 1, high), least)
    assert min(least.values()) > 7
    said, _ = other_process.communicate("")
    assert int(said) == zlib.crc32(repr(base.discover().entries).encode())


class MovedMeanwhile(SegmentFiles):
    """Once, while files are listed: those of the server that has the region are seen already, then
    the row is written, the region moves, and the row is written again.
    """

    def __init__(self, place: str, user: User, table: str) -> None:
        super().__init__(place)
        self._user, self._table, self._is_done = user, table, False

    def lengths(self) -> dict[str, int]:
        if self._is_done:
            return super().lengths()
        self._is_done = True
        region = self._user.regions(self._table)[0]
        server = str(self._user.server_of(self._table, region).getServerName())
        before = super().lengths()
        first = {name: size for name, size in before.items() if name.startswith(server)}
        self._user.put(self._table, b"row", a="2")
        self._user.move(self._table, region)
        self._user.put(self._table, b"row", a="3")
        return self._await_growth(set(before) - set(first), before) | first

    def _await_growth(self, names: set[str], before: dict[str, int]) -> dict[str, int]:
        """Lengths when one of these files has got more."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            lengths = super().lengths()
            if any(lengths[name] > before[name] for name in names):
                return lengths
        raise AssertionError("the row did not arrive by its new server")


def test_lengths_that_are_seen_one_after_the_other_bring_nothing_out_of_order(
    cluster: Cluster, user: User, base: HBaseBase
) -> None:
    user.create("moves")
    base.adopt(3, mapping("moves"))
    user.put("moves", b"row", a="1")
    low = base.barrier()["log"]
    other = HBaseBase(quorum(cluster), "capture", str(cluster.capture))
    other._files = MovedMeanwhile(str(cluster.capture / "capture"), user, "moves")
    assert other.discover().end == low  # neither 2, which was not seen, nor 3, which follows it
    rows = history(base, 3, base.barrier()["log"])
    assert [value for _, value in rows[b"row"]] == ["1", "2", "3"]


class MovingMarks(Marks):
    """After markers were placed for the first time, their regions move."""

    def __init__(self, cluster: Cluster, user: User) -> None:
        super().__init__(quorum(cluster), "capture")
        self._user, self.placed = user, 0

    def place(self, servers: Sequence[str]) -> dict[str, bytes]:
        rows = super().place(servers)
        self.placed += 1
        if self.placed == 1:
            for region in self._user.regions("capture:marks"):
                self._user.move("capture:marks", region)
        return rows


def test_a_marker_that_comes_by_another_log_is_put_again(
    cluster: Cluster, user: User, base: HBaseBase
) -> None:
    marks = MovingMarks(cluster, user)
    deadline = time.monotonic() + 60
    Barrier(marks, base.discover, lambda: None, deadline).pass_through()
    assert marks.placed > 1


def test_a_barrier_covers_what_a_server_had_acknowledged_that_dies_meanwhile(
    cluster: Cluster, user: User, base: HBaseBase
) -> None:
    user.create("dies", [b"m"])
    base.adopt(2, mapping("dies"))
    ends: list[int] = []
    writers = [Writer(user, "dies", rows_of(first, 5)) for first in (b"a", b"x")]
    for writer in writers:
        writer.start()
    while any(min(writer.acknowledged.values()) < 20 for writer in writers):
        writers[0].join(0.01)
    waiting = threading.Thread(target=lambda: ends.append(base.barrier()["log"]))
    reached = {row: n for writer in writers for row, n in writer.acknowledged.items()}
    waiting.start()
    cluster.kill("region-server-1")
    waiting.join(100)
    for writer in writers:
        writer.finish()
    cluster.start("region-server-1")
    check_order(history(base, 2, ends[0]), reached)
