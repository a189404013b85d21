"""The embedded store does what the store in memory does, in any order of steps: epochs, retries,
late attempts, readers, collection.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from belvedere.errors import Conflict, Dropped, Stale
from belvedere.stores.base import Shard, Store, Write
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore
from belvedere.types import Vector

TABLES = (1, 2)
KEYS = [b"", b"a", b"ab", b"c\x00", b"c\x00\x00", b"\xff\xff"]
PREFIXES = [b"a", b"b", b"c\x00", b"\xff"]
keys = st.sampled_from(KEYS)
values = st.one_of(st.none(), st.binary(max_size=3))
tables = st.sampled_from(TABLES)
bounds = st.one_of(st.none(), keys)
changes = st.dictionaries(keys, values, max_size=6)


def binary(items: list[bytes | None] | list[bytes]) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


def listed(batches: Any) -> list[tuple[bytes, bytes]]:
    return [
        pair
        for found, values in batches
        for pair in zip(found.to_pylist(), values.to_pylist(), strict=True)
    ]


def prefixed(
    shard: Shard, table: int, prefixes: list[bytes], limit: int | None
) -> list[tuple[int, bytes, bytes]]:
    batches = shard.scan_prefixes(table, binary(prefixes), limit, batch=2)
    return [
        r
        for ns, ks, vs in batches
        for r in zip(ns.tolist(), ks.to_pylist(), vs.to_pylist(), strict=True)
    ]


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or which refusal it raises; anything else that it raises is a failure."""
    try:
        return call()
    except (Stale, Conflict, Dropped) as error:
        return type(error)


class Attempt:
    """The same attempt of an epoch in both stores."""

    def __init__(self, stores: tuple[Store, Store], epoch: int) -> None:
        self.epoch = epoch
        self.shards = [store.state.shard(0, epoch) for store in stores]
        self.buffered: set[int] = set()


class Agreeing(RuleBasedStateMachine):
    """Runs every step in both stores and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.stores: tuple[Store, Store] = (
            MemoryStore(slots=1),
            EmbeddedStore.open(self.folder, slots=1, map_size=1 << 24),
        )

    def teardown(self) -> None:
        self.stores[1].close()
        shutil.rmtree(self.folder)

    def agree(self, call: Callable[[Store], Any]) -> Any:
        expected, found = (outcome(partial(call, store)) for store in self.stores)
        assert found == expected
        return found


class StateAgrees(Agreeing):
    def __init__(self) -> None:
        super().__init__()
        self.committed = 0
        # of an epoch and table: rule R5
        self.content: dict[tuple[int, int], dict[bytes, bytes | None]] = {}
        self.attempts: list[Attempt] = []

    # ------------------------------------------------------------ attempts

    @rule(late=st.integers(0, 2))
    def begin(self, late: int) -> None:
        self.attempts.append(Attempt(self.stores, max(self.committed + 1 - late, 1)))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), table=tables, low=keys, high=bounds)
    def read(self, data: st.DataObject, table: int, low: bytes, high: bytes | None) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        expected, found = (
            outcome(partial(self.reads, shard, table, low, high)) for shard in attempt.shards
        )
        assert found == expected

    @staticmethod
    def reads(shard: Shard, table: int, low: bytes, high: bytes | None) -> list[Any]:
        return [
            shard.get_many(table, binary(KEYS)).to_pylist(),
            list(shard.scan(table, low, high)),
            list(shard.scan(table, low, high, reverse=True)),
            listed(shard.scan_batches(table, low, high, batch=2)),
            prefixed(shard, table, [low], None),
            *(prefixed(shard, table, PREFIXES, limit) for limit in (None, 1)),
        ]

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), table=tables, new=changes)
    def write(self, data: st.DataObject, table: int, new: dict[bytes, bytes | None]) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        if table not in attempt.buffered:
            self.buffer(attempt, table, new)

    def buffer(self, attempt: Attempt, table: int, new: dict[bytes, bytes | None]) -> None:
        wanted = sorted(self.content.setdefault((attempt.epoch, table), new).items())
        touched, after = binary([key for key, _ in wanted]), binary([value for _, value in wanted])
        before = [outcome(partial(shard.get_many, table, touched)) for shard in attempt.shards]
        assert before[0] == before[1]
        if before[0] is not Stale:
            attempt.buffered.add(table)
            for shard in attempt.shards:
                shard.write(Write(table, touched, after, before[0]))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from(self.attempts))
        self.attempts.remove(attempt)
        expected, found = (outcome(shard.commit) for shard in attempt.shards)
        assert found == expected

    @rule(new=st.tuples(changes, changes))
    def finish_epoch(self, new: tuple[dict[bytes, bytes | None], ...]) -> None:
        """What a coordinator does: run one attempt of the open epoch to its end, then call the
        epoch committed.
        """
        attempt = Attempt(self.stores, self.committed + 1)
        for table, table_changes in zip(TABLES, new, strict=True):
            self.buffer(attempt, table, table_changes)
        for shard in attempt.shards:
            shard.commit()
        self.committed += 1

    # ------------------------------------------------------------ readers and collection

    @rule(age=st.integers(0, 4), table=tables, low=keys, high=bounds)
    def look(self, age: int, table: int, low: bytes, high: bytes | None) -> None:
        def call(store: Store) -> list[Any]:
            epoch = max(self.committed - age, 0)
            reader, get = store.state.reader(0, epoch), store.state.getter(table)
            found = [
                [get(0, epoch, key) for key in KEYS],
                reader.get_many(table, binary(KEYS)).to_pylist(),
                listed(reader.scan(table)),
                listed(reader.scan(table, low, high, batch=2)),
            ]
            reader.close()
            return found

        self.agree(call)

    @rule(age=st.integers(0, 3))
    def collect(self, age: int) -> None:
        self.agree(lambda store: store.state.collect(max(self.committed - age, 0)))

    @invariant()
    def floors_and_counts_are_equal(self) -> None:
        self.agree(
            lambda store: (store.state.status(0).write_floor, store.state.status(0).history_floor)
        )
        self.agree(lambda store: [store.state.count(0, table) for table in TABLES])


class BaseAgrees(Agreeing):
    def __init__(self) -> None:
        super().__init__()
        self.ends = [0]

    @rule(
        table=tables,
        operations=st.lists(st.tuples(keys, values), max_size=5),
        images=st.booleans(),
        unless=st.none() | st.integers(0, 20),
    )
    def base_write(
        self,
        table: int,
        operations: list[tuple[bytes, bytes | None]],
        images: bool,
        unless: int | None,
    ) -> None:
        # the order of different rows within a block is the store's choice
        operations.sort(key=lambda operation: operation[0])
        arrays = binary([key for key, _ in operations]), binary([value for _, value in operations])
        after = None if unless is None else Vector({"log": unless})
        end = self.agree(lambda store: store.base.write(table, *arrays, images, after))
        if isinstance(end, Vector) and end["log"] > self.ends[-1]:
            self.ends.append(end["log"])

    @rule(table=tables, key=keys, value=values, images=st.booleans())
    def base_put_one(self, table: int, key: bytes, value: bytes | None, images: bool) -> None:
        end = self.agree(lambda store: store.base.put_one(table, key, value, images))
        if isinstance(end, Vector):
            self.ends.append(end["log"])

    @rule(table=tables, often=st.integers(0, 9), reclaim=st.booleans())
    def base_drop(self, table: int, often: int, reclaim: bool) -> None:
        if often == 0:  # a dropped table stays dropped, so not in every run
            self.agree(lambda store: store.base.drop(table))
        if reclaim:
            self.agree(lambda store: store.base.reclaim(60))

    @rule(position=st.integers(0, 30))
    def trim(self, position: int) -> None:
        self.agree(lambda store: store.base.trim("log", position))

    @invariant()
    def the_log_can_be_read_from_the_same_positions(self) -> None:
        self.agree(
            lambda store: [outcome(partial(store.base.cut, "log", low, 1)) for low in self.ends]
        )

    @rule(data=st.data(), rows=st.integers(0, 10))
    def read_log(self, data: st.DataObject, rows: int) -> None:
        low, high = sorted(
            data.draw(st.tuples(st.sampled_from(self.ends), st.sampled_from(self.ends)))
        )
        self.agree(lambda store: store.base.cut("log", low, rows))
        self.agree(
            lambda store: [self.shown(block) for block in store.base.read_log("log", low, high)]
        )

    @staticmethod
    def shown(block: Any) -> list[Any]:
        columns = [block.keys, block.values] + ([] if block.before is None else [block.before])
        return [
            block.stream,
            block.position,
            block.end,
            block.table,
            [column.to_pylist() for column in columns],
        ]

    @rule(table=tables, low=keys, high=bounds)
    def base_snapshot(self, table: int, low: bytes, high: bytes | None) -> None:
        def call(store: Store) -> list[Any]:
            with store.base.snapshot() as snapshot:
                found = [
                    snapshot.vector,
                    [snapshot.get(table, key) for key in KEYS],
                    listed(snapshot.scan(table, low, high, batch=2)),
                ]
                return [*found, snapshot.get_many(table, binary(KEYS)).to_pylist()]

        self.agree(call)


TestStateAgrees = StateAgrees.TestCase
TestStateAgrees.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
TestBaseAgrees = BaseAgrees.TestCase
TestBaseAgrees.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
