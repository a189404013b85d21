"""TopK over an ordered Arrange against DuckDB's row_number() over all rows, after every epoch."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from belvedere import graph
from belvedere.encoding import KeyCodec
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.topk import TopK
from belvedere.types import BIGINT, DOUBLE, INT, STRING, SqlType
from tests.unit.operators.slots import Accumulated, Relation, Row, Slots, added, bag, ids, query

_TABLE = 6
_VALUES: dict[SqlType, list[Any]] = {
    STRING: [None, "", "a", "a\0", "a\0b", "ab"],
    INT: [None, -1, 0, 2**31 - 1],
    DOUBLE: [None, 0.0, -0.0, math.nan, -math.inf, 1.5],
    BIGINT: list(range(5)),
}


@dataclass(frozen=True)
class Case:
    name: str
    types: tuple[SqlType, ...]
    key: int
    order: tuple[bool, ...]
    limit: int

    @property
    def rows(self) -> Arrange:
        return Arrange(_TABLE, self.types, self.key, self.order)

    def row(self, rng: random.Random) -> Row:
        return tuple(rng.choice(_VALUES[kind]) for kind in self.types)

    def sql(self, rank: bool) -> str:
        """Spark's order of NULLs; ties by identity, which rises with `n`."""
        ordering = [
            f"{self._ordered(i)} {'DESC NULLS LAST' if down else 'ASC NULLS FIRST'}"
            for i, down in enumerate(self.order, start=self.key)
        ]
        partition = (
            f"PARTITION BY {', '.join(self._ordered(i) for i in range(self.key))}"
            if self.key
            else ""
        )
        names = [f"c{i}" for i in range(len(self.types))] + ["rn"] * rank
        numbered = (
            f"SELECT *, row_number() OVER ({partition} ORDER BY {', '.join([*ordering, 'n'])}) AS"
            " rn FROM rows"
        )
        return f"SELECT {', '.join(names)} FROM ({numbered}) WHERE rn <= {self.limit}"

    def _ordered(self, i: int) -> str:
        return (
            f"(CASE WHEN c{i} = 0 THEN 0.0 ELSE c{i} END)" if self.types[i] == DOUBLE else f"c{i}"
        )


_CASES = (
    Case("ascending", (STRING, INT, BIGINT), 1, (False,), 2),
    Case("descending", (STRING, INT, BIGINT), 1, (True,), 2),
    Case("strings up", (STRING, STRING, BIGINT), 1, (False,), 3),
    Case("strings down", (STRING, STRING, BIGINT), 1, (True,), 3),
    Case("mixed", (STRING, STRING, INT, DOUBLE, BIGINT), 1, (True, False, True), 3),
    Case("mixed otherwise", (DOUBLE, STRING, DOUBLE, STRING), 2, (False, True), 2),
    Case("global", (DOUBLE, BIGINT), 0, (True,), 4),
    Case("global with strings", (STRING, INT, BIGINT), 0, (True, False), 7),
    Case("first", (INT, BIGINT), 1, (False,), 1),
    Case("more than there are", (STRING, INT, BIGINT), 1, (True,), 1000),
)


def epoch(work: Slots, operator: TopK, changes: Sequence[pa.Table]) -> list[pa.Table]:
    found = work.step(operator, work.step(operator.rows, changes))
    work.commit()
    return found


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("rank", [False, True], ids=["plain", "ranked"])
def test_the_result_is_that_of_all_rows_after_every_epoch(case: Case, rank: bool) -> None:
    operator = TopK(case.rows, case.limit, rank)
    for seed in range(8):
        rng = random.Random(seed)
        work, result = Slots(rng.choice([1, 3])), Accumulated()
        relation = Relation(rng, case.types, case.row, rng.choice([8, 50]))
        for _ in range(6):
            result.apply(epoch(work, operator, relation.change(rng.choice([1, 3, 25]))))
            assert bag(list(result.rows.values())) == bag(
                query(case.sql(rank), rows=relation.table())
            )
            assert set(result.rows) <= set(ids(list(relation.rows)).to_pylist())
            key = KeyCodec(case.types[: case.key])
            cuts = sorted({key.encode_one(case.row(rng)[: case.key]) for _ in range(3)} - {b""})
            assert (
                added(work.output(operator)) == added(work.output(operator, *cuts)) == result.rows
            )


class Queue:
    """Rows (group, time) of which the oldest go and new ones come."""

    def __init__(self, limit: int, rank: bool) -> None:
        self.operator = TopK(Arrange(_TABLE, (STRING, BIGINT), 1, (False,)), limit, rank)
        self.work, self.result = Slots(1), Accumulated()
        self.relation = Relation(random.Random(0), (STRING, BIGINT), lambda rng: (), 0)
        self.read = 0

    def become(self, times: range) -> list[pa.Table]:
        shard = self.work.shards[0]
        scan = shard.scan_prefixes

        def counting(*arguments: Any, **options: Any) -> Iterator[Any]:
            for batch in scan(*arguments, **options):
                self.read += len(batch[1])
                yield batch

        self.read, shard.scan_prefixes = 0, counting  # type: ignore[method-assign]  # counts what is read
        found = epoch(self.work, self.operator, self.relation.become({t: ("g", t) for t in times}))
        self.result.apply(found)
        return found


@pytest.mark.parametrize("rank", [False, True], ids=["plain", "ranked"])
def test_deletes_at_the_front_of_a_queue_read_little_more_than_themselves(rank: bool) -> None:
    queue = Queue(5, rank)
    for first, last in (
        (0, 2000),
        (1, 2000),
        (4, 2010),
        (12, 2010),
        (600, 2600),
        (2597, 2600),
        (2600, 2601),
        (2601, 2601),
    ):
        gone = first - min(queue.relation.rows, default=first)
        queue.become(range(first, last))
        assert queue.read <= 4 * (5 + gone)
        expected = range(first, min(first + 5, last))
        assert sorted(queue.result.rows.values()) == [
            ("g", t, *[n] * rank) for n, t in enumerate(expected, start=1)
        ]


def test_changes_behind_the_first_rows_are_silent_and_read_only_these() -> None:
    queue = Queue(5, True)
    queue.become(range(2000))
    assert queue.become(range(3000)) == []
    assert queue.read == 5
    assert queue.become(range(1000)) == []
    assert queue.read <= 10


def changed(*rows: tuple[str, int, str, int]) -> pa.Table:
    """Rows (group, score, identity, weight)."""
    data = [pa.array([row[i] for row in rows], kind.arrow) for i, kind in enumerate((STRING, INT))]
    identities = KeyCodec((STRING,)).encode([pa.array([row[2] for row in rows])])
    return pa.table(
        [*data, pa.array([row[3] for row in rows], pa.int64()), identities],
        names=["c0", "c1", WEIGHT, ID],
    )


def emitted(work: Slots, operator: TopK, *rows: tuple[str, int, str, int]) -> list[Row]:
    """(identity, score, rank if there is one, weight)."""
    found = []
    for table in epoch(work, operator, [changed(*rows)]):
        identities = KeyCodec((STRING,)).decode(table.column(ID).combine_chunks())[0].to_pylist()
        found += list(
            zip(
                identities,
                *(table.column(name).to_pylist() for name in table.column_names[1:-1]),
                strict=True,
            )
        )
    return sorted(found, key=lambda row: (row[0], row[-1]))


def test_a_row_that_enters_pushes_the_last_one_out() -> None:
    operator, work = TopK(Arrange(_TABLE, (STRING, INT), 1, (True,)), 2), Slots(1)
    assert emitted(work, operator, ("g", 5, "a", 1), ("g", 7, "b", 1), ("g", 1, "c", 1)) == [
        ("a", 5, 1),
        ("b", 7, 1),
    ]
    assert emitted(work, operator, ("g", 6, "d", 1)) == [("a", 5, -1), ("d", 6, 1)]
    assert emitted(work, operator, ("g", 6, "d", -1), ("g", 0, "d", 1)) == [
        ("a", 5, 1),
        ("d", 6, -1),
    ]
    assert emitted(work, operator, ("g", 5, "a", -1), ("g", 6, "a", 1)) == [
        ("a", 5, -1),
        ("a", 6, 1),
    ]


def test_ties_are_broken_by_identity_in_either_direction_of_the_order() -> None:
    for descending in (False, True):
        operator, work = (
            TopK(Arrange(_TABLE, (STRING, INT), 1, (descending,)), 2, rank=True),
            Slots(1),
        )
        assert emitted(work, operator, ("g", 5, "z", 1), ("g", 5, "b", 1), ("g", 5, "m", 1)) == [
            ("b", 5, 1, 1),
            ("m", 5, 2, 1),
        ]
        assert emitted(work, operator, ("g", 5, "a", 1)) == [
            ("a", 5, 1, 1),
            ("b", 5, 1, -1),
            ("b", 5, 2, 1),
            ("m", 5, 2, -1),
        ]


def test_ranks_follow_and_only_rows_whose_rank_changes_are_emitted() -> None:
    operator, work = TopK(Arrange(_TABLE, (STRING, INT), 1, (True,)), 3, rank=True), Slots(1)
    emitted(work, operator, ("g", 9, "a", 1), ("g", 8, "b", 1), ("g", 7, "c", 1), ("g", 6, "d", 1))
    assert emitted(work, operator, ("g", 8, "b", -1)) == [
        ("b", 8, 2, -1),
        ("c", 7, 3, -1),
        ("c", 7, 2, 1),
        ("d", 6, 3, 1),
    ]
    assert emitted(work, operator, ("g", 9, "a", -1), ("g", 10, "a", 1)) == [
        ("a", 9, 1, -1),
        ("a", 10, 1, 1),
    ]
    moved = emitted(work, operator, ("g", 7, "c", -1), ("h", 1, "c", 1))
    assert moved == [("c", 7, 2, -1), ("c", 1, 1, 1), ("d", 6, 3, -1), ("d", 6, 2, 1)]


def test_an_attempt_that_runs_again_emits_the_same() -> None:
    operator, work = TopK(Arrange(_TABLE, (STRING, INT), 1, (True,)), 2, rank=True), Slots(1)
    emitted(work, operator, ("g", 9, "a", 1), ("g", 8, "b", 1), ("g", 7, "c", 1))
    once = emitted(work, operator, ("g", 9, "a", -1), ("g", 7, "d", 1))
    work.epoch -= 2
    work.begin()
    assert emitted(work, operator, ("g", 9, "a", -1), ("g", 7, "d", 1)) == once


def test_many_first_rows_come_in_batches() -> None:
    count = 130_000
    operator, work = TopK(Arrange(_TABLE, (BIGINT,), 0, (True,)), 120_000, rank=True), Slots(1)
    numbers = np.arange(count)
    rows = [pa.array(numbers), pa.array(np.ones(count, np.int64)), ids(numbers.tolist())]
    found = epoch(work, operator, [pa.table(rows, names=["c0", WEIGHT, ID])])
    assert [table.num_rows for table in found] == [100_000, 20_000]
    assert pa.concat_tables(found).column("c1").to_pylist() == list(range(1, 120_001))
    again = work.output(operator)
    assert [table.num_rows for table in again] == [100_000, 20_000]
    assert pa.concat_tables(again).column("c0").to_pylist() == list(
        range(count - 1, count - 120_001, -1)
    )


def test_it_is_written_to_the_catalog_and_read_back() -> None:
    operator = TopK(Arrange(_TABLE, (STRING, INT), 1, (True,)), 2, rank=True)
    assert graph.from_json(graph.to_json(operator)) == operator
