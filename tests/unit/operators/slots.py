"""For tests of operators with state: several slots in memory, random relations, and what has been
emitted so far, checked.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from belvedere.encoding import KeyCodec, slots_of
from belvedere.operators.base import KEY, Origin, change_schema
from belvedere.stores.base import Shard
from belvedere.stores.memory import MemoryStore
from belvedere.types import BIGINT, SqlType

Row = tuple[Any, ...]


class Slots:
    """A store in memory; `step` runs an operator in every slot, `commit` ends the epoch."""

    def __init__(self, count: int) -> None:
        self.count, self.epoch = count, 0
        self.state = MemoryStore(slots=count).state
        self.begin()

    def begin(self) -> None:
        self.epoch += 1
        self.shards: list[Shard] = [
            self.state.shard(slot, self.epoch) for slot in range(self.count)
        ]

    def step(self, operator: Origin, *ports: Sequence[pa.Table]) -> list[pa.Table]:
        parts = [
            [table for changes in tables for table in operator.prepare(port, changes)]
            for port, tables in enumerate(ports)
        ]
        found = []
        for slot, shard in enumerate(self.shards):
            mine = [
                [here for table in tables if (here := self._of(slot, table)).num_rows]
                for tables in parts
            ]
            if any(mine):
                found += list(operator.step(shard, mine))
        return found

    def _of(self, slot: int, table: pa.Table) -> pa.Table:
        return table.filter(
            pa.array(slots_of(table.column(KEY).combine_chunks(), self.count) == slot)
        )

    def commit(self) -> None:
        for shard in self.shards:
            shard.commit()
        self.begin()

    def output(self, operator: Origin, *cuts: bytes) -> list[pa.Table]:
        """All rows as of the last commit, read range by range."""
        bounds = [b"", *cuts, None]
        found = []
        for low, high in itertools.pairwise(bounds):
            for slot, shard in enumerate(self.shards):
                for table in operator.output(shard, low or b"", high):
                    keys = operator.state_key(table)
                    assert all(
                        (low or b"") <= key and (high is None or key < high)
                        for key in keys.to_pylist()
                    )
                    assert set(slots_of(keys, self.count).tolist()) <= {slot}
                    found.append(table)
        return found


class Accumulated:
    """The relation that emitted changes add up to; an identity has one row, and what is retracted
    is what was there.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, Row] = {}

    def apply(self, tables: Sequence[pa.Table]) -> None:
        minus, plus = dict[bytes, Row](), dict[bytes, Row]()
        for table in tables:
            assert table.num_rows <= 100_000
            for *row, weight, identity in _tuples(
                table.drop_columns([KEY]) if KEY in table.column_names else table
            ):
                side = {-1: minus, 1: plus}[weight]
                assert identity not in side
                side[identity] = exact(row)
        for identity, gone in minus.items():
            assert self.rows.pop(identity) == gone
        assert not self.rows.keys() & plus.keys()
        self.rows.update(plus)


def exact(row: Sequence[Any]) -> Row:
    """-0.0 apart from 0.0, NaN equal to itself."""
    return tuple(repr(v) if isinstance(v, float) else v for v in row)


def bag(rows: Sequence[Row]) -> list[str]:
    """Rows as a sorted bag, as SQL compares them: -0.0 is 0.0."""
    return sorted(
        repr(tuple("0.0" if v in ("-0.0", "0.0") else v for v in exact(row))) for row in rows
    )


def _tuples(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def added(tables: Sequence[pa.Table]) -> dict[bytes, Row]:
    """The relation that insertions alone make."""
    relation = Accumulated()
    relation.apply(tables)
    return relation.rows


class Relation:
    """A random relation with identities; `change` moves some of its rows and says how, in batches
    of several producers.
    """

    def __init__(
        self,
        rng: random.Random,
        types: Sequence[SqlType],
        row: Callable[[random.Random], Row],
        size: int,
    ) -> None:
        self.rng, self.types, self.row, self.size = rng, types, row, size
        self.rows: dict[int, Row] = {}

    def change(self, count: int) -> list[pa.Table]:
        after = dict(self.rows)
        for number in self.rng.sample(range(self.size), min(count, self.size)):
            if number in after and self.rng.random() < 0.4:
                del after[number]
            else:
                after[number] = self.row(self.rng)
        return self.become(after)

    def become(self, after: dict[int, Row]) -> list[pa.Table]:
        """All identities that differ, -1 before +1; which producer says what is random."""
        touched = [
            n
            for n in sorted(self.rows.keys() | after.keys())
            if self._image(self.rows, n) != self._image(after, n)
        ]
        made: list[list[tuple[int, Row, int]]] = [[], []]
        for number in touched:
            batch = self.rng.choice(made)
            batch += [
                (number, rows[number], weight)
                for rows, weight in ((self.rows, -1), (after, 1))
                if number in rows
            ]
        self.rows = after
        return [self._table(batch) for batch in made if batch]

    def _image(self, rows: dict[int, Row], number: int) -> Row | None:
        return exact(rows[number]) if number in rows else None

    def _table(self, batch: list[tuple[int, Row, int]]) -> pa.Table:
        data = [
            pa.array([row[i] for _, row, _ in batch], kind.arrow)
            for i, kind in enumerate(self.types)
        ]
        meta = [
            pa.array([weight for *_, weight in batch], pa.int64()),
            ids([number for number, *_ in batch]),
        ]
        return pa.table([*data, *meta], schema=change_schema([kind.arrow for kind in self.types]))

    def table(self) -> pa.Table:
        """The rows themselves, with the identity as a number in column `n`."""
        data = {
            f"c{i}": pa.array([row[i] for row in self.rows.values()], kind.arrow)
            for i, kind in enumerate(self.types)
        }
        return pa.table({**data, "n": pa.array(list(self.rows), pa.int64())})


def ids(numbers: Sequence[int]) -> pa.BinaryArray:
    return KeyCodec((BIGINT,)).encode([pa.array(numbers, pa.int64())])


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """Made once: it costs more than a test case."""
    return duckdb.connect(config={"threads": 1})


def query(text: str, **tables: pa.Table) -> list[Row]:
    for name, table in tables.items():
        _engine().register(name, table)
    return _engine().sql(text).fetchall()
