"""Base rows are what the log says, whoever has settled how much of it: random histories beside a
plain dictionary.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from belvedere.encoding import slot_of
from belvedere.errors import Stale
from belvedere.stores.base import BaseSnapshot, RowChanges
from belvedere.stores.embedded import EmbeddedStore, base_tables, log, merging, settling, tail
from belvedere.stores.embedded.run_files import RunWriter
from belvedere.types import Vector

TABLES, SLOTS = (1, 2), 3
Rows = dict[bytes, bytes]


def binary(items: list[Any]) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


def at(position: int) -> Vector:
    return Vector({"log": position})


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything happens with few rows: segments, runs in files, merges."""
    monkeypatch.setattr(settling, "FEW", 1)
    monkeypatch.setattr(settling, "SMALL_BYTES", 200)
    monkeypatch.setattr(tail, "FEW", 10)
    monkeypatch.setattr(tail, "_LARGEST", 300)
    monkeypatch.setattr(log, "_FEW", 3)
    monkeypatch.setattr(merging, "INLINE_ROWS", 40)


class History:
    """A store, and what its tables were at every boundary."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.dice = path, random.Random(seed)
        self.store = EmbeddedStore.open(path, slots=SLOTS)
        self.rows: dict[int, dict[int, Rows]] = {0: {table: {} for table in TABLES}}
        self.operations: list[tuple[int, bytes, bytes | None]] = []
        self.floor = 0

    @property
    def end(self) -> int:
        return len(self.operations)

    def boundary(self) -> int:
        return self.dice.choice([position for position in self.rows if position >= self.floor])

    def write(self) -> None:
        table, count = self.dice.choice(TABLES), self.dice.choice([1, 1, 2, 5, 60])
        keys = [b"k%d" % self.dice.randrange(80) for _ in range(count)]
        values = [
            None if self.dice.random() < 0.25 else b"%d" % self.dice.randrange(99) for _ in keys
        ]
        if count == 1:
            written = self.store.base.put_one(table, keys[0], values[0], True)
        else:
            written = self.store.base.write(table, binary(keys), binary(values), True)
        now = {each: dict(rows) for each, rows in self.rows[self.end].items()}
        for key, value in zip(keys, values, strict=True):
            self.operations.append((table, key, value))
            now[table].pop(key, None)
            if value is not None:
                now[table][key] = value
        self.rows[self.end] = now
        assert written == at(self.end)

    def settle(self) -> None:
        """As a task of an epoch does, which may be late, or of an epoch that is never committed."""
        low, high = sorted((self.boundary(), self.boundary()))
        slot = self.dice.randrange(SLOTS)
        changes = [self.changes(table, slot, low, high) for table in TABLES]
        assert self.store.history is not None
        self.store.history.settle(slot, at(low), at(high), changes)

    def changes(self, table: int, slot: int, low: int, high: int) -> RowChanges:
        touched = {key for each, key, _ in self.operations[low:high] if each == table}
        keys = sorted(key for key in touched if slot_of(key, SLOTS) == slot)
        before, after = (
            binary([self.rows[position][table].get(key) for key in keys])
            for position in (low, high)
        )
        return RowChanges(table, binary(keys), before, after)

    def trim(self) -> None:
        position = self.boundary()
        self.store.base.trim("log", position)
        self.floor = max(self.floor, position)

    def merge(self) -> None:
        place = self.store.places[0]
        wanted = place.environment.read(merging.next_merge)
        if wanted is not None:
            assert merging.do(place.environment, place.files, wanted, lambda: False)

    def reopen(self) -> None:
        self.store.close()
        self.store = EmbeddedStore.open(self.path)

    # ------------------------------------------------------------ what is compared

    def read_now(self) -> None:
        with self.store.base.snapshot() as snapshot:
            assert snapshot.vector == at(self.end)
            self.compare(snapshot, self.end)
        counts = [self.store.base.count(table) for table in TABLES]
        assert counts == [len(self.rows[self.end][table]) for table in TABLES]

    def read_before(self) -> None:
        position = self.boundary()
        assert self.store.history is not None
        with self.store.history.as_of(at(position)) as rows:
            self.compare(rows, position)
            for table in TABLES:
                some = self.dice.sample(range(SLOTS), 2)
                found = flat(rows.scan_slots(table, some, b"", None))
                expected = sorted(self.rows[position][table].items())
                assert found == [row for row in expected if slot_of(row[0], SLOTS) in some]

    def compare(self, snapshot: BaseSnapshot, position: int) -> None:
        for table in TABLES:
            expected = self.rows[position][table]
            assert flat(snapshot.scan(table, batch=7)) == sorted(expected.items())
            asked = [b"k%d" % i for i in range(81)]
            assert snapshot.get_many(table, binary(asked)).to_pylist() == [
                expected.get(key) for key in asked
            ]
            assert [snapshot.get(table, key) for key in asked] == [expected.get(k) for k in asked]
            low, high = sorted(self.dice.sample(asked, 2))
            assert flat(snapshot.scan(table, low, high)) == sorted(
                item for item in expected.items() if low <= item[0] < high
            )


def flat(batches: Iterator[Any]) -> list[tuple[bytes, bytes]]:
    return [
        pair
        for keys, values in batches
        for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_what_the_log_says_as_of_every_position_that_is_kept(
    tmp_path: Path, seed: int
) -> None:
    history = History(tmp_path / "s", seed)
    steps = [history.write] * 6 + [history.settle] * 4 + [history.read_before] * 3
    steps += [history.read_now] * 2 + [history.merge, history.trim, history.reopen]
    for _ in range(120):
        history.dice.choice(steps)()
    history.read_now()
    history.read_before()
    assert any((tmp_path / "s" / "base").glob("*.run"))
    history.store.close()


@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_stays_as_it_was_while_rows_are_settled_merged_and_forgotten(
    tmp_path: Path, seed: int
) -> None:
    history = History(tmp_path / "s", seed)
    for _ in range(20):
        history.write()
    position = history.end
    with history.store.base.snapshot() as snapshot:
        for _ in range(10):  # others go on from where it has read to
            history.write()
            history.read_now()
            history.compare(snapshot, position)
        for _ in range(20):
            history.write()
            history.settle()
            history.trim()
            history.merge()
        history.store.base.trim("log", history.end)
        history.compare(snapshot, position)
    with pytest.raises(Stale, match="too old"):
        history.store.history.as_of(at(0))  # type: ignore[union-attr]  # it has one
    history.store.close()


@pytest.mark.parametrize("seed", range(6))
def test_two_that_settle_one_slot_at_once_are_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The second one has named its runs when the first one wants to."""
    history = History(tmp_path / "s", seed)
    add, is_first = RunWriter.add, [True]

    def with_another(self: RunWriter, *arguments: Any) -> Any:
        found = add(self, *arguments)
        if is_first[0]:
            is_first[0] = False
            history.write()
            history.store.base.trim("log", history.dice.choice(sorted(history.rows)[5:]))
        return found

    for _ in range(8):
        history.write()
    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "add", with_another)
        history.store.base.trim("log", sorted(history.rows)[4])
    assert not is_first[0]
    history.read_now()
    history.store.base.trim("log", history.end)
    history.read_now()
    history.store.close()


def test_a_writer_settles_by_itself_when_too_many_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_tables, "MOST_WAITING", 500)
    monkeypatch.setattr(base_tables, "_LOOK_AFTER", 100)
    with EmbeddedStore.open(tmp_path / "s", slots=2) as store:
        for number in range(40):
            keys = [b"%05d" % (number * 50 + i) for i in range(50)]
            store.base.write(1, binary(keys), binary(keys), True)
            with store.base.snapshot() as snapshot:
                waiting = snapshot.position - snapshot.settled.low  # type: ignore[attr-defined]
                assert waiting <= 500 + 2 * 100
        assert store.base.count(1) == 2000
        assert list((tmp_path / "s" / "base").glob("*.run"))


_SETTLER = """
import sys
from belvedere.stores.embedded import EmbeddedStore, places, run_files, run_lists, settling
settling.SMALL_BYTES = 0  # files, not sections in LMDB
store = EmbeddedStore.open(sys.argv[1])
module, name = sys.argv[2].split(":")
owner = {"files": run_files.RunWriter, "settling": settling, "lists": run_lists}[module]
original = getattr(owner, name)
def stopping(*arguments, **named):
    result = original(*arguments, **named)
    print("here", flush=True)
    sys.stdin.readline()
    return result
setattr(owner, name, stopping)
store.base.trim("log", store.base.end()["log"])
"""


@pytest.mark.parametrize("where", ["files:add", "files:finish", "settling:put_mark", "lists:put"])
def test_who_is_killed_while_rows_are_settled_leaves_them_as_they_were(
    tmp_path: Path, where: str
) -> None:
    history = History(tmp_path / "s", 9)
    for _ in range(60):
        history.write()
    command = [sys.executable, "-c", _SETTLER, str(tmp_path / "s"), where]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
    history.read_now()
    history.read_before()
    history.store.base.trim("log", history.end)
    history.read_now()
    named = {path.name for path in (tmp_path / "s" / "base").glob("*.run")}
    history.store.base.trim("log", history.end)
    assert {path.name for path in (tmp_path / "s" / "base").glob("*.run")} <= named
    history.store.close()


def test_what_many_short_lived_writers_leave_is_settled_by_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_tables, "MOST_WAITING", 500)
    for number in range(30):
        with EmbeddedStore.open(tmp_path, slots=SLOTS) as store:
            keys = binary([b"%d-%d" % (number, i) for i in range(100)])
            store.base.write(1, keys, keys, True)
            place = store.places[0]
            marks = [
                place.environment.read(partial(settling.newest_mark, slot=slot))
                for slot in range(SLOTS)
            ]
            assert min(marks) >= 100 * (number + 1) - 600
    assert min(marks) > 2000
