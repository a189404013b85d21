"""What the lowering accepts, refuses and names; equality with Spark is the conformance test's
business.
"""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import (
    SUPPORTED,
    Typed,
    aggregate_type,
    cast_to,
    common_type,
    connect,
    lower,
    lower_condition,
    parse,
    raise_sql,
)
from belvedere.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal

TYPES = {
    "i": INT,
    "z": INT,
    "l": BIGINT,
    "d": DOUBLE,
    "m": decimal(10, 2),
    "w": decimal(38, 20),
    "s": STRING,
    "b": BOOLEAN,
    "dt": DATE,
    "ts": TIMESTAMP,
}


def resolve(column: exp.Column) -> Typed:
    if column.name not in TYPES:
        raise SqlError(f"there is no column {column.name}")
    return Typed(f'"{column.name}"', TYPES[column.name])


def lowered(text: str) -> Typed:
    return lower(parse(text), resolve)


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = connect()
    made.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 0), (7, 2), (2147483647, 5), (NULL, 0)) AS"
        " v(i, z)"
    )
    return made


def values(connection: duckdb.DuckDBPyConnection, sql: str) -> list[object]:
    return [row[0] for row in connection.execute(f"SELECT {sql} FROM t").fetchall()]


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("rand()", "RAND"),
        ("uuid()", "UUID"),
        ("now()", "now"),
        ("current_date", "CURRENT_DATE"),
        ("current_timestamp()", "CURRENT_TIMESTAMP"),
        ("sum(i)", "the aggregate sum(i)"),
        ("row_number() OVER (ORDER BY i)", "window"),
        ("i IN (SELECT 1)", "subquery"),
        ("(SELECT 1)", "subquery"),
        ("EXISTS (SELECT 1)", "subquery"),
        ("exp(d)", "exp"),
        ("ln(d)", "ln"),
        ("power(d, 2)", "pow"),
        ("soundex(s)", "soundex"),
        ("no_such_function(i)", "no_such_function"),
        ("CAST(d AS string)", "CAST from double to string"),
        ("s || d", "CAST from double to string"),
        ("CAST(l AS timestamp)", "CAST from bigint to timestamp"),
        ("CAST(i AS float)", "type FLOAT"),
        ("s LIKE s", "LIKE with a pattern"),
        ("s ILIKE 'a'", "ilike"),
        ("s LIKE ANY ('a', 'b')", "LIKE with a pattern"),
        ("s RLIKE '(?=a)'", "regular expression"),
        ("s RLIKE '(a)\\\\1'", "regular expression"),
        ("s RLIKE 'a*+'", "regular expression"),
        ("w * w", "decimal(38,20) * decimal(38,20)"),
        ("w + m", "decimal(38,20) + decimal(10,2)"),
        ("m * 2L", "bigint literal beside a decimal"),
        ("'It' 's'", "adjacent string literals"),
        ("i = i IN (1)", "without parentheses"),
        ("s || i + 1", "without parentheses"),
        ("ts - ts", "timestamp - timestamp"),
        ("dt - dt", "date - date"),
        ("dt + interval '1-2' year to month", "INTERVAL"),
        ("trunc(dt, 'decade')", "trunc to 'decade'"),
        ("i & 3", "i & 3"),
        ("array(1)[0]", "array(1)[0]"),
        ("round(d, -1)", "round(double, -1)"),
        ("pmod(i, z)", "pmod"),
        ("date 'epoch'", "date literal"),
        ("timestamp 'now'", "timestamp literal"),
        ("coalesce(null, null)", "NULL without a type"),
        ("to_date(s, 'yyyy')", "to_date(s, 'yyyy') in this form"),
    ],
)
def test_what_is_not_on_the_list_is_refused_by_name(text: str, construct: str) -> None:
    with pytest.raises((Unsupported, SqlError)) as caught:
        lowered(text)
    assert construct.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "b + 1",
            "b = 1",
            "dt = 5",
            "NOT i",
            "i AND b",
            "CASE WHEN i THEN 1 END",
            "if(i, 1, 2)",
            "CASE WHEN null THEN 1 END",
            "s + s",
            "d div 2",
        ),
        *(
            "CAST(dt AS int)",
            "CAST(b AS date)",
            "CAST(i AS binary)",
            "greatest(i, s)",
            "greatest(i)",
            "coalesce(b, i)",
            "date_add(dt, l)",
            "dt + l",
            "ts + 1",
        ),
        *(
            "nosuch + 1",
            "i LIKE 'a\\\\b'",
            "s LIKE 'a' ESCAPE 'ab'",
            "sqrt(s)",
            "1e999",
            "make_date(1, 2)",
            "i +",
            "b IN (1)",
        ),
    ],
)
def test_wrong_types_and_names_are_errors_as_in_spark(text: str) -> None:
    with pytest.raises(SqlError):
        lowered(text)


@pytest.mark.parametrize("row", SUPPORTED, ids=lambda row: row.construct)
def test_every_documented_construct_has_examples(row: tuple[str, tuple[str, ...], str]) -> None:
    construct, examples, _ = row
    assert construct
    assert examples
    assert all(isinstance(parse(example), exp.Expr) for example in examples)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            ("1", INT),
            ("-2147483648", INT),
            ("2147483648", BIGINT),
            ("1.5", decimal(2, 1)),
            ("0.10", decimal(2, 2)),
            ("1e3", DOUBLE),
            ("'x'", STRING),
        ),
        *(
            ("i / z", DOUBLE),
            ("m / 3", decimal(14, 6)),
            ("m * i", decimal(21, 2)),
            ("i div z", BIGINT),
            ("i + l", BIGINT),
            ("ceil(d)", BIGINT),
        ),
        *(
            ("m + 1", decimal(11, 2)),
            ("length(s)", INT),
            ("dt + 1", DATE),
            ("dt + interval 1 hour", TIMESTAMP),
            ("coalesce(i, '5')", BIGINT),
        ),
    ],
)
def test_results_have_sparks_types(text: str, kind: SqlType) -> None:
    assert lowered(text).type == kind


def test_a_doubled_quote_is_a_quote() -> None:
    assert lowered("'It''s'").literal == "It's"
    assert lowered('"a""b"').literal == 'a"b'


def test_a_raising_row_is_found_and_the_others_keep_their_values(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    quotient = lowered("i / z")
    assert quotient.raises
    assert values(connection, f"TRY({{'v': {quotient.sql}}}) IS NULL") == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(duckdb.Error, match="DIVIDE_BY_ZERO"):
        values(connection, quotient.sql)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN z <> 0 THEN 10 / z ELSE 0 END", [0.0, 5.0, 2.0, 0.0]),
        ("z <> 0 AND 10 / z > 2", [False, True, False, False]),
        ("z = 0 OR 10 / z > 2", [True, True, False, True]),
        ("if(z = 0, 0, 10 div z)", [0, 5, 2, 0]),
        ("coalesce(z, 1 div z)", [0, 2, 5, 0]),
        ("0 IN (0, 1 div z)", [True, True, True, True]),
    ],
)
def test_what_is_not_needed_is_not_evaluated(
    connection: duckdb.DuckDBPyConnection, text: str, expected: list[object]
) -> None:
    assert values(connection, lowered(text).sql) == expected


@pytest.mark.parametrize("text", ["i + 1 > 5", "i + 1 = i + 1", "-(-(i + 1)) > 0"])
def test_the_optimizer_does_not_hide_an_overflow(
    connection: duckdb.DuckDBPyConnection, text: str
) -> None:
    flags = values(connection, f"TRY({{'v': {lowered(text).sql}}}) IS NULL")
    assert flags == [False, False, True, False]


@pytest.mark.parametrize(
    "kind",
    ["INTEGER", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIMESTAMPTZ", "BOOLEAN", "DECIMAL(10,2)"],
)
def test_an_error_can_be_raised_as_a_value_of_every_type(
    connection: duckdb.DuckDBPyConnection, kind: str
) -> None:
    with pytest.raises(duckdb.Error, match="DIVIDE_BY_ZERO"):
        values(connection, raise_sql("DIVIDE_BY_ZERO", "z", kind))


def test_deep_expressions_stay_short() -> None:
    text = "i"
    for _ in range(12):
        text = f"CAST({text} / z AS int)"
    assert len(lowered(text).sql) < 20_000


def test_a_condition_must_be_boolean() -> None:
    assert lower_condition(parse("i > 1"), resolve).type == BOOLEAN
    with pytest.raises(SqlError, match="boolean"):
        lower_condition(parse("i + 1"), resolve)


def test_common_types_are_sparks() -> None:
    assert common_type([INT, None, BIGINT]) == BIGINT
    assert common_type([INT, decimal(10, 2)]) == decimal(12, 2)
    assert common_type([decimal(38, 0), decimal(38, 10)]) == decimal(38, 0)
    assert common_type([DATE, TIMESTAMP]) == TIMESTAMP
    assert common_type([INT, STRING]) == BIGINT
    with pytest.raises(SqlError):
        common_type([BOOLEAN, INT])


@pytest.mark.parametrize(
    ("function", "argument", "result"),
    [
        *(
            ("count", None, BIGINT),
            ("count", STRING, BIGINT),
            ("sum", INT, BIGINT),
            ("sum", BIGINT, BIGINT),
            ("sum", DOUBLE, DOUBLE),
            ("avg", INT, DOUBLE),
        ),
        *(
            ("sum", decimal(10, 2), decimal(20, 2)),
            ("sum", decimal(35, 2), decimal(38, 2)),
            ("avg", decimal(10, 2), decimal(14, 6)),
        ),
        *(("avg", decimal(38, 10), decimal(38, 14)), ("min", STRING, STRING), ("MAX", DATE, DATE)),
    ],
)
def test_aggregates_have_sparks_types(
    function: str, argument: SqlType | None, result: SqlType
) -> None:
    assert aggregate_type(function, argument) == result


def test_aggregates_refuse_what_spark_refuses() -> None:
    with pytest.raises(SqlError):
        aggregate_type("sum", STRING)
    with pytest.raises(Unsupported):
        aggregate_type("median", INT)


def test_an_untyped_null_takes_the_type_asked_for(connection: duckdb.DuckDBPyConnection) -> None:
    null = cast_to(lowered("NULL"), decimal(5, 1))
    assert null.type == decimal(5, 1)
    assert values(connection, null.sql)[0] is None
