"""Rules of a store without slot transactions that random schedules hardly find: the schedule is
built, and goes wrong exactly when the rule is off. The others are in `tests/simulation`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from belvedere.errors import Stale
from belvedere.stores.base import FLOOR, TableShape, Write
from belvedere.stores.memory import MemoryStore, RowRules

TABLE, OTHER = 7, 8


class Interrupted:
    """A store; what is planned for a point happens there, once, before the step is taken."""

    def __init__(self, rules: RowRules) -> None:
        self.planned: dict[str, Callable[[], None]] = {}
        self.store = MemoryStore(slots=1, point=self.point, rows=rules)
        self.store.state.create([TableShape(TABLE), TableShape(OTHER)])

    def point(self, what: str) -> None:
        action = self.planned.pop(what, None)
        if action is not None:
            action()

    def collect(self, keep: int) -> None:
        self.store.catalog.transact(lambda t: t.put(FLOOR, b"%d" % keep))
        self.store.state.collect(keep)

    def put(self, epoch: int, value: bytes | None, table: int = TABLE) -> None:
        """An attempt that writes one record."""
        shard = self.store.state.shard(0, epoch)
        shard.write(written(table, value))
        shard.commit()

    def seen(self, epoch: int, table: int = TABLE) -> list[bytes | None]:
        reader = self.store.state.reader(0, epoch)
        found: list[bytes | None] = reader.get_many(
            table, pa.array([b"k"], pa.binary())
        ).to_pylist()
        return found


def written(table: int, value: bytes | None) -> Write:
    key, absent = pa.array([b"k"], pa.binary()), pa.array([None], pa.binary())
    return Write(table, key, pa.array([value], pa.binary()), absent)


def ends(attempt: Callable[[], None]) -> str:
    try:
        attempt()
    except Stale:
        return "stale"
    return "written"


@pytest.mark.parametrize("is_on", [True, False])
def test_an_attempt_looks_at_the_floor_after_reading_and_before_writing(is_on: bool) -> None:
    """What it read is gone, and the table that it writes has no fence yet, because it is empty."""
    world = Interrupted(RowRules(look_before_writing=is_on))
    world.put(1, b"1")
    late = world.store.state.shard(0, 3)
    for epoch in (2, 3, 4):
        world.put(epoch, b"%d" % epoch)
    world.collect(4)
    copied = late.get_many(TABLE, pa.array([b"k"], pa.binary())).to_pylist()
    late.write(written(OTHER, b"read " + (copied[0] or b"nothing")))
    assert ends(late.commit) == ("stale" if is_on else "written")
    assert world.seen(4, OTHER) == [None if is_on else b"read nothing"]


@pytest.mark.parametrize("is_on", [True, False])
def test_a_fence_never_falls(is_on: bool) -> None:
    """A collector stands still before it raises a fence; the next one removes more than it meant
    to; then it comes back, and behind it a write that was looked at long ago.
    """
    world = Interrupted(RowRules(fence_grows=is_on))
    world.put(1, b"1")

    def meanwhile() -> None:
        """Epochs 2 to 4, a collector that stood still since epoch 1, and one that did not."""
        world.put(2, b"2")
        world.put(3, None)
        world.put(4, None)
        world.planned["raise fence"] = lambda: world.collect(4)
        world.store.state.collect(1)

    late = world.store.state.shard(0, 2)
    late.write(written(TABLE, b"2"))
    world.planned["row put"] = meanwhile
    assert ends(late.commit) == ("stale" if is_on else "written")
    assert world.seen(4) == [None if is_on else b"2"]


@pytest.mark.parametrize("is_on", [True, False])
def test_a_write_that_comes_after_the_floor_changes_nothing(is_on: bool) -> None:
    world = Interrupted(RowRules(fence=is_on))
    world.put(1, b"1")

    def meanwhile() -> None:
        world.put(2, b"2")
        world.put(3, None)
        world.collect(4)

    late = world.store.state.shard(0, 2)
    late.write(written(TABLE, b"2"))
    world.planned["row put"] = meanwhile
    assert ends(late.commit) == ("stale" if is_on else "written")
    assert world.seen(4) == [None if is_on else b"2"]


@pytest.mark.parametrize("is_on", [True, False])
def test_what_is_removed_are_the_versions_that_were_seen(is_on: bool) -> None:
    world = Interrupted(RowRules(exact_removal=is_on))
    world.put(1, b"1")
    world.put(2, None)
    world.planned["sweep remove"] = lambda: world.put(3, b"3")
    world.collect(2)
    assert world.seen(3) == [b"3" if is_on else None]


@pytest.mark.parametrize("is_on", [True, False])
def test_a_reader_looks_at_the_floor_after_reading(is_on: bool) -> None:
    world = Interrupted(RowRules(look_after_reading=is_on))
    world.put(1, b"1")
    world.put(2, b"2")
    reader = world.store.state.reader(0, 1)
    world.planned["reader scan"] = lambda: world.collect(2)
    if is_on:
        with pytest.raises(Stale):
            list(reader.scan(TABLE))
    else:
        assert list(reader.scan(TABLE)) == []  # although epoch 1 has the record
