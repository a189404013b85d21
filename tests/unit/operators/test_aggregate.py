"""Aggregate against a plain reference that keeps all rows and computes every group again."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.operators.aggregate import Aggregate, Argument, Call
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.errors import COUNT, COUNTER
from belvedere.testing import OneSlot, changes, rows_of
from belvedere.types import BIGINT, DOUBLE, INT, STRING, decimal

_MONEY = decimal(10, 2)
_GROUPS, _ERRORS = 1, 9
_ARGUMENTS = (
    Argument((1,), (INT,), "int", 2),
    Argument((2,), (DOUBLE,), "double", 3),
    Argument((3,), (_MONEY,), "int"),
    Argument((1, 3), (INT, _MONEY), "", 4),
)
_CALLS = (
    Call("count_rows", -1, BIGINT),
    Call("count", 0, BIGINT, INT),
    Call("sum", 0, BIGINT, INT),
    Call("avg", 0, DOUBLE, INT),
    Call("min", 0, INT, INT),
    Call("max", 0, INT, INT),
    Call("count_distinct", 0, BIGINT, INT),
    Call("sum", 1, DOUBLE, DOUBLE),
    Call("max", 1, DOUBLE, DOUBLE),
    Call("avg", 2, decimal(14, 6), _MONEY),
    Call("count_distinct", 3, BIGINT, INT),
)
_AGGREGATE = Aggregate(_GROUPS, (STRING,), _ARGUMENTS, _CALLS, _ERRORS)
_FEW_CALLS = (Call("count_rows", -1, BIGINT), Call("sum", 0, BIGINT, INT), Call("min", 0, INT, INT))
_GLOBAL = Aggregate(_GROUPS, (), (Argument((0,), (INT,), "int", 2),), _FEW_CALLS, _ERRORS)
_SUM = Aggregate(
    _GROUPS,
    (STRING,),
    (Argument((1,), (BIGINT,), "int"),),
    (Call("sum", 0, BIGINT, BIGINT),),
    _ERRORS,
)

Row = tuple[Any, ...]
_ROW = st.tuples(
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0, 1, 2, 2**31 - 1]),
    st.sampled_from([None, 0.5, -0.0, 0.1, 1e300, -1e300, math.nan, math.inf, 5e-324]),
    st.sampled_from([None, Decimal("0.01"), Decimal("-5.25"), Decimal("99999999.99")]),
)


def table(rows: list[tuple[Row, int]]) -> pa.Table:
    kinds = [STRING, INT, DOUBLE, _MONEY]
    data = [pa.array([r[i] for r, _ in rows], k.arrow) for i, k in enumerate(kinds)]
    meta = [pa.array([w for _, w in rows], pa.int64()), pa.array([b""] * len(rows), pa.binary())]
    return pa.table([*data, *meta], names=[*columns(4), WEIGHT, ID])


def reference(rows: list[Row]) -> Row:
    ints, doubles, money = ([r[i] for r in rows if r[i] is not None] for i in (1, 2, 3))
    pairs = {(r[1], r[3]) for r in rows if r[1] is not None and r[3] is not None}
    special = [v for v in doubles if not math.isfinite(v)]
    double = sum(special) if special else float(sum(map(Fraction, doubles), Fraction(0)))
    greatest = math.nan if any(map(math.isnan, doubles)) else max(doubles, default=None)
    return (
        len(rows),
        len(ints),
        sum(ints) if ints else None,
        sum(ints) / len(ints) if ints else None,
        min(ints, default=None),
        max(ints, default=None),
        len(set(ints)),
        double if doubles else None,
        greatest,
        (sum(money) / len(money)).quantize(Decimal("0.000001"), "ROUND_HALF_UP") if money else None,
        len(pairs),
    )


def printed(row: Row) -> str:
    """NaN equals itself and -0.0 equals 0.0."""
    return repr(tuple(v + 0.0 if isinstance(v, float) else v for v in row))


@given(
    st.lists(
        st.lists(st.tuples(_ROW, st.booleans(), st.integers(0, 9)), min_size=1, max_size=8),
        max_size=5,
    )
)
def test_results_are_those_of_all_rows_computed_again(
    epochs: list[list[tuple[Row, bool, int]]],
) -> None:
    slot = OneSlot()
    kept: list[Row] = []
    shown: dict[Any, str] = {}
    for epoch in epochs:
        batch = []
        for row, insert, which in epoch:
            gone = row if insert or not kept else kept.pop(which % len(kept))
            if gone is row:
                kept.append(row)
            batch.append((gone, 1 if gone is row else -1))
        half = len(batch) // 2
        emitted = slot.step(_AGGREGATE, table(batch[:half]), table(batch[half:]))
        assert emitted is not None
        for row in sorted(rows_of(emitted.select([*columns(12), WEIGHT])), key=lambda r: r[-1]):
            if row[-1] < 0:
                # exactly what was shown is retracted
                assert shown.pop(row[0]) == printed(row[1:-1])
            else:
                shown[row[0]] = printed(row[1:-1])
        groups = {r[0] for r in kept}
        assert shown == {g: printed(reference([r for r in kept if r[0] == g])) for g in groups}
        assert len(slot.records(_GROUPS)) == len(groups)


def test_a_global_aggregate_has_its_row_from_the_beginning_and_for_ever() -> None:
    slot = OneSlot()
    first = slot.step_parts(_GLOBAL, [(_GLOBAL.start(),)])
    assert first is not None
    assert rows_of(first.select(["c0", "c1", "c2", WEIGHT])) == [(0, None, None, 1)]
    slot.step(_GLOBAL, changes("v int\n5\n3"))
    last = slot.step(_GLOBAL, changes("v int | w\n5 | -1\n3 | -1"))
    assert last is not None
    assert rows_of(last.select(["c0", "c1", "c2", WEIGHT])) == [(0, None, None, 1), (2, 8, 3, -1)]


def test_a_sum_beyond_bigint_is_an_error_of_its_group_and_recovers() -> None:
    slot = OneSlot()
    slot.step(_SUM, changes(f"g | v\nx | {2**63 - 1}\ny | 1"))
    over = slot.step(_SUM, changes("g | v\nx | 1"))
    assert over is not None
    assert rows_of(over.select(["c0", "c1", WEIGHT])) == [("x", 2**63 - 1, -1)]
    assert COUNT.unpack(slot.records(_ERRORS)[COUNTER])[0] == 1
    back = slot.step(_SUM, changes("g | v | w\nx | 1 | -1"))
    assert back is not None
    assert rows_of(back.select(["c0", "c1", WEIGHT])) == [("x", 2**63 - 1, 1)]
    assert COUNT.unpack(slot.records(_ERRORS)[COUNTER])[0] == 0
    assert list(slot.records(_ERRORS)) == [COUNTER]


def test_minus_zero_and_zero_are_one_group_and_so_is_every_nan() -> None:
    grouped = Aggregate(_GROUPS, (DOUBLE,), (), (Call("count_rows", -1, BIGINT),), _ERRORS)
    found = OneSlot().step(grouped, changes("d double\n0.0\n-0.0\nnan\nnan\nNULL"))
    assert found is not None
    assert sorted(found.column("c1").to_pylist()) == [1, 2, 2]


def test_an_attempt_that_runs_again_writes_and_emits_the_same() -> None:
    slot = OneSlot()
    slot.step(_SUM, changes("g | v\nx | 5"))
    once = slot.step(_SUM, changes("g | v\nx | 6"))
    records = slot.records(_GROUPS)
    slot.epoch -= 1
    again = slot.step(_SUM, changes("g | v\nx | 6"))
    assert again is not None
    assert again.equals(once)
    assert slot.records(_GROUPS) == records
