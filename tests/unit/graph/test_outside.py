"""A stateful operator from outside the package, put into a graph by hand: it is loaded, maintained
in narrow and wide epochs, explained and costed, and holds what a computation from scratch says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

import belvedere
from belvedere.cost import estimate
from belvedere.encoding import KeyCodec
from belvedere.encoding.arrays import Ints
from belvedere.epochs.local import LocalRunner
from belvedere.graph import WANTED, Node, register
from belvedere.operators.base import (
    ID,
    KEY,
    WEIGHT,
    Identity,
    IdentityPart,
    KeptTable,
    NewId,
    Origin,
    StateTable,
    Wording,
    columns,
)
from belvedere.operators.counts import counted, counts_of
from belvedere.operators.grouping import group, group_count
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, SqlType


@register
@dataclass(frozen=True, slots=True)
class AtLeastTwice(Origin):
    """AtLeastTwice: the different rows that occur more than once.

        n[x](e) = n[x](e-1) + sum of weights of x
        d(out)  = + x if n[x] gets above 1, - x if it falls back     for every touched x

    Cost: one record read and written per touched row.
    """

    table: TableId
    types: tuple[SqlType, ...]

    def tables(self) -> tuple[StateTable, ...]:
        return (StateTable(self.table, "counts", self.types, (BIGINT,)),)

    def with_tables(self, new_id: NewId) -> AtLeastTwice:
        return replace(self, table=new_id())

    def kept(self) -> tuple[KeptTable, ...]:
        return (KeptTable(self.table, self.types),)

    def row_counts(self, table: TableId, values: pa.BinaryArray) -> Ints | None:
        return counts_of(values)

    def explain(self, words: Wording) -> str:
        return f"more than one of {', '.join(words.inputs[0])}"

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        names = tuple(f"column {i + 1}" for i in range(len(self.types)))
        return (IdentityPart(names, self.types),)

    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]:
        keys, codes = group(self.state_key(changes))
        counts = group_count(codes, len(keys), changes.column(WEIGHT).to_numpy())
        return (pa.table([keys, pa.array(counts)], names=[KEY, WEIGHT]),)

    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        arrived = pa.concat_tables(parts[0])
        keys, codes = group(arrived.column(KEY).combine_chunks())
        before = shard.get_many(self.table, keys)
        old = counts_of(before)
        new = old + group_count(codes, len(keys), arrived.column(WEIGHT).to_numpy())
        shard.write(Write(self.table, keys, counted(new), before))
        yield self._changes(keys.filter(pa.array((old > 1) & (new <= 1))), -1)
        yield self._changes(keys.filter(pa.array((old <= 1) & (new > 1))), +1)

    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        names = columns(len(self.types))
        return KeyCodec(self.types).encode([changes.column(name) for name in names])

    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        for keys, values in shard.scan_batches(self.table, low, high):
            yield self._changes(keys.filter(pa.array(counts_of(values) > 1)), +1)

    def _changes(self, keys: pa.BinaryArray, weight: int) -> pa.Table:
        data = KeyCodec(self.types).decode(keys)
        weights = pa.array([weight] * len(keys), pa.int64())
        return pa.table([*data, weights, keys], names=[*columns(len(data)), WEIGHT, ID])


def insert_below_sink(db: belvedere.Database, name: str) -> None:
    """Put the operator between the last node of a requested view and what feeds that."""
    view = db.state().view(name)
    *below, sink = view.planned.nodes
    kinds = tuple(column.type for column in view.schema.columns)
    twice = Node(sink.id + 1, AtLeastTwice(WANTED, kinds), sink.inputs)
    end = replace(sink, id=sink.id + 2, inputs=((twice.id,),))
    planned = replace(view.planned, nodes=(*below, twice, end))
    edited = replace(view, planned=planned)
    db.store.catalog.transact(lambda t: t.put(f"view/{view.id}", edited.to_bytes()))


def shown(db: belvedere.Database, name: str) -> Counter[tuple[int, int]]:
    return Counter((row["g"], row["n"]) for row in db.view(name).scan())


def recomputed(db: belvedere.Database) -> Counter[tuple[int, int]]:
    rows = Counter((row["g"], row["n"]) for row in db.table("t").scan())
    return Counter(row for row, count in rows.items() if count > 1)


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_an_operator_from_outside_is_maintained_as_it_would_be_recomputed(
    seed: int, tasks: int
) -> None:
    rng = random.Random(seed)
    with belvedere.open("memory:", slots=4) as db:
        db._runner = LocalRunner(db.store, tasks)
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, g INT, n INT)")
        db.sql("CREATE MATERIALIZED VIEW twice AS SELECT g, n FROM t")
        insert_below_sink(db, "twice")
        for epoch in range(8):
            if epoch == 4:  # it shares the state that is there, and is loaded from it
                db.sql("CREATE MATERIALIZED VIEW later WITH (key = 'n') AS SELECT g, n FROM t")
                insert_below_sink(db, "later")
            rows = [
                {"id": rng.randrange(60), "g": rng.randrange(2), "n": rng.randrange(8)}
                for _ in range(20)
            ]
            db.table("t").put_many(rows)
            for _ in range(10):
                db.table("t").delete(rng.randrange(60))
            db.catch_up()
            assert shown(db, "twice") == recomputed(db)
            assert epoch < 4 or shown(db, "later") == recomputed(db)
        shared = [
            {n.id for n in db.state().view(name).nodes if isinstance(n.operator, AtLeastTwice)}
            for name in ("twice", "later")
        ]
        assert len(shared[0]) == 1
        assert shared[0] == shared[1]
        assert "AtLeastTwice" in str(db.sql("EXPLAIN twice"))
        assert "more than one of g, n" in str(db.sql("EXPLAIN twice"))
        view = db.state().view("twice")
        cost = estimate(db.store, "twice", view.planned, list(db.state().tables.values()), {})
        (kept,) = (node for node in cost.nodes if node.operator == "AtLeastTwice")
        different = {(row["g"], row["n"]) for row in db.table("t").scan()}
        assert (kept.state[0].what, kept.records) == ("counts", len(different))
