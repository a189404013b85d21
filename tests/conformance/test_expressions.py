"""Every example of the allow-list, and random compositions, in Spark and in DuckDB: same types,
values and raising rows.

Spark has no TRY, but try_to_binary swallows any error below it: that tells the raising rows of many
expressions in one job.
"""

from __future__ import annotations

import os
import random
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import SUPPORTED, Typed, connect, lower, parse
from belvedere.expressions.calls import CALLS, FOREIGN
from belvedere.types import parse_type
from tests.conformance.expression_edges import COLUMNS, KINDS, ROWS, edge_table

pytestmark = pytest.mark.spark


def resolve(column: exp.Column) -> Typed:
    return Typed(f'"{column.name}"', parse_type(COLUMNS[column.name]))


@dataclass(frozen=True)
class Outcome:
    """What one engine makes of an expression: type, and per row a comparable value or the word
    raises.
    """

    type: str
    values: list[Any]


def comparable(column: pa.ChunkedArray, raising: set[int]) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return [
        "raises" if row in raising else _bits(value) for row, value in enumerate(column.to_pylist())
    ]


def _bits(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "NaN" if value != value else (value, struct.pack(">d", value).hex())


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("warehouse")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    mine = SparkContext._active_spark_context is None
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
    )
    session = (
        builder.config("spark.driver.memory", "1g")
        .config("spark.sql.warehouse.dir", str(folder))
        .getOrCreate()
    )
    settings = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        # Shared parts would be evaluated outside of the try.
        "spark.sql.subexpressionElimination.enabled": "false",
        # Interpreted: compiling hundreds of expressions for 62 rows would take most of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    session.createDataFrame(edge_table()).coalesce(1).createOrReplaceTempView("edges")
    yield session
    for name, old in before.items():
        session.conf.unset(name) if old is None else session.conf.set(name, old)
    if mine:
        session.stop()


def without(rows: set[int], sql: str) -> str:
    return (
        f"CASE WHEN id IN ({', '.join(map(str, sorted(rows)))}) THEN NULL ELSE {sql} END"
        if rows
        else sql
    )


def raising_rows(table: pa.Table, index: int) -> set[int]:
    return {row for row, flag in enumerate(table.column(index).to_pylist()) if flag}


def in_spark(session: SparkSession, expressions: Sequence[str]) -> list[Outcome]:
    def run(columns: list[str]) -> Any:
        return session.sql(
            f"SELECT {', '.join(f'{c} AS c{n}' for n, c in enumerate(columns))} FROM edges ORDER"
            " BY id"
        )

    flags = run(
        [
            f"(try_to_binary(coalesce(CAST(({e}) AS string), 'x'), 'utf-8') IS NULL)"
            for e in expressions
        ]
    ).toArrow()
    raising = [raising_rows(flags, n) for n in range(len(expressions))]
    frame = run([without(rows, f"({e})") for rows, e in zip(raising, expressions, strict=True)])
    values, kinds = (
        frame.toArrow(),
        [field.dataType.simpleString() for field in frame.schema.fields],
    )
    return [
        Outcome(kinds[n], comparable(values.column(n), raising[n])) for n in range(len(expressions))
    ]


def in_duckdb(expressions: Sequence[Typed]) -> list[Outcome]:
    connection, table = connect(), edge_table()
    connection.register("arrow_edges", table)
    connection.execute("CREATE TABLE edges AS SELECT * FROM arrow_edges")

    def run(sql: str) -> pa.Table:
        return connection.sql(f"SELECT {sql} AS c FROM edges ORDER BY id").to_arrow_table()

    def outcome(typed: Typed) -> Outcome:
        try:
            return evaluated(typed)
        except duckdb.Error as error:
            return Outcome(str(error), ["?"] * ROWS)

    def evaluated(typed: Typed) -> Outcome:
        assert typed.type is not None
        raising = (
            raising_rows(run(f"TRY({{'v': {typed.sql}}}) IS NULL"), 0) if typed.raises else set()
        )
        column = run(without(raising, typed.sql)).column(0)
        assert column.type == typed.type.arrow, f"{typed.sql} is {column.type} and not {typed.type}"
        return Outcome(str(typed.type), comparable(column, raising))

    return [outcome(typed) for typed in expressions]


def differences(session: SparkSession, expressions: Sequence[str]) -> list[str]:
    lowered = [lower(parse(e), resolve) for e in expressions]
    found = []
    for text, typed, expected, actual in zip(
        expressions, lowered, in_spark(session, expressions), in_duckdb(lowered), strict=True
    ):
        if expected.type != actual.type:
            found.append(f"{text:60} spark {expected.type}, duckdb {actual.type}")
        rows = [
            n for n, (a, b) in enumerate(zip(expected.values, actual.values, strict=True)) if a != b
        ]
        if rows:
            names = sorted({c.name for c in parse(text).find_all(exp.Column)})
            data = edge_table().slice(rows[0], 1).to_pylist()[0]
            inputs = ", ".join(f"{name}={data[name]!r}" for name in names)
            values = f"spark {expected.values[rows[0]]!r}, duckdb {actual.values[rows[0]]!r}"
            found.append(f"{text:60} {len(rows)} rows; {inputs}: {values}\n      {typed.sql}")
    return found


def test_every_example_means_the_same_in_spark_and_duckdb(spark: SparkSession) -> None:
    examples = [example for row in SUPPORTED for example in row.examples]
    assert len(examples) >= 250
    found = differences(spark, examples)
    assert not found, f"{len(found)} of {len(examples)} differ:\n" + "\n".join(found)


SPELLINGS = """
trunc(dt, 'YYYY'); trunc(ts, 'yy'); trunc(dt, 'Quarter'); trunc(r, 'MON'); date_trunc('YYYY', ts); date_trunc('yy', dt)
date_trunc('MM', ts); date_trunc('mon', ts); date_trunc("DD", ts); date_trunc('quarter', ts); date_trunc('MINUTE', r)
date_trunc('microsecond', ts); date_sub(dt, i % 100); date_sub(r, 1); dateadd(dt, 3); datediff(r, dt); unix_timestamp(ts, 'yyyy')
to_unix_timestamp(dt, 'yyyy'); to_timestamp(r); to_timestamp(dt); position('l', s, 3); position(t IN s); locate('', s, 3); instr(i, '7')
substr(s FROM 2 FOR 3); substring(s, 1, -1); trim('l' FROM s); trim(LEADING 'H' FROM s); trim(s, 'H'); ltrim('H', s); rtrim('o', s)
btrim(s, 'lo'); and(b, i > 1); or(b, i > 1); like(s, 'H%'); like(s, 'a/%%', '/'); regexp_like(s, 'l+'); div(i + 1, 3); mod(i + 1, 3)
dt + interval '1 month'; dt + interval '2 MONTHS'; dt - interval '-1' day; ts + interval 1 microseconds; CAST(i AS dec(5,2)); q::int
CAST(s AS varchar(3)); CAST(ts AS timestamp_ltz); int(q); timestamp(r); string(dt); i <=> j = b; i < j = b; not b = b; 1 + i || s
'\\u0041'; '\\x41'; '\\101'; 'a\\qb'; "a""b"; .5; 5.; 1.e2; 1.50BD; x'1'; - 2147483648; -(2147483648); try_cast('0x1' AS double)
"""
NOT_SQL = """
count(); split_part(s, 'a'); substring(s); concat(s,); if(b, 1); boolean(s, t); last_day(dt, 'w'); datediff(dt); sha2(s); max(i, j)
charindex('l', s); iif(b, 1, 2); starts_with(s, 'H'); strpos(s, 'l'); timestamp_trunc(ts, MONTH); to_hex(i); is_nan(d); convert(i, string)
CAST(i AS text); CAST(i AS bool); CAST(i AS varchar); CAST(i AS char); CAST(d AS double precision); CAST(ts AS datetime); i::text
dt + interval 1 d; dt + interval '1 d'; ts + interval 1 m; dt + interval (1) day; extract('year' FROM dt); extract(dayofweekiso FROM dt)
trim(BOTH s); 0x1F; i IS NULL = b; 1E- + i; i > +
"""


def listed(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split("; ")]


def test_unusual_spellings_mean_in_spark_what_they_mean_here(spark: SparkSession) -> None:
    found = differences(spark, listed(SPELLINGS))
    assert not found, "\n".join(found)


def test_what_spark_does_not_understand_is_refused(spark: SparkSession) -> None:
    for text in listed(NOT_SQL):
        assert not accepted(text), text
        with pytest.raises(PySparkException):
            spark.sql(f"SELECT {text} AS c FROM edges")


def test_every_function_that_is_understood_is_one_of_sparks(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("SHOW ALL FUNCTIONS").collect()}
    # these three are grammar
    assert CALLS.keys() - known <= {"extract", "timestampadd", "timestampdiff"}
    assert not FOREIGN & known


UNITS = (
    "YEAR YYYY YY Y QUARTER Q MONTH MM MON M WEEK W DAY DD D HOUR H MINUTE SECOND S MILLISECOND MS"
    " MICROSECOND US NS DECADE"
)


@pytest.mark.parametrize(
    "call",
    ["trunc(date '2024-05-17', '{}')", "date_trunc('{}', timestamp '2024-05-17 13:14:15.123456')"],
)
def test_the_units_that_spark_does_not_know_are_refused(spark: SparkSession, call: str) -> None:
    calls = [call.format(unit) for unit in UNITS.split()]
    answers = spark.sql(f"SELECT {', '.join(calls)}").collect()[0]
    assert [accepted(text) for text in calls] == [answer is not None for answer in answers]


def composed(chance: random.Random, kind: str, depth: int) -> str:
    leaves, shapes = KINDS[kind]
    if depth == 0 or not shapes or chance.random() < 0.1:
        return chance.choice(leaves)
    shape = chance.choice(shapes)
    for name in KINDS:
        while f"{{{name}}}" in shape:
            shape = shape.replace(f"{{{name}}}", composed(chance, name, depth - 1), 1)
    return shape


def accepted(text: str) -> bool:
    try:
        lower(parse(text), resolve)
    except SqlError:
        return False
    return True


def test_random_compositions_mean_the_same_in_spark_and_duckdb(spark: SparkSession) -> None:
    chance = random.Random(int(os.environ.get("BELVEDERE_SEED", "1")))
    expressions: list[str] = []
    while len(expressions) < 240:
        text = composed(
            chance,
            chance.choice("ildmsb" if chance.random() < 0.8 else ["dt", "ts"]),
            chance.choice((2, 2, 3)),
        )
        if text not in expressions and len(text) < 400 and accepted(text):
            expressions.append(text)
    found = differences(spark, expressions)
    assert not found, f"{len(found)} of {len(expressions)} differ:\n" + "\n".join(found)
