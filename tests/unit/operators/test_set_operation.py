"""SetOperation against DuckDB's INTERSECT and EXCEPT of all rows, after every epoch."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pyarrow as pa
import pytest

from belvedere import graph
from belvedere.encoding import KeyCodec
from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.set_operation import SetKind, SetOperation, set_kind
from belvedere.testing import changes, rows_of
from belvedere.types import BIGINT, DOUBLE, INT, STRING
from tests.unit.operators.slots import Accumulated, Relation, Row, Slots, added, bag, query

_TABLE = 5
_TYPES = (STRING, INT, DOUBLE)
_KINDS: tuple[SetKind, ...] = ("intersect", "except")
_FORMS = list(itertools.product(_KINDS, [False, True]))


def name_of(form: tuple[SetKind, bool]) -> str:
    return form[0] + " all" * form[1]


def random_row(rng: random.Random) -> Row:
    """Few different rows, so that both sides have many in common, and many more than once."""
    return (
        rng.choice([None, "", "a", "a\0", "a\0b"]),
        rng.choice([None, 1]),
        rng.choice([None, 0.0, -0.0, math.nan]),
    )


def sql(operator: SetOperation) -> str:
    rows = "SELECT c0, c1, CASE WHEN c2 = 0 THEN 0.0 ELSE c2 END AS c2 FROM"
    return f"{rows} l {operator.kind} {'ALL' if operator.all else ''} {rows} r"


@pytest.mark.parametrize("form", _FORMS, ids=name_of)
@pytest.mark.parametrize("slots", [1, 3])
def test_the_result_is_that_of_all_rows_after_every_epoch(
    form: tuple[SetKind, bool], slots: int
) -> None:
    operator = SetOperation(_TABLE, _TYPES, *form)
    for seed in range(25):
        rng = random.Random(seed)
        sides = [
            Relation(rng, _TYPES, random_row, size)
            for size in (rng.choice([10, 60]), rng.choice([10, 60]))
        ]
        work, result = Slots(slots), Accumulated()
        for _ in range(6):
            result.apply(
                work.step(operator, *(side.change(rng.choice([0, 2, 30])) for side in sides))
            )
            work.commit()
            assert bag(list(result.rows.values())) == bag(
                query(sql(operator), l=sides[0].table(), r=sides[1].table())
            )
            check_identities(operator, result)
            cuts = sorted({KeyCodec(_TYPES).encode_one(random_row(rng)) for _ in range(3)})
            assert (
                added(work.output(operator)) == added(work.output(operator, *cuts)) == result.rows
            )


def check_identities(operator: SetOperation, result: Accumulated) -> None:
    """The row's key; of copies, numbered from 1 without a gap."""
    numbers: dict[bytes, list[int]] = {}
    for identity in sorted(result.rows):
        key, number = (
            (identity[:-8], identity[-8:]) if operator.all else (identity, bytes([0] * 7 + [1]))
        )
        numbers.setdefault(key, []).append(int.from_bytes(number, "big"))
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


@pytest.mark.parametrize("form", _FORMS, ids=name_of)
def test_nothing_is_kept_of_rows_that_are_gone_from_both_sides(form: tuple[SetKind, bool]) -> None:
    operator, work, result = SetOperation(_TABLE, _TYPES, *form), Slots(2), Accumulated()
    rng = random.Random(1)
    sides = [Relation(rng, _TYPES, random_row, 40) for _ in range(2)]
    result.apply(work.step(operator, *(side.change(40) for side in sides)))
    work.commit()
    assert result.rows
    result.apply(work.step(operator, *(side.become({}) for side in sides)))
    work.commit()
    assert result.rows == {}
    assert sum(work.state.count(slot, _TABLE)[0] for slot in range(2)) == 0


def test_a_row_moves_only_when_its_number_of_copies_does() -> None:
    operator, work = SetOperation(_TABLE, (STRING,), "except", True), Slots(1)
    for left, right, expected in (
        (
            "id | v\n1 | x\n2 | x\n3 | x\n4 | y",
            "id | v\n1 | x",
            [("x", 1, 1), ("x", 2, 1), ("y", 1, 1)],
        ),
        ("id | v\n5 | x", "id | v\n2 | x", []),
        ("", "id | v\n3 | x\n4 | x\n5 | x", [("x", 1, -1), ("x", 2, -1)]),
        ("id | v | w\n4 | y | -1\n4 | y | +1", "", []),
        ("", "id | v | w\n5 | x | -1\n4 | x | -1", [("x", 1, 1)]),
    ):
        assert shown(work, operator, left, right) == expected


def shown(work: Slots, operator: SetOperation, *ports: str) -> list[tuple[Any, ...]]:
    found = work.step(operator, *([changes(text)] if text else [] for text in ports))
    work.commit()
    rows = [row for table in found for row in rows_of(table.select(["c0", ID, WEIGHT]))]
    return sorted(
        (value, int.from_bytes(identity[-8:], "big"), weight) for value, identity, weight in rows
    )


def test_distinct_rows_come_and_go_with_the_other_side() -> None:
    key = KeyCodec((STRING,)).encode_one(["x"])
    for kind, expected in (
        ("except", [[1], [-1], [], [1], [-1]]),
        ("intersect", [[], [1], [], [-1], []]),
    ):
        operator, work = SetOperation(_TABLE, (STRING,), set_kind(kind), False), Slots(1)
        found = []
        for left, right in (
            ("1 | x", ""),
            ("", "1 | x"),
            ("2 | x", "2 | x"),
            ("", "1 | x | -\n2 | x | -"),
            ("1 | x | -\n2 | x | -", ""),
        ):
            ports = [[weighted(text)] if text else [] for text in (left, right)]
            tables = work.step(operator, *ports)
            work.commit()
            assert all(table.column(ID).to_pylist() == [key] for table in tables)
            found.append(
                [weight for table in tables for weight in table.column(WEIGHT).to_pylist()]
            )
        assert found == expected


def weighted(text: str) -> pa.Table:
    lines = [line if line.endswith("-") else f"{line} | +" for line in text.splitlines()]
    return changes("\n".join(["id | v | w", *(f"{line}1" for line in lines)]))


def test_the_copies_of_one_row_come_in_batches() -> None:
    operator, work, count = (
        SetOperation(_TABLE, (BIGINT, STRING), "except", True),
        Slots(1),
        250_000,
    )
    row = [pa.array([7] * count, pa.int64()), pa.array(["x"] * count)]
    many = pa.table(
        [*row, pa.array([1] * count, pa.int64()), pa.array([b""] * count, pa.binary())],
        names=["c0", "c1", WEIGHT, ID],
    )
    found = work.step(operator, [many], [])
    work.commit()
    assert [table.num_rows for table in found] == [100_000, 100_000, 50_000]
    numbers = [
        int.from_bytes(identity[-8:], "big")
        for table in found
        for identity in table.column(ID).to_pylist()
    ]
    assert numbers == list(range(1, count + 1))
    assert [table.num_rows for table in work.output(operator)] == [100_000, 100_000, 50_000]


def test_an_attempt_that_runs_again_emits_the_same() -> None:
    operator, work = SetOperation(_TABLE, (STRING,), "intersect", False), Slots(1)
    ports = [[changes("id | v\n1 | x\n2 | y")], [changes("id | v\n1 | y\n2 | z")]]
    once = work.step(operator, *ports)
    work.commit()
    work.epoch -= 2
    work.begin()
    assert pa.concat_tables(work.step(operator, *ports)).equals(pa.concat_tables(once))
    work.commit()


def test_it_is_written_to_the_catalog_and_read_back() -> None:
    operator = SetOperation(_TABLE, (STRING, INT), "except", True)
    assert graph.from_json(graph.to_json(operator)) == operator
