"""Parameters: a statement with values answers as the statement with the values written as literals,
and what does not fit is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import belvedere
from belvedere.database import Database
from belvedere.errors import SqlError
from belvedere.types import DATE, STRING, TIMESTAMP, SqlType
from tests.unit.counting import counted
from tests.unit.encoding.values import KINDS, bits, values


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with belvedere.open("memory:") as opened:
        columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(KINDS))
        opened.sql(f"CREATE TABLE every (id INT, {columns}, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id))")
        opened.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        yield opened


def written(value: Any, kind: SqlType) -> str:
    """A value as a literal of SQL, by hand."""
    if value is None:
        return "NULL"
    if kind == STRING:
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if kind in (DATE, TIMESTAMP):
        return f"{kind} '{value}'"
    if isinstance(value, Decimal):
        digits = f"{value:f}"
        return digits if "." in digits else f"{digits}.0"
    return str(value)


MANY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@MANY
@given(row=st.tuples(*(values(kind) for kind in KINDS)))
def test_values_of_all_types_come_back_as_they_were_given(
    db: Database, row: tuple[Any, ...]
) -> None:
    places = ", ".join("?" for _ in row)
    db.sql(f"INSERT INTO every VALUES (0, {places})", row)
    (found,) = db.sql("SELECT * FROM every WHERE id = ?", [0]).to_pylist()
    assert [bits(found[f"c{i}"]) for i in range(len(row))] == [bits(value) for value in row]
    names = {f"p{i}": value for i, value in enumerate(row)}
    sets = ", ".join(f"c{i} = :p{i}" for i in range(len(row)))
    db.sql(f"UPDATE every SET {sets} WHERE id = :id", {**names, "id": 0})
    (again,) = db.sql("SELECT * FROM every WHERE id = 0").to_pylist()
    assert list(map(bits, again.values())) == list(map(bits, found.values()))


@MANY
@given(data=st.data())
def test_a_statement_with_values_answers_as_with_literals(
    db: Database, data: st.DataObject
) -> None:
    """Also what type the answer has, which a column of another type would hide."""
    kind = data.draw(st.sampled_from(KINDS))
    value, other = data.draw(values(kind)), data.draw(values(kind))
    forms = ["{0} AS x", "{0} = {1} AS x", "coalesce({0}, {1}) AS x", "{0} IN ({1}, {0}) AS x"]
    form = data.draw(st.sampled_from(forms))
    literals = [written(value, kind), written(other, kind)]
    used = sorted({0, 1} if "{1}" in form else {0})
    named = db_answer(
        db, f"SELECT {form.format(':a', ':b')}", {"ab"[i]: (value, other)[i] for i in used}
    )
    assert named == db_answer(db, f"SELECT {form.format(*literals)}", None)
    if form.count("{0}") == 1:
        assert named == db_answer(
            db, f"SELECT {form.format('?', '?')}", [(value, other)[i] for i in used]
        )


def db_answer(db: Database, statement: str, params: Any) -> Any:
    try:
        table = db.sql(statement, params).to_arrow()
    except SqlError as error:
        return type(error)
    # a decimal without a point has no literal of its own, so its scale may differ
    kind = str(table.schema.field(0).type).split("(")[0]
    return kind, [bits(value) for value in table.column(0).to_pylist()]


def test_values_are_bound_in_the_order_of_the_text(db: Database) -> None:
    statement = "SELECT ? AS a, s, ? AS b FROM t WHERE id > ? AND s <> ? ORDER BY id + ? LIMIT ?"
    assert db.sql(statement, ["x", "y", 1, "c", 0, 5]).to_pylist() == [
        {"a": "x", "s": "b", "b": "y"}
    ]
    assert db.sql(
        "SELECT :n AS a FROM t WHERE id = :n UNION ALL SELECT :m", {"n": 2, "m": 7}
    ).to_pylist() == [{"a": 2}, {"a": 7}]


def test_a_key_is_found_by_a_parameter(db: Database) -> None:
    for key in (2, np.int64(2), "2", Decimal("2.0"), 2.0):
        with counted(db) as counter:
            assert db.sql("SELECT s FROM t WHERE id = ?", [key]).to_pylist() == [{"s": "b"}]
        assert counter.rows == 1


def test_kinds_of_values_that_are_like_pythons_own(db: Database) -> None:
    east = timezone(timedelta(hours=2))
    for value, meant in [
        (np.int32(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (bytearray(b"a"), b"a"),
        (datetime(2024, 1, 1, 2, tzinfo=east), datetime(2024, 1, 1, tzinfo=UTC)),
        (datetime(2024, 1, 1, 0, 0, 0, 1), datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (2**63, Decimal(2**63)),
        (Decimal("1E+3"), Decimal(1000)),
    ]:
        assert db.sql("SELECT ? AS x", [value]).to_pylist() == [{"x": meant}]


def test_explain_shows_the_plan_with_the_value(db: Database) -> None:
    explained = str(db.sql("EXPLAIN SELECT id, s FROM t WHERE s = ?", ["it's"]))
    assert explained == str(db.sql("EXPLAIN SELECT id, s FROM t WHERE s = 'it\\'s'"))


ONE = "the statement has 1 parameter(s), and"
NAME = "stands where a name is expected: only values can be parameters"
STANDS = "write the value itself. SELECT, INSERT, UPDATE and DELETE take parameters"


@pytest.mark.parametrize(
    ("statement", "given", "says"),
    [
        ("SELECT ?", None, "the statement has parameters (?): give their values, as in [value]"),
        ("SELECT :a, :b, :a", None, 'parameters (:a, :b): give their values, as in {"a": value}'),
        ("SELECT ?", [], f"{ONE} 0 value(s) are given"),
        ("SELECT ?", [1, 2], f"{ONE} 2 value(s) are given"),
        ("SELECT 1", [1], "the statement has 0 parameter(s), and 1 value(s) are given"),
        ("SELECT ?", {"a": 1}, "are written ?, so their values are a list, not a dict"),
        ("SELECT :a", [1], "have names (:a), so their values are a dict"),
        ("SELECT :a", {}, "the parameter :a has no value"),
        ("SELECT :a", {"a": 1, "b": 2}, "there is no parameter :b: the statement has :a"),
        ("SELECT :a", {"A": 1}, "there is no parameter :A: the statement has :a"),
        ("SELECT :a, ?", [1], "both ? and :a: write all parameters one way"),
        ("SELECT ?", [object()], "? number 1 is of the type object, which SQL does not know"),
        ("SELECT :a", {"a": [1]}, ":a is of the type list, which SQL does not know"),
        ("SELECT ?", "abc", "not a str: for one value write [value]"),
        ("SELECT ?", 7, "not a int: for one value write [value]"),
        ("SELECT ?", ["\ud800"], "? number 1 is text that is not Unicode"),
        ("SELECT ?", [10**38], "a DECIMAL has at most 38 digits"),
        ("SELECT ?", [Decimal("NaN")], "is the decimal NaN, which SQL has not: use a float"),
        (
            "SELECT ?",
            [datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))],
            "not within the years 1 to 9999",
        ),
        ("SELECT * FROM ?", ["t"], f"? {NAME}"),
        ("SELECT id AS :a FROM t", {"a": "x"}, f":a {NAME}"),
        ("INSERT INTO t (?) VALUES (1)", ["id"], f"? {NAME}"),
        ("UPDATE t SET ? = 'x'", ["s"], f"? {NAME}"),
        ("SELECT CAST(1 AS DECIMAL(?, 0))", [5], f"? {NAME}"),
        ("SELECT id FROM t ORDER BY ?", [1], "? cannot stand alone in ORDER BY or GROUP BY"),
        ("SELECT id FROM t ORDER BY (:a) DESC", {"a": 1}, ":a cannot stand alone in ORDER BY"),
        ("SELECT 1 AS x FROM t GROUP BY ?", [1], "? cannot stand alone in ORDER BY or GROUP BY"),
        ("SELECT * FROM t LIMIT ?", [-1], "write a whole number"),
        ("SELECT * FROM t LIMIT ?", ["1"], "write a whole number"),
        (
            "CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE id = ?",
            [1],
            f"a parameter cannot stand in CREATE: {STANDS}",
        ),
        ("CREATE TABLE w (id INT, PRIMARY KEY (id))", [1], "0 parameter(s), and 1 value(s)"),
        ("DROP TABLE ?", ["t"], f"a parameter cannot stand in DROP: {STANDS}"),
        ("DESCRIBE ?", ["t"], f"a parameter cannot stand in DESCRIBE: {STANDS}"),
        ("SHOW TABLES", [1], "SHOW takes no parameters"),
        (
            "EXPLAIN CREATE MATERIALIZED VIEW w AS SELECT id FROM t WHERE id = ?",
            [1],
            f"a parameter cannot stand in CREATE: {STANDS}",
        ),
        ("EXPLAIN SELECT id FROM t WHERE id = ?", None, "the statement has parameters (?)"),
        ("EXPLAIN DELETE FROM t WHERE id = ?", [1], "EXPLAIN takes the name of a view"),
        ("SELECT 1; SELECT ?", [1], "parameters are for one statement, and this text has 2"),
    ],
)
def test_what_does_not_fit_is_refused(db: Database, statement: str, given: Any, says: str) -> None:
    before = db.state(), db.sql("SELECT * FROM t").to_pylist()
    with pytest.raises(SqlError) as error:
        db.sql(statement, given).to_arrow()
    assert says in str(error.value)
    assert (db.state(), db.sql("SELECT * FROM t").to_pylist()) == before


@pytest.mark.spark
def test_spark_gets_the_same_values() -> None:
    row: list[Any] = [
        None,
        True,
        7,
        3_000_000_000,
        1.5,
        math.inf,
        "it's \\ ?",
        b"\x00a",
        Decimal("12.50"),
    ]
    row += [date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, tzinfo=UTC)]
    with belvedere.open("memory:") as db:
        columns = ", ".join(
            f"{'?' if value is not None else 'CAST(? AS INT)'} AS x{i}"
            for i, value in enumerate(row)
        )
        answer = db.sql(f"SELECT {columns}", row)
        found = answer.to_spark().toArrow().to_pylist()
        assert found == answer.to_pylist()
        named = db.sql("SELECT :a AS a, :b AS b", {"a": 1, "b": "x"})
        assert named.to_spark().toArrow().to_pylist() == named.to_pylist()
