"""The log of adopted tables: positions, cuts, trimming, what comes again, what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from belvedere.errors import SchemaError, Stale, StoreError
from belvedere.stores.base import LogBlock
from belvedere.stores.base.mapping import MappedColumn, MappedKey, Mapping
from belvedere.stores.hbase.base_tables import HBaseBase
from belvedere.stores.hbase.capture import Capture
from belvedere.stores.hbase.install import install, manual_steps, uninstall
from belvedere.stores.hbase.local import Cluster
from tests.hbase.users import BINARY, STRING, User, check_order, history, mapping, quorum

pytestmark = pytest.mark.hbase


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    return User(cluster)


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Path:
    return cluster.directory / "capture of the log"


@pytest.fixture(scope="module")
def base(cluster: Cluster, place: Path) -> HBaseBase:
    """With small files."""
    settings = ["belvedere.capture.roll.bytes", "2000"]
    install(quorum(cluster), "log", str(place), settings)
    made = HBaseBase(quorum(cluster), "log", str(place))
    assert made.end() == {}
    return made


def blocks(base: HBaseBase, table: int, low: int, high: int) -> list[LogBlock]:
    return [block for block in base.read_log("log", low, high) if block.table == table]


def cells_of(block: LogBlock) -> list[dict[str, Any]]:
    assert block.cells is not None
    return list(block.cells.to_pylist())


def test_frames_that_come_again_are_told_by_their_sequence_ids(
    cluster: Cluster, user: User, tmp_path: Path
) -> None:
    settings = ["belvedere.capture.redeliver", "5"]
    install(quorum(cluster), "again", str(tmp_path), settings)
    base = HBaseBase(quorum(cluster), "again", str(tmp_path))
    user.create("again")
    base.adopt(1, mapping("again"))
    for number in range(1, 21):
        user.put("again", b"row", a=str(number)) if number % 7 else user.delete("again", b"row")
    high = base.barrier()["log"]
    again = check_order(history(base, 1, high), {b"row": 20})
    assert again > 0
    assert high == 20 + again
    uninstall(quorum(cluster), "again")


def test_a_block_has_the_cells_of_mapped_columns_only(user: User, base: HBaseBase) -> None:
    user.create("some")
    base.adopt(2, mapping("some"))
    low = base.barrier()["log"]
    user.put("some", b"one", a="x", c="not mapped")
    user.put("some", b"two", c="not mapped")
    user.delete("some", b"one")
    high = base.barrier()["log"]
    found = blocks(base, 2, low, high)
    assert [key for block in found for key in block.keys.to_pylist()] == [
        b"\x01one\x00",
        b"\x01two\x00",
        b"\x01one\x00",
    ]
    cells = [cell for block in found for cell in cells_of(block)]
    assert [(cell["type"], cell["column"], cell["value"]) for cell in cells] == [
        (4, 0, b"x"),
        (14, -1, b""),
    ]
    assert all(value is None for block in found for value in block.values.to_pylist())


def test_cuts_are_boundaries_and_cover_the_log(user: User, base: HBaseBase) -> None:
    user.create("cuts")
    for row in (b"one", b"two", b"three"):
        user.put("cuts", row, a="before")
    base.adopt(10, mapping("cuts"))
    assert base.scan_range(10, b"", b"") == 3  # one frame, which nothing divides
    for number in range(3):
        user.put("cuts", b"row", a=str(number))
        base.barrier()
    high = base.end()["log"]
    bounds, low = [0], 0
    while low < high:
        low = base.cut("log", low, 1)
        assert low > bounds[-1]
        bounds.append(low)
    assert low == high == base.cut("log", high, 100)
    whole = [block.keys.to_pylist() for block in base.read_log("log", 0, high)]
    stretches = [base.read_log("log", *bounds) for bounds in pairwise(bounds)]
    parts = [block.keys.to_pylist() for stretch in stretches for block in stretch]
    assert parts == whole
    assert base.cut("log", 0, high) == high
    inside = next(low + 1 for low, high in pairwise(bounds) if high > low + 1)
    with pytest.raises(StoreError, match="inside a transaction"):
        base.cut("log", inside, 1)
    assert base.cut("log", 0, high, size=1) == bounds[1]


def test_rows_that_were_there_before_are_scanned_into_the_log(user: User, base: HBaseBase) -> None:
    user.create("old", [b"m"], scope=0)
    for row in (b"a", b"b", b"z"):
        user.put("old", row, a="before")
    user.delete("old", b"b")
    with pytest.raises(SchemaError, match="REPLICATION_SCOPE"):
        base.adopt(3, mapping("old"), set_scope=False)
    base.adopt(3, mapping("old"))
    user.put("old", b"a", a="after")
    assert sum(base.scan_range(3, low, high) for low, high in base.start_scan(3)) == 3
    rows = history(base, 3, base.barrier()["log"])
    assert sorted(value or "" for _, value in rows[b"a"]) == ["after", "after", "before"]
    assert rows[b"z"] == [(0, "before")]
    assert (0, None) in rows[b"b"]  # a marker may hide a put that comes later


def test_a_peer_that_was_disabled_has_lost_nothing(
    cluster: Cluster, user: User, base: HBaseBase
) -> None:
    user.create("waits")
    base.adopt(4, mapping("waits"))
    capture = Capture(quorum(cluster), "log")
    capture.disable()
    user.put("waits", b"row", a="1")
    with pytest.raises(StoreError, match="is disabled"):
        base.barrier(seconds=0.1)
    capture.enable()
    user.put("waits", b"row", a="2")
    check_order(history(base, 4, base.barrier()["log"]), {b"row": 2})


def test_namespaces_that_capture_into_one_place_do_not_take_each_others_marks(
    cluster: Cluster, user: User, base: HBaseBase, place: Path
) -> None:
    for _ in range(3):
        base.barrier()
    install(quorum(cluster), "beside", str(place))
    beside = HBaseBase(quorum(cluster), "beside", str(place))
    user.create("shared")
    for each in (base, beside):
        each.adopt(9, mapping("shared"))
    Capture(quorum(cluster), "beside").disable()
    user.put("shared", b"row", a="1")
    assert set(history(base, 9, base.barrier()["log"])) == {b"row"}
    with pytest.raises(StoreError, match="is disabled"):
        beside.barrier(seconds=0.1)
    Capture(quorum(cluster), "beside").enable()
    beside.barrier()
    assert beside.end()["log"] == 1
    uninstall(quorum(cluster), "beside")
    base.forget(9)


def test_a_trimmed_log_is_stale_and_its_files_are_gone(
    user: User, base: HBaseBase, place: Path
) -> None:
    user.create("gone")
    base.adopt(5, mapping("gone"))
    for number in range(1, 6):
        user.put("gone", b"row", a=str(number) + "x" * 3000)  # each frame fills a file
        base.barrier()
    user.put("gone", b"row", a="last")
    high = base.barrier()["log"]
    before = set(place.glob("log/*.frames"))
    assert base.room()[0] == sum(path.stat().st_size for path in before)
    under_way = base.read_log("log", 0, high)
    next(under_way)
    base.trim("log", high - 1)
    assert len(set(place.glob("log/*.frames"))) < len(before)
    with pytest.raises(Stale):
        list(under_way)
    with pytest.raises(Stale):
        base.cut("log", 0, 10)
    rest = list(base.read_log("log", high - 1, high))
    assert [len(block.keys) for block in rest] == [1]
    base.trim("log", high - 1)
    other = HBaseBase(base._quorum, "log", str(place))
    with pytest.raises(Stale):
        list(other.read_log("log", 0, high))
    user.put("gone", b"row", a="more")
    assert other.barrier()["log"] == high + 1


def test_a_forgotten_table_is_captured_no_more_and_stays(
    cluster: Cluster, user: User, base: HBaseBase
) -> None:
    user.create("left")
    base.adopt(6, mapping("left"))
    user.put("left", b"row", a="1")
    low, high = base._index.state.trimmed, base.barrier()["log"]
    assert len(blocks(base, 6, low, high)) == 1
    capture = Capture(quorum(cluster), "log")
    assert "left" in capture.tables()
    base.drop(6)
    base.forget(6)
    assert "left" not in capture.tables()
    assert 6 not in base.mappings()
    assert blocks(base, 6, low, high) == []
    assert len(user.regions("left")) == 1


def test_tables_whose_cells_vanish_or_that_are_not_there_are_refused(
    user: User, base: HBaseBase
) -> None:
    user.create("short_lived", setTimeToLive=60)
    user.create("least", setTimeToLive=60, setMinVersions=1)
    for name in ("short_lived", "least"):
        with pytest.raises(SchemaError, match="TTL"):
            base.adopt(9, mapping(name))
    with pytest.raises(SchemaError, match="no table nowhere"):
        base.adopt(9, mapping("nowhere"))
    user.create("familiar")
    other = Mapping("familiar", MappedKey((BINARY,)), (b"g",), (MappedColumn(STRING, 0, b"a"),))
    with pytest.raises(SchemaError, match="no families g: it has f"):
        base.adopt(9, other)


def test_installing_is_told_once_and_can_be_undone(cluster: Cluster, tmp_path: Path) -> None:
    address = quorum(cluster)
    directory = tmp_path / "captured"
    (said,) = install(address, "other", str(directory))
    assert str(directory) in said
    assert install(address, "other", str(directory)) == []
    with pytest.raises(StoreError, match="uninstall"):
        install(address, "other", str(tmp_path / "elsewhere"))
    Capture(address, "other").disable()
    assert install(address, "other", str(directory)) == ["enabled the peer belvedere_other"]
    assert len(uninstall(address, "other")) == 1
    assert uninstall(address, "other") == []
    with pytest.raises(StoreError, match="is not there"):
        HBaseBase(address, "other", str(directory))._check_peer()
    with pytest.raises(StoreError, match="capture=DIRECTORY"):
        HBaseBase(address, "other", "").end()
    assert str(directory) in manual_steps(str(directory))
