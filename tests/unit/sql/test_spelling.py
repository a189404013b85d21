"""What the parser reads and Spark does not is refused, and what goes to Spark is the user's own
text.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest
from pyspark.errors import AnalysisException
from sqlglot import exp

import belvedere
from belvedere.epochs.verify import not_recomputed
from belvedere.errors import CatalogError, SqlError
from belvedere.expressions import SparkSql
from belvedere.expressions.calls import CALLS
from belvedere.expressions.rules import FUNCTIONS, NODES
from belvedere.sql.dialect import parse
from belvedere.sql.rename import renamed

AGGREGATES = (
    exp.Count,
    exp.CountIf,
    exp.Sum,
    exp.Avg,
    exp.Min,
    exp.Max,
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
)


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as opened:
        opened.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, i INT, b BOOLEAN, s STRING, dt DATE, ts TIMESTAMP)"
        )
        opened.sql(
            "INSERT INTO t VALUES (1, 2, true, 'x', date '2024-05-17', timestamp '2024-05-17"
            " 13:14:15')"
        )
        yield opened


def refusals(db: belvedere.Database, select: str) -> set[str]:
    """The messages of a view and of a query."""
    found = set()
    for run in (
        lambda: db.sql(f"CREATE MATERIALIZED VIEW v AS {select}"),
        lambda: db.sql(select).to_arrow(),
    ):
        with pytest.raises(SqlError) as error:
            run()
        found.add(str(error.value))
    assert not db.state().views
    return found


@pytest.mark.parametrize(
    ("call", "unit", "known"),
    [
        *(
            (f"trunc(dt, '{unit}')", unit, "YEAR, YYYY, YY, QUARTER, MONTH, MM, MON, WEEK")
            for unit in ("Q", "y", "W", "M", "DAY")
        ),
        *(
            (f"date_trunc('{unit}', ts)", unit, "DAY, DD, HOUR")
            for unit in ("Q", "Y", "M", "W", "d", "H", "S", "MS", "US")
        ),
    ],
)
def test_a_unit_that_spark_does_not_know_is_refused(
    db: belvedere.Database, call: str, unit: str, known: str
) -> None:
    for message in refusals(db, f"SELECT id, {call} AS c FROM t"):
        assert repr(unit) in message
        assert known in message
    column = "dt" if call.startswith("trunc") else "ts"
    with pytest.raises(SqlError, match=repr(unit)):
        db.sql(f"UPDATE t SET {column} = {call}")


def test_a_unit_is_taken_as_it_is_written(db: belvedere.Database) -> None:
    db.sql("UPDATE t SET dt = trunc(dt, 'mon')")
    assert db.sql("SELECT dt, trunc(dt, 'YY') AS y FROM t").to_pylist() == [
        {"dt": date(2024, 5, 1), "y": date(2024, 1, 1)}
    ]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("count() AS n", "count takes 1 or more arguments, not 0"),
        ("count() FILTER (WHERE b) AS n", "count takes 1 or more arguments, not 0"),
        ("count(DISTINCT) AS n", "an argument of count is missing"),
        ("max(i, id) AS n", "max takes 1 argument, not 2"),
        ("split_part(s, 'a') AS n", "split_part takes 3 arguments, not 2"),
        ("split_part(s,, 1) AS n", "an argument of split_part is missing"),
        ("substring(s) AS n", "substring takes 2 to 3 arguments, not 1"),
        ("substring(i IS DISTINCT FROM id) AS n", "substring takes 2 to 3 arguments, not 1"),
        ("substring(s AS n", "the parenthesis after substring is never closed"),
        ("boolean(s, b) AS n", "boolean takes 1 argument, not 2"),
        ("trim(BOTH s) AS n", "needs FROM"),
        ("1E- + id AS n", "1E is not a number"),
        ("+ AS n", "something is missing"),
        ("i IS NULL = b AS n", "IS beside a comparison needs parentheses"),
        ("charindex('a', s) AS n", "function charindex"),
        ("iif(b, 1, 2) AS n", "function iif"),
        ("CAST(i AS text) AS n", "TEXT is not a type of Spark"),
        ("i::bool AS n", "BOOL is not a type of Spark"),
        ("CAST(s AS varchar) AS n", "VARCHAR needs a length"),
        ("dt + interval 1 d AS n", "d is not a unit of an interval in Spark: write DAY"),
        ("dt + interval '1 m' AS n", "m is not a unit of an interval in Spark: write MINUTE"),
        ("0x1F AS n", "0x1F is not a literal in Spark"),
        ("map(1) AS n", "the arguments of map are not understood"),
        ("instr(s, 'a', 2) AS n", "instr does not take 3 arguments"),
        ("extract('year' FROM dt) AS n", "EXTRACT needs a word before FROM"),
    ],
)
def test_what_spark_would_not_read_is_refused(
    db: belvedere.Database, part: str, message: str
) -> None:
    for found in refusals(db, f"SELECT {part} FROM t"):
        assert message in found


@pytest.mark.parametrize(
    "select",
    [
        "SELECT id FROM t WHERE NULL",
        "SELECT id FROM t WHERE ((NULL))",
        "SELECT i, count(*) AS n FROM t GROUP BY i HAVING NULL",
        "SELECT a.id FROM t a JOIN t b ON NULL",
    ],
)
def test_null_is_not_a_condition(db: belvedere.Database, select: str) -> None:
    assert all("needs a boolean, not NULL" in message for message in refusals(db, select))


def test_null_is_not_a_condition_of_a_statement_either(db: belvedere.Database) -> None:
    with pytest.raises(SqlError, match="needs a boolean, not NULL"):
        db.sql("DELETE FROM t WHERE NULL")


def test_below_and_null_is_a_boolean(db: belvedere.Database) -> None:
    assert db.sql("SELECT id FROM t WHERE b AND NULL").to_pylist() == []
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE b AND NULL")


@pytest.mark.parametrize(
    "call",
    [
        "max(i) FILTER (WHERE {})",
        "count(*) FILTER (WHERE {})",
        "count_if({})",
        "CASE WHEN {} THEN 1 END",
    ],
)
def test_a_condition_inside_an_expression_is_a_boolean(db: belvedere.Database, call: str) -> None:
    assert refusals(db, f"SELECT {call.format('NULL')} AS n FROM t") == {
        "a condition needs a boolean, not NULL: write false"
    }
    assert all(
        "a condition needs a boolean, not int" in message
        for message in refusals(db, f"SELECT {call.format('i')} AS n FROM t")
    )


@pytest.mark.parametrize(
    "select",
    [
        "SELECT FROM t",
        "SELECT DISTINCT FROM t WHERE b",
        "SELECT id FROM (SELECT FROM t) u",
        "WITH a AS (SELECT FROM t) SELECT id FROM t",
        "SELECT id FROM t UNION ALL SELECT FROM t",
        "SELECT FROM t INTERSECT SELECT FROM t",
        "SELECT id FROM t WHERE EXISTS (SELECT FROM t u WHERE u.id = t.id)",
        "SELECT id FROM t WHERE id IN (SELECT FROM t)",
    ],
)
def test_a_select_needs_columns(db: belvedere.Database, select: str) -> None:
    assert all(
        "SELECT has no columns: name some after it, or write SELECT *" in message
        for message in refusals(db, select)
    )


@pytest.mark.parametrize(
    "select",
    [
        "WITH a AS (SELECT id FROM t), a AS (SELECT i FROM t) SELECT * FROM a",
        (
            "WITH A AS (SELECT id FROM t), b AS (SELECT id FROM t), `a` AS (SELECT i FROM t) SELECT"
            " id FROM t"
        ),
        "SELECT id FROM (WITH a AS (SELECT id FROM t), a AS (SELECT id FROM t) SELECT id FROM a) u",
    ],
)
def test_with_defines_a_name_once(db: belvedere.Database, select: str) -> None:
    assert all(
        "WITH defines a twice: give each definition a name of its own" in message
        for message in refusals(db, select)
    )


def test_a_with_inside_another_may_define_its_names_anew(db: belvedere.Database) -> None:
    inner = "WITH a AS (SELECT i FROM t) SELECT i FROM a"
    for select in (
        f"WITH a AS (SELECT id FROM t) ({inner})",
        f"WITH a AS (SELECT id FROM t) SELECT i FROM ({inner}) u",
    ):
        assert db.sql(select).to_pylist() == [{"i": 2}]
        db.sql(f"CREATE MATERIALIZED VIEW v AS {select}; DROP MATERIALIZED VIEW v")


@pytest.mark.parametrize("name", ['"q"', "'q'"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT id, i AS {} FROM t",
        "SELECT id, i {} FROM t",
        "SELECT i, count(*) AS {} FROM t GROUP BY i",
        "SELECT id FROM t AS {}",
        "SELECT id FROM t {}",
        "SELECT t.id FROM t JOIN t AS {} ON t.id = q.id",
        "SELECT id FROM (SELECT id FROM t) AS {}",
        "SELECT q FROM (SELECT id FROM t) AS u ({})",
        "WITH {} AS (SELECT id FROM t) SELECT id FROM q",
        "SELECT id FROM {}",
    ],
)
def test_a_string_is_not_a_name(db: belvedere.Database, select: str, name: str) -> None:
    for message in refusals(db, select.format(name)):
        assert f"{name} is a string, not a name: put names in backquotes" in message


def test_a_name_in_backquotes_is_one_and_a_string_stays_a_value(db: belvedere.Database) -> None:
    select = 'SELECT id, "x" AS `q r`, concat("a", \'b\') AS c FROM t AS `u` WHERE s = "x"'
    assert db.sql(select).to_pylist() == [{"id": 1, "q r": "x", "c": "ab"}]
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")


@pytest.mark.parametrize(
    "select", ["SELECT id FROM t ORDER BY id LIMIT {}", "(SELECT id FROM t) ORDER BY id LIMIT {}"]
)
def test_a_limit_is_an_int(db: belvedere.Database, select: str) -> None:
    message = "LIMIT 2147483648 is beyond an INT: write at most 2147483647, or leave it out"
    assert refusals(db, select.format(2**31)) == {message}
    assert db.sql(select.format(2**31 - 1)).to_pylist() == [{"id": 1}]
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select.format(2**31 - 1)}")


def test_an_offset_is_an_int(db: belvedere.Database) -> None:
    with pytest.raises(SqlError, match="OFFSET 2147483648 is beyond an INT"):
        db.sql("SELECT id FROM t LIMIT 1 OFFSET 2147483648").to_arrow()


def test_a_row_number_may_be_compared_with_a_bigint(db: belvedere.Database) -> None:
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM t QUALIFY row_number() OVER (ORDER BY id) <="
        " 99999999999"
    )
    db.catch_up()
    assert db.sql("SELECT id FROM v").to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("count(DISTINCT *)", "list the columns"),
        ("count(t.*)", "list the columns"),
        ("(id, i) IN ((1, 2), (3, 4))", "(a = 1 AND b = 2) OR (a = 3 AND b = 4)"),
    ],
)
def test_what_is_not_a_value_is_refused_with_the_way_around(
    db: belvedere.Database, part: str, message: str
) -> None:
    assert all(message in found for found in refusals(db, f"SELECT {part} AS n FROM t"))


@pytest.mark.parametrize(
    ("select", "expression"),
    [
        ("SELECT a.id, c.i FROM t a JOIN t c ON a.s = c.i", "CAST(a.s AS BIGINT) IS NOT NULL"),
        ("SELECT a.id, c.i FROM t a LEFT JOIN t c ON a.s = c.i", "CAST(a.s AS BIGINT)"),
        ("SELECT id FROM t WHERE s IN (SELECT i FROM t)", "CAST(s AS BIGINT) IS NOT NULL"),
    ],
)
def test_a_record_of_a_key_that_cannot_be_cast_names_the_cast(
    db: belvedere.Database, select: str, expression: str
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    db.catch_up()
    assert db.view("v").problems() == [{"id": 1, "expression": expression}]


@pytest.mark.parametrize("place", ["-1", "0", "3", "(3)", "-(1), i, 9"])
def test_a_place_that_is_not_among_the_outputs_is_refused(
    db: belvedere.Database, place: str
) -> None:
    assert all(
        "GROUP BY" in m and "2 column(s)" in m
        for m in refusals(db, f"SELECT i, count(*) AS n FROM t GROUP BY {place}")
    )
    assert all(
        "ORDER BY" in m and "2 column(s)" in m
        for m in refusals(db, f"SELECT i, id FROM t ORDER BY {place} LIMIT 1")
    )


def test_a_place_may_stand_in_parentheses(db: belvedere.Database) -> None:
    db.sql("INSERT INTO t (id, i) VALUES (2, 1)")
    assert [row["i"] for row in db.sql("SELECT i, id FROM t ORDER BY (1)")] == [1, 2]


def test_parentheses_are_no_part_of_a_name(db: belvedere.Database) -> None:
    select = "SELECT (id), ((i)), (i + 1), ((i + 2)) FROM t"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    names = ["id", "i", "(i + 1)", "(i + 2)"]
    assert (
        list(db.state().view("v").schema.names) == db.sql(select).to_arrow().column_names == names
    )


def test_every_function_with_a_rule_has_its_number_of_arguments() -> None:
    """Otherwise the parser may drop arguments, or read a function that Spark does not know."""
    names = {
        *SparkSql.Parser.FUNCTIONS,
        *SparkSql.Parser.FUNCTION_PARSERS,
        *map(str.upper, FUNCTIONS),
    } - {"CAST", "TRY_CAST"}
    assert {name.lower() for name in names if any(map(_has_rule, _calls(name)))} <= CALLS.keys()


def _calls(name: str) -> Iterator[exp.Expr]:
    for count in range(7):
        try:
            yield parse(f"SELECT {name}({', '.join(['x'] * count)})").expressions[0].unnest()
        except SqlError:
            continue


def _has_rule(node: exp.Expr) -> bool:
    return (
        type(node) in NODES
        or isinstance(node, AGGREGATES)
        or (isinstance(node, exp.Anonymous) and node.name.lower() in FUNCTIONS)
    )


def test_spark_gets_the_text_of_the_user() -> None:
    text = "SELECT trunc(dt, 'Q'), 1L FROM `my t` -- so it is"
    assert (
        renamed(parse(text), {"my t": "base_1"})
        == f"WITH `my t` AS (SELECT * FROM base_1) (\n{text}\n)"
    )
    assert renamed(parse("SELECT 1;"), {}) == "SELECT 1"


def test_a_reason_of_spark_is_given_in_one_line() -> None:
    reason = "[UNRESOLVED_COLUMN] A column with name `q` cannot be resolved. SQLSTATE: 42703"
    found = not_recomputed(
        "v", AnalysisException(f"\n{reason}; line 2 pos 7;\n'Project ['q]\n+- Relation")
    )
    assert str(found).startswith(
        f"view v is not verified, because Spark could not recompute it: {reason}; line 2 pos 7."
        " Create"
    )
    assert "Project" not in str(found)


def test_spark_does_not_take_where_for_an_alias() -> None:
    assert renamed(parse("SELECT 1 WHERE (b) OR (c)"), {}) == "SELECT 1 WHERE true AND (b) OR (c)"
    assert renamed(parse("SELECT 1 WHERE (b > 1)"), {}) == "SELECT 1 WHERE (b > 1)"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP TABLE a, nope", "there is no table nope: SHOW TABLES lists them"),
        ("DROP TABLE a, t", "table t is used by v, w: drop these first, nothing was dropped"),
        ("DROP TABLE a, v", "v is a view: use DROP MATERIALIZED VIEW"),
        ("DROP TABLE a, A", "A is listed twice: list it once"),
        (
            "DROP MATERIALIZED VIEW w, nope",
            "there is no view nope: SHOW MATERIALIZED VIEWS lists them",
        ),
        ("DROP MATERIALIZED VIEW w, a", "a is a table: use DROP TABLE"),
        (
            "DROP MATERIALIZED VIEW x, v, w",
            "view v is used by w: drop these first, nothing was dropped",
        ),
    ],
)
def test_several_are_dropped_together_or_none(
    db: belvedere.Database, statement: str, message: str
) -> None:
    db.sql("CREATE TABLE a (id INT PRIMARY KEY)")
    db.sql(
        "CREATE MATERIALIZED VIEW x AS SELECT id FROM a; DROP MATERIALIZED VIEW x; CREATE"
        " MATERIALIZED VIEW x AS SELECT 1 AS one FROM a"
    )
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM t; CREATE MATERIALIZED VIEW w AS SELECT id"
        " FROM v"
    )
    db.sql("DROP VIEW x" if "TABLE" in statement else "SHOW TABLES")
    before = db.state()
    with pytest.raises((CatalogError, SqlError)) as error:
        db.sql(statement)
    assert (str(error.value), db.state()) == (message, before)


def test_a_list_of_views_is_dropped_in_its_order(db: belvedere.Database) -> None:
    db.sql(
        "CREATE MATERIALIZED VIEW v AS SELECT id FROM t; CREATE MATERIALIZED VIEW w AS SELECT id"
        " FROM v"
    )
    assert (
        str(db.sql("DROP MATERIALIZED VIEW IF EXISTS w, nope, v"))
        == "view w dropped, there is no view nope, view v dropped"
    )
    assert not db.state().views
