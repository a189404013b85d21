"""Select: conditions, computed columns, and rows that raise."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.select import SHORT_KEY, Expression, Select, columns_read
from belvedere.sql.dialect import parse
from belvedere.sql.planner import condition_of, expression_of
from belvedere.sql.relation import scope_of
from belvedere.testing import changes, rows_of
from belvedere.types import INT, STRING, Column

_SCOPE = scope_of("t", [Column("a", INT), Column("s", STRING)], lambda i: f'"c{i}"')
_ROWS = """
    id | a int | s string | w
    r1 | 1     | x        | +1
    r2 | 0     | NULL     | -1
    r3 | NULL  | zz       | +1
    r4 | 5     | 7        | +1
"""


def select(
    *outputs: str, where: str | None = None, keys: tuple[tuple[int, ...], ...] = ()
) -> Select:
    made = tuple(expression_of(parse(f"SELECT {text}").expressions[0], _SCOPE) for text in outputs)
    return Select(
        condition_of(parse(f"SELECT {where}").expressions[0], _SCOPE) if where else None,
        made,
        1,
        keys,
    )


def failed(errors: pa.Table | None) -> list[tuple[object, ...]]:
    return [] if errors is None else rows_of(errors)


def test_rows_that_do_not_satisfy_the_condition_go_and_null_is_not_true() -> None:
    found, errors = select("s", where="a >= 1").apply(changes(_ROWS))
    assert rows_of(found) == [("7", 1, b"r4"), ("x", 1, b"r1")]
    assert errors is None


def test_a_column_that_is_passed_on_is_not_copied() -> None:
    rows = changes(_ROWS)
    found, _ = select("a").apply(rows)
    assert (
        found.column("c0").chunk(0).buffers()[1].address
        == rows.column("c0").chunk(0).buffers()[1].address
    )


def test_weights_and_identities_stay_with_their_rows() -> None:
    found, _ = select("a + 1").apply(changes(_ROWS))
    assert rows_of(found) == [(1, -1, b"r2"), (2, 1, b"r1"), (6, 1, b"r4"), (None, 1, b"r3")]


def test_a_row_that_raises_becomes_an_error_with_its_weight_and_the_number_of_the_expression() -> (
    None
):
    found, errors = select("a", "10 / a").apply(changes(_ROWS))
    assert rows_of(found) == [(1, 10.0, 1, b"r1"), (5, 2.0, 1, b"r4"), (None, None, 1, b"r3")]
    assert failed(errors) == [(b"r2", -1, 1)]


def test_what_two_expressions_share_may_raise() -> None:
    found, errors = select("10 / a", "10 / a + 1").apply(changes(_ROWS))
    assert rows_of(found) == [(10.0, 11.0, 1, b"r1"), (2.0, 3.0, 1, b"r4"), (None, None, 1, b"r3")]
    assert failed(errors) == [(b"r2", -1, 0)]


def test_the_first_expression_that_raises_is_named() -> None:
    operator = select("10 / a", "CAST(s AS int)", where="a IS NULL OR a < 5")
    _, errors = operator.apply(changes(_ROWS))
    assert failed(errors) == [(b"r1", 1, 2), (b"r2", -1, 1), (b"r3", 1, 2)]
    assert operator.describe(1) == "10 / a"


def test_a_condition_that_raises_comes_before_the_outputs() -> None:
    found, errors = select("CAST(s AS int)", where="10 / a > 1").apply(changes(_ROWS))
    assert rows_of(found) == [(7, 1, b"r4")]
    assert failed(errors) == [(b"r1", 1, 1), (b"r2", -1, 0)]


_RAISING = (
    "1 / 0 > 1",
    "(1 % 0) IN (0, 1)",
    "(2147483647 + 1) BETWEEN 0 AND 1",
    "CAST('x' AS boolean)",
    "CASE WHEN CAST('x' AS boolean) THEN true END",
)


@pytest.mark.parametrize("constant", _RAISING)
def test_a_constant_that_raises_does_so_for_each_row_that_reaches_it(constant: str) -> None:
    found, errors = select("a", where=f"a = 1 OR {constant}").apply(changes(_ROWS))
    assert rows_of(found) == [(1, 1, b"r1")]
    assert [row[0] for row in failed(errors)] == [b"r2", b"r3", b"r4"]


@pytest.mark.parametrize(
    "condition",
    [
        "a + 1 > 0",
        "a - -1 > 0",
        "-a < 0 AND a + 1 > 0",
        "CASE WHEN a + 1 > 5 THEN true ELSE true END",
    ],
)
def test_an_overflow_is_not_optimised_away(condition: str) -> None:
    found, errors = select("a", where=condition).apply(
        changes(f"id | a int | s string\nr1 | {2**31 - 1} | x\nr2 | 3 | x")
    )
    assert rows_of(found) == [(3, 1, b"r2")]
    assert failed(errors) == [(b"r1", 1, 0)]


def test_whether_a_row_raises_does_not_depend_on_its_neighbours() -> None:
    operator = select("a", where="a + 1 > 0 OR 10 / a > 1")
    rows = changes(f"id | a int | s string\nr1 | {2**31 - 1} | x\nr2 | 0 | x\nr3 | -1 | x")
    together = failed(operator.apply(rows)[1])
    assert together == [
        row for i in range(3) for row in failed(operator.apply(rows.slice(i, 1))[1])
    ]


def test_a_key_that_is_too_long_is_an_error_of_its_row() -> None:
    rows = changes(
        f"id | a int | s string\nr1 | 1 | {'x' * (SHORT_KEY - 2)}\nr2 | 2 | {'x' * (SHORT_KEY - 1)}"
    )
    operator = select("s", keys=((0,),))
    found, errors = operator.apply(rows)
    assert found.column(ID).to_pylist() == [b"r1"]
    assert failed(errors) == [(b"r2", 1, 1)]
    assert "longer" in operator.describe(1)


def test_how_long_a_key_may_be_is_the_stores_to_say() -> None:
    text = "x" * (SHORT_KEY - 1)
    rows = changes(f"id | a int | s string\nr1 | 1 | {text}\nr2 | 2 | {text}x")
    operator = replace(select("s", keys=((0,),)), longest_key=SHORT_KEY + 1)
    found, errors = operator.apply(rows)
    assert found.column(ID).to_pylist() == [b"r1"]
    assert failed(errors) == [(b"r2", 1, 1)]
    assert operator.describe(1) == f"the key of this row is longer than {SHORT_KEY + 1} bytes"


def test_no_rows_give_no_rows_of_the_right_types() -> None:
    found, errors = select("a + 1", where="a > 0").apply(changes(_ROWS).slice(0, 0))
    assert (found.num_rows, found.schema.field("c0").type, errors) == (0, pa.int32(), None)
    assert found.column_names[-2:] == [WEIGHT, ID]


def test_a_fault_of_the_engine_is_not_taken_for_an_error_of_the_rows() -> None:
    with pytest.raises(duckdb.Error):
        Select(None, (Expression("no_such_function(c0)", INT, "?"),)).apply(changes(_ROWS))


def test_the_columns_that_an_expression_reads_are_those_outside_of_its_strings() -> None:
    text = """"c3" + c10 > length('c7 it''s c8') AND "c3" IS NOT NULL AND abc12 = 'c1'"""
    assert columns_read(Expression(text, INT, "")) == (3, 10)
    assert columns_read(Expression("'c1'", STRING, "")) == ()
