"""Join against the same join in DuckDB: random relations, random changes of both sides, epoch by
epoch.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from belvedere.encoding import KeyCodec, slots_of
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import ID, KEY, WEIGHT, columns
from belvedere.operators.join import Join
from belvedere.operators.matching import MISSING, JoinIdentity, join_kind
from belvedere.operators.pairs import Index, pairs
from belvedere.operators.select import Expression
from belvedere.stores.base import Store
from belvedere.stores.embedded import EmbeddedStore
from belvedere.stores.memory import MemoryStore
from belvedere.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, SqlType

Row = tuple[Any, ...]
Relation = dict[bytes, Row]

_VALUES: dict[str, list[Any]] = {
    "string": [None, "", "a", "a\0", "b"],
    "int": [None, 0, 1, 2],
    "double": [None, 0.0, -0.0, 1.5, math.nan],
}
_KEYS: list[tuple[SqlType, ...]] = [(STRING,), (INT, STRING), (DOUBLE,), ()]
_REST: list[tuple[SqlType, ...]] = [(INT, STRING), (INT,), ()]
_SQL = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


def identity(i: int) -> bytes:
    return KeyCodec((INT,)).encode_one([i])


def shown(value: Any) -> Any:
    """Comparable: NaN equals itself, -0.0 is 0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@dataclass
class Side:
    """A relation, what it was an epoch ago, and its arrangement."""

    arrange: Arrange
    rows: Relation = field(default_factory=dict)
    before: Relation = field(default_factory=dict)

    def change(self, rng: random.Random) -> None:
        """Some rows are deleted, updated, moved to another key, or inserted again; in unique mode a
        key never has two.
        """
        self.before = dict(self.rows)
        for _ in range(rng.randint(0, 5)):
            ident = identity(rng.randrange(8))
            self.rows.pop(ident, None)
            if rng.random() < 0.7:
                row = tuple(rng.choice(_VALUES[kind.name]) for kind in self.arrange.types)
                if ident in self.before and rng.random() < 0.5:  # the same key as before
                    row = (*self.before[ident][: self.arrange.key], *row[self.arrange.key :])
                if self.arrange.unique:
                    self.rows = {
                        i: r for i, r in self.rows.items() if self.key_of(r) != self.key_of(row)
                    }
                self.rows[ident] = row

    def key_of(self, row: Row) -> bytes:
        return self.arrange.keys.encode_one(row[: self.arrange.key])

    def changes(self, rng: random.Random) -> list[pa.Table]:
        """The differences, with some that change nothing, in two batches in any order."""
        found = []
        for ident in {**self.before, **self.rows}:
            old, new = self.before.get(ident), self.rows.get(ident)
            if old != new or rng.random() < 0.1:
                found += [(old, -1, ident)] * (old is not None) + [(new, +1, ident)] * (
                    new is not None
                )
        rng.shuffle(found)
        half = rng.randint(0, len(found))
        return [table_of(self.arrange.types, part) for part in (found[:half], found[half:])]

    def relation(self) -> pa.Table:
        names = [*columns(len(self.arrange.types)), "id"]
        table = table_of(self.arrange.types, [(row, 1, ident) for ident, row in self.rows.items()])
        return table.drop_columns(WEIGHT).rename_columns(names)


def table_of(types: tuple[SqlType, ...], rows: list[Any]) -> pa.Table:
    data = [pa.array([row[i] for row, _, _ in rows], kind.arrow) for i, kind in enumerate(types)]
    meta = [
        pa.array([w for _, w, _ in rows], pa.int64()),
        pa.array([i for _, _, i in rows], pa.binary()),
    ]
    return pa.table([*data, *meta], names=[*columns(len(types)), WEIGHT, ID])


class World:
    """Both arrangements and the join over some slots of a store; `step` is an epoch."""

    def __init__(self, store: Store, join: Join) -> None:
        self.store, self.join, self.epoch = store, join, 0

    def step(self, left: list[pa.Table], right: list[pa.Table]) -> list[pa.Table]:
        self.epoch += 1
        return self.attempt(left, right)

    def attempt(self, left: list[pa.Table], right: list[pa.Table]) -> list[pa.Table]:
        found = []
        mine = self._by_slot(self.join.left, left), self._by_slot(self.join.right, right)
        for slot in range(self.store.state.slots):
            shard = self.store.state.shard(slot, self.epoch)
            arranged = (
                [list(self.join.left.step(shard, [mine[0][slot]]))]
                if any(t.num_rows for t in mine[0][slot])
                else [[]]
            )
            if self.join.left == self.join.right:
                arranged *= 2
            else:
                arranged.append(
                    list(self.join.right.step(shard, [mine[1][slot]]))
                    if any(t.num_rows for t in mine[1][slot])
                    else []
                )
            if any(arranged):
                parts = [
                    [p for t in tables for p in self.join.prepare(port, t)]
                    for port, tables in enumerate(arranged)
                ]
                emitted = list(self.join.step(shard, parts))
                for table in emitted:
                    assert set(
                        slots_of(self.join.state_key(table), self.store.state.slots).tolist()
                    ) <= {slot}
                found += emitted
            shard.commit()
        return found

    def _by_slot(self, arrange: Arrange, tables: list[pa.Table]) -> list[list[pa.Table]]:
        prepared = [part for table in tables for part in arrange.prepare(0, table)]
        count = self.store.state.slots
        slots = [slots_of(part.column(KEY).combine_chunks(), count) for part in prepared]
        return [
            [
                part.filter(pa.array(place == slot))
                for part, place in zip(prepared, slots, strict=True)
            ]
            for slot in range(count)
        ]

    def output(self, bounds: list[bytes]) -> Relation:
        """The whole result, read range by range."""
        found: Relation = {}
        for low, high in zip([b"", *bounds], [*bounds, None], strict=True):
            for slot in range(self.store.state.slots):
                for table in self.join.output(
                    self.store.state.shard(slot, self.epoch + 1), low, high
                ):
                    for state_key in self.join.state_key(table).to_pylist():
                        assert low <= state_key
                        assert high is None or state_key < high
                    for weight, ident, row in records(table):
                        assert weight == 1
                        assert ident not in found
                        found[ident] = row
        return found


def records(table: pa.Table) -> list[tuple[int, bytes, Row]]:
    data = [column.to_pylist() for column in table.drop_columns([WEIGHT, ID]).columns]
    rows = [tuple(shown(column[i]) for column in data) for i in range(table.num_rows)]
    return list(
        zip(table.column(WEIGHT).to_pylist(), table.column(ID).to_pylist(), rows, strict=True)
    )


def accumulate(result: Relation, emitted: list[pa.Table]) -> None:
    """Apply changes as a consumer would; an identity goes at most once, as it was, and comes at
    most once.
    """
    changes = [change for table in emitted for change in records(table)]
    for sign in (-1, 1):
        mine = [ident for weight, ident, _ in changes if weight == sign]
        assert len(mine) == len(set(mine))
    for weight, ident, row in sorted(changes, key=lambda change: change[0]):
        if weight < 0:
            assert result.pop(ident) == row
        else:
            assert ident not in result
            result[ident] = row


def in_duckdb(
    connection: duckdb.DuckDBPyConnection, join: Join, left: Side, right: Side
) -> Relation:
    key, rest = join.left.key, [f"l.c{i}" for i in range(join.left.key, len(join.left.types))]
    equal = [
        f"l.c{i} IS NOT DISTINCT FROM r.c{i}" if safe else f"l.c{i} = r.c{i}"
        for i, safe in enumerate(join.null_safe)
    ]
    beyond = [f"r.c{i}" for i in range(key, len(join.right.types))]
    condition = (
        " AND ".join([*equal, *([f"({residual(join, rest + beyond)})"] if join.condition else [])])
        or "TRUE"
    )
    if join.filters:
        wanted = ", ".join([*(f"l.c{i}" for i in range(key)), *rest, "l.id", "NULL"])
    else:
        wanted = ", ".join(
            [*(f"COALESCE(l.c{i}, r.c{i})" for i in range(key)), *rest, *beyond, "l.id", "r.id"]
        )
    l, r = left.relation(), right.relation()  # noqa: E741, F841  # DuckDB finds them by name
    found = connection.sql(f"SELECT {wanted} FROM l {_SQL[join.kind]} r ON {condition}").fetchall()
    return {ident(join, *row[-2:]): tuple(map(shown, row[:-2])) for row in found}


def residual(join: Join, names: list[str]) -> str:
    assert join.condition is not None
    sql = join.condition.sql
    for i in reversed(range(len(names))):
        sql = sql.replace(f'"c{join.left.key + i}"', names[i])
    return sql


def ident(join: Join, left: bytes | None, right: bytes | None) -> bytes:
    if join.identity != "both":
        chosen = left if join.identity == "left" else right
        assert chosen is not None
        return chosen
    return (MISSING if left is None else left) + (MISSING if right is None else right)


def random_join(rng: random.Random) -> Join:
    key, kind = rng.choice(_KEYS), join_kind(rng.choice(list(_SQL)))
    left = Arrange(1, (*key, *rng.choice(_REST)), len(key), unique=rng.random() < 0.25)
    right = Arrange(2, (*key, *rng.choice(_REST)), len(key), unique=rng.random() < 0.25)
    if rng.random() < 0.2:
        right = left
    identity: JoinIdentity = "both"
    if kind in ("semi", "anti") or (right.unique and kind in ("inner", "left")):
        identity = "left"
    elif left.unique and kind == "inner":
        identity = "right"
    rest = len(left.types)
    condition = None
    if (
        kind != "inner"
        and rng.random() < 0.5
        and len(left.types) > len(key)
        and len(right.types) > len(key)
    ):
        sql = rng.choice(
            [
                '"c{a}" < "c{b}"',
                '"c{a}" = "c{b}"',
                '"c{a}" <= 1',
                '"c{b}" > 0 AND "c{a}" IS NOT NULL',
                "FALSE",
            ]
        )
        condition = Expression(sql.format(a=len(key), b=rest), BOOLEAN, "")
    return Join(kind, left, right, tuple(rng.random() < 0.3 for _ in key), condition, identity)


@pytest.mark.parametrize("seed", range(8))
def test_the_accumulated_output_is_the_join_of_both_relations_after_every_epoch(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, connection = random.Random(seed), duckdb.connect(config={"threads": 1})
    for module in ("arrange", "matching") if seed % 2 else ():  # every other time in small batches
        monkeypatch.setattr(f"belvedere.operators.{module}.BATCH", 5)
    for _ in range(38):
        join = random_join(rng)
        left = Side(join.left)
        right = left if join.left == join.right else Side(join.right)
        world, result = World(MemoryStore(slots=rng.choice([1, 3])), join), Relation()
        for _ in range(4):
            left.change(rng)
            if right is not left:
                right.change(rng)
            changes = left.changes(rng), right.changes(rng)
            emitted = world.step(*changes)
            accumulate(result, emitted)
            assert result == in_duckdb(connection, join, left, right), join
        # a second attempt of the epoch
        assert list(map(records, world.attempt(*changes))) == list(map(records, emitted))
        keys = sorted({side.key_of(row) for side in (left, right) for row in side.rows.values()})
        bounds = rng.sample(keys, min(len(keys), 2))
        bounds = sorted(
            {rng.choice([bound, bound + b"\x00", bound[:-1]]) for bound in bounds} - {b""}
        )
        assert world.output([]) == result
        assert world.output(bounds) == result


def test_pairs_are_all_pairs_of_equal_keys_in_batches() -> None:
    rng = np.random.default_rng(1)
    for batch in (1, 3, 1000):
        place, others = rng.integers(0, 6, 20), np.sort(rng.integers(0, 6, 15))
        found = [
            pair
            for a, b in pairs(place, Index.of(others, 6), batch)
            for pair in zip(a.tolist(), b.tolist(), strict=True)
        ]
        assert found == [(i, j) for i in range(20) for j in range(15) if place[i] == others[j]]
        assert all(len(a) <= batch for a, _ in pairs(place, Index.of(others, 6), batch))


def numbered(count: int, key: Any, value: Any, weight: int = 1) -> pa.Table:
    """`count` rows of a key, with the same value and with identities of their own."""
    ids = KeyCodec((INT,)).encode([pa.array(np.arange(count, dtype=np.int32))])
    data = [pa.array([key] * count, pa.string()), pa.array([value] * count, pa.int64())]
    return pa.table(
        [*data, pa.array(np.full(count, weight, np.int64)), ids], names=["c0", "c1", WEIGHT, ID]
    )


def test_a_row_that_matches_very_many_is_joined_batch_by_batch(tmp_path: Path) -> None:
    rows = 300_000
    left, right = Arrange(1, (STRING, BIGINT), 1), Arrange(2, (STRING, BIGINT), 1, unique=True)
    world = World(
        EmbeddedStore.open(str(tmp_path), slots=1, map_size=1 << 28),
        Join("left", left, right, (False,), None, "left"),
    )
    updated = pa.concat_tables([numbered(1, "x", 1, -1), numbered(1, "x", 2)])
    steps: list[tuple[tuple[pa.Table, pa.Table], list[Row]]] = [
        ((numbered(rows, "x", 7), numbered(1, "x", 1)), [(1, 7, 1)]),
        ((numbered(0, "x", 7), updated), [(-1, 7, 1), (1, 7, 2)]),
        ((numbered(0, "x", 7), numbered(1, "x", 2, -1)), [(-1, 7, 2), (1, 7, None)]),
    ]
    for (of_left, of_right), expected in steps:
        emitted = world.step([of_left], [of_right])
        assert max(table.num_rows for table in emitted) <= 100_000
        found = pa.concat_tables(emitted)
        counted = found.group_by([WEIGHT, "c1", "c2"]).aggregate(
            [(ID, "count_distinct"), (ID, "count")]
        )
        assert sorted(counted.to_pylist(), key=lambda row: row[WEIGHT]) == [
            {WEIGHT: weight, "c1": a, "c2": b, f"{ID}_count_distinct": rows, f"{ID}_count": rows}
            for weight, a, b in expected
        ]
    read = [table.num_rows for table in world.join.output(world.store.state.shard(0, 4), b"", None)]
    assert max(read) <= 100_000
    assert sum(read) == rows


def test_identities_of_outer_joins_within_outer_joins_stay_apart() -> None:
    """Without an escape, "b alone, and nothing" would have the identity of
    "nothing, and c alone".
    """
    key = (INT,)
    join = Join("full", Arrange(1, key, 1), Arrange(2, key, 1), (False,), None, "both")
    one = identity(1)
    left, right = (
        table_of(key, [((10,), 1, MISSING + one)]),
        table_of(key, [((20,), 1, one + MISSING)]),
    )
    emitted = World(MemoryStore(slots=1), join).step([left], [right])
    found = [ident for table in emitted for _, ident, _ in records(table)]
    assert len(found) == len(set(found)) == 2
    assert not any(a != b and a.startswith(b) for a in found for b in found)


def test_without_a_condition_rows_that_stay_are_read_only_where_a_match_flips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = (STRING, BIGINT)
    left, right = Arrange(1, types, 1), Arrange(2, types, 1)
    world = World(MemoryStore(slots=1), Join("anti", left, right, (False,), None, "left"))
    world.step([numbered(3, "x", 7)], [numbered(2, "x", 1)])
    monkeypatch.setattr(Arrange, "decode", None)  # no row can be read
    world.step([numbered(0, "x", 7)], [numbered(1, "x", 1, -1)])  # another row stays on the right
    monkeypatch.undo()
    world.step([numbered(0, "x", 7)], [numbered(2, "x", 1, -1).slice(1)])
    assert len(world.output([])) == 3
