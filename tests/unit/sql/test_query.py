"""Ad hoc queries: names, refusals, errors and the small print, over tables of a few rows.

Meaning is held against Spark in conformance/test_queries.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.dialect import parse
from belvedere.sql.query import NotAnswered, relations, run, translate
from belvedere.types import BIGINT, DOUBLE, INT, STRING, Column, Schema, decimal, from_arrow

TABLES = {
    "revenue": pa.table(
        {
            "Region": pa.array(["north", "south", None, "east"]),
            "total": pa.array([150, 90, 200, None], pa.int64()),
            "price": pa.array(
                [Decimal("1.00"), Decimal("0.01"), Decimal("0.01"), None], pa.decimal128(10, 2)
            ),
            "units": pa.array([3, 0, 2, 1], pa.int32()),
            "text": pa.array(["1", "x", "3", "4"]),
        }
    ),
    "my view": pa.table({"a b": pa.array([1, 2], pa.int32()), 'c"d': pa.array(["x", "y"])}),
    "Kept": pa.table({"text": pa.array(["1", "3", "4"])}),
}
SCHEMAS = {
    name: Schema(tuple(Column(f.name, from_arrow(f.type)) for f in table.schema))
    for name, table in TABLES.items()
}


def answer(text: str) -> pa.Table:
    return run(translate(parse(text), SCHEMAS), TABLES)


def rows(text: str) -> list[tuple[Any, ...]]:
    table = answer(text)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def names(text: str) -> list[str]:
    return list(translate(parse(text), SCHEMAS).schema.names)


def test_a_query_over_a_view_is_answered_in_order() -> None:
    assert rows("SELECT region, total FROM revenue WHERE total > 100 ORDER BY total DESC") == [
        (None, 200),
        ("north", 150),
    ]


def test_the_schema_has_sparks_types() -> None:
    query = (
        "SELECT sum(units) AS a, avg(price) AS b, avg(units) AS c, max(region) AS d, 1 AS e FROM"
        " revenue"
    )
    schema = translate(parse(query), SCHEMAS).schema
    assert [c.type for c in schema.columns] == [BIGINT, decimal(14, 6), DOUBLE, STRING, INT]
    assert answer(query).schema.equals(schema.arrow)


def test_an_average_of_decimals_is_rounded_half_up() -> None:
    assert rows("SELECT avg(price) FROM revenue") == [(Decimal("0.340000"),)]
    assert rows(
        "SELECT avg(price), avg(-price) FROM revenue WHERE total <> 150 OR total IS NULL"
    ) == [(Decimal("0.01"), Decimal("-0.01"))]
    assert rows("SELECT avg(x), avg(-x) FROM VALUES (0.1), (0.2), (0.2) AS v (x)") == [
        (Decimal("0.16667"), Decimal("-0.16667"))
    ]


def test_names_are_found_without_case_and_kept_as_the_user_wrote_them() -> None:
    assert names("SELECT REGION, Total AS T, count(*), units + 1 FROM Revenue GROUP BY ALL") == [
        "REGION",
        "T",
        "count(1)",
        "(units + 1)",
    ]
    assert names("SELECT * FROM revenue")[0] == "Region"


def test_two_outputs_may_have_one_name() -> None:
    assert answer("SELECT units, units FROM revenue").column_names == ["units", "units"]


def test_names_with_spaces_and_quotes_are_names() -> None:
    assert rows('SELECT `a b` AS `x y`, `c"d` FROM `My View` AS `v w` WHERE `v w`.`a b` > 1') == [
        (2, "y")
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM Revenue r JOIN revenue s ON r.total = s.total", ["Revenue"]),
        ("WITH t AS (SELECT * FROM revenue) SELECT * FROM T, kept", ["revenue", "kept"]),
        ("WITH revenue AS (SELECT * FROM revenue) SELECT * FROM revenue", ["revenue"]),
        (
            (
                "SELECT (SELECT max(a) FROM x) FROM y WHERE b IN (SELECT c FROM z) UNION SELECT 1"
                " FROM w"
            ),
            ["x", "y", "z", "w"],
        ),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN t ON true", ["t"]),
    ],
)
def test_the_relations_of_a_query_are_its_tables_and_not_its_ctes(
    query: str, expected: list[str]
) -> None:
    assert sorted(relations(parse(query))) == sorted(expected)


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT explode(region) FROM revenue", "explode"),
        ("SELECT stddev(units) FROM revenue", "the aggregate stddev"),
        (
            "SELECT sum(units) OVER () FROM revenue",
            r"the window function SUM\(revenue.units\) OVER \(\)",
        ),
        ("SELECT rank() OVER w FROM revenue WINDOW w AS (ORDER BY units)", "a WINDOW clause"),
        ("SELECT units FROM revenue GROUP BY ROLLUP (units)", "ROLLUP"),
        ("SELECT units FROM revenue GROUP BY units WITH CUBE", "CUBE"),
        ("SELECT units FROM revenue QUALIFY 1 = 1", "QUALIFY"),
        ("SELECT units FROM revenue SORT BY units", "SORT BY"),
        ("SELECT units FROM revenue TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT * FROM range(3)", r"range\(3\) in FROM"),
        ("SELECT * FROM revenue, LATERAL (SELECT 1)", "LATERAL"),
        ("WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t", "WITH RECURSIVE"),
        ("SELECT units FROM revenue LIMIT 1 + 1", r"LIMIT 1 \+ 1"),
        ("SELECT (units, total) IN (SELECT 1, 2) AS a FROM revenue", "several columns"),
        ("SELECT current_timestamp()", "different at every evaluation"),
        ("SELECT max(units IN (SELECT 1)) FROM revenue", "as a value"),
        ("SELECT coalesce(units IN (SELECT 1), true) FROM revenue", "as a value"),
        ("SELECT date_format(current_date(), 'y') FROM revenue", "function date_format"),
        ("SELECT units & 3 FROM revenue", "units & 3"),
        ("SELECT split(text, ',')[0] FROM revenue", r"split\(text, ','\)\[0\]"),
        ("SELECT every(units > 1) FROM revenue", r"the aggregate every\(units > 1\)"),
    ],
)
def test_what_is_not_answered_is_refused_by_name_and_with_the_way_around(
    query: str, construct: str
) -> None:
    with pytest.raises(
        NotAnswered, match=f"{construct}.* is not answered here: use .to_spark()"
    ) as caught:
        translate(parse(query), SCHEMAS)
    assert not isinstance(caught.value, Unsupported)


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT units FROM revenue VERSION AS OF 1", "revenue VERSION AS OF 1"),
        ("SELECT units FROM revenue WHERE units = ?", r"\?"),
        ("SELECT DISTINCT ON (units) total FROM revenue", "DISTINCT ON"),
        ("SELECT units FROM revenue LIMIT 50 PERCENT", "LIMIT 50 PERCENT"),
        ("SELECT units FROM revenue LIMIT 1 BY units", "LIMIT 1 BY units"),
        ("SELECT * ILIKE 'u%' FROM revenue", r"\* ILIKE 'u%'"),
        ("SELECT units FROM revenue FOR UPDATE", "FOR UPDATE or FOR SHARE"),
        ("SELECT AS STRUCT units FROM revenue", "SELECT AS STRUCT"),
        ("SELECT units FROM revenue INNER UNION SELECT 1", "INNER UNION"),
        ("SELECT units FROM revenue FULL OUTER UNION ALL SELECT 1", "FULL OUTER UNION"),
        ("SELECT units FROM ((SELECT units FROM revenue) a UNION SELECT 1)", "AS a"),
        ("SELECT r.units FROM revenue r ASOF JOIN kept k ON r.text >= k.text", "ASOF JOIN"),
    ],
)
def test_spark_is_no_way_around_for_what_spark_does_not_understand(
    query: str, construct: str
) -> None:
    with pytest.raises(SqlError, match=f"{construct} is not understood here: ") as caught:
        translate(parse(query), SCHEMAS)
    assert "to_spark" not in str(caught.value)


def test_a_function_that_spark_does_not_have_is_not_sent_to_spark() -> None:
    with pytest.raises(SqlError, match=r"^there is no function read_parquet in Spark's SQL"):
        translate(parse("SELECT * FROM read_parquet('x')"), SCHEMAS)


def test_joins_in_parentheses_are_relations() -> None:
    assert rows(
        "SELECT r.units, k.text FROM (revenue r JOIN kept k ON r.text = k.text) ORDER BY 1"
    ) == [(1, "4"), (2, "3"), (3, "1")]
    assert rows(
        "SELECT y.units FROM (revenue r LEFT ANTI JOIN kept k ON r.text = k.text) AS y"
    ) == [(0,)]
    assert rows("SELECT p FROM ((kept)) AS x (p) ORDER BY p LIMIT 1") == [("1",)]
    query = (
        "SELECT a.text, b.units FROM kept a LEFT JOIN (revenue b JOIN kept c ON b.text = c.text AND"
        " b.units > 1) ON a.text = b.text"
    )
    assert sorted(rows(query), key=str) == [("1", 3), ("3", 2), ("4", None)]
    with pytest.raises(SqlError, match=r"there is no column r\.units"):
        translate(
            parse("SELECT r.units FROM (revenue r JOIN kept k ON r.text = k.text) AS y"), SCHEMAS
        )


def test_all_is_a_column_where_one_has_that_name() -> None:
    inner = "(SELECT units AS all, 1 AS i FROM revenue)"
    assert rows(f"SELECT i, count(*) AS n FROM {inner} GROUP BY all, i") == [(1, 1)] * 4
    assert rows(f"SELECT count(*) AS n FROM {inner} GROUP BY all") == [(1,)] * 4
    assert rows(f"SELECT i FROM {inner} ORDER BY all DESC LIMIT 1") == [(1,)]
    assert rows(
        "SELECT units > 1 AS u, count(*) AS n FROM revenue GROUP BY `all` ORDER BY ALL"
    ) == [(False, 2), (True, 2)]
    for text in ("GROUP BY ALL units", "GROUP BY DISTINCT units"):
        with pytest.raises(SqlError, match="cannot stand behind GROUP BY"):
            parse(f"SELECT count(*) FROM revenue {text}")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "SELECT nope FROM revenue",
            "there is no column nope: the columns are Region, total, price, units, text",
        ),
        ("SELECT x.units FROM revenue", "there is no column x.units"),
        ("SELECT units FROM nowhere", "there is no table or view nowhere"),
        (
            "SELECT units FROM revenue a JOIN revenue b ON a.total = b.total",
            "column units is ambiguous",
        ),
        (
            "SELECT region, units + 1 FROM revenue GROUP BY region",
            "column revenue.units must stand in GROUP BY",
        ),
        (
            "SELECT max(sum(units)) FROM revenue",
            r"aggregates cannot be nested: SUM\(revenue.units\)",
        ),
        ("SELECT units FROM revenue WHERE sum(units) > 1", "cannot stand in WHERE"),
        ("SELECT DISTINCT units FROM revenue ORDER BY total", "must be an output"),
        ("SELECT units FROM revenue ORDER BY 2", r"ORDER BY 2: the query has 1 column\(s\)"),
        ("SELECT NULL", "column NULL has no type"),
        ("SELECT 1 UNION SELECT 1, 2", "as many columns"),
        ("SELECT units FROM revenue WHERE units", "WHERE needs a boolean"),
        ("SELECT sum(region) FROM revenue", "sum needs a number"),
        ("SELECT units FROM db.revenue", "there is no relation db.revenue: if db is a source"),
        ("SELECT a FROM revenue JOIN kept USING (units)", "both sides must have the column"),
        ("SELECT * FROM VALUES (1), (2, 3)", "different numbers of columns"),
        ("SHOW TABLES", "not a query"),
    ],
)
def test_mistakes_are_named_in_the_words_of_the_user(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        translate(parse(query), SCHEMAS)
    assert "_bound" not in str(caught.value)
    assert "_value" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT 10 / units FROM revenue", "the query failed: DIVIDE_BY_ZERO: 10.0"),
        ("SELECT CAST(text AS int) FROM revenue", "the query failed: CAST_INVALID_INPUT: x"),
        (
            "SELECT sum(total + 9223372036854775000) FROM revenue",
            "the query failed: 27670116110564325440 is out of range for bigint",
        ),
        (
            "SELECT CAST(total AS decimal(2,0)) FROM revenue",
            r"the query failed: 150 is out of range for decimal\(2,0\)",
        ),
        (
            "SELECT (SELECT units FROM revenue) AS x",
            "the query failed: a subquery that stands for one value gave more than one row",
        ),
    ],
)
def test_an_evaluation_that_raises_says_why_without_the_noise(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message + "$"):
        answer(query)


def test_a_condition_that_was_moved_before_its_guard_does_not_fail_the_query() -> None:
    query = (
        "SELECT n FROM (SELECT CAST(r.text AS int) AS n FROM revenue r JOIN kept k ON r.text ="
        " k.text) WHERE n > 1 ORDER BY n"
    )
    assert rows(query) == [(3,), (4,)]


def test_a_failed_query_leaves_nothing_behind() -> None:
    with pytest.raises(SqlError):
        answer("SELECT 10 / units FROM revenue")
    assert rows("SELECT count(*) FROM revenue") == [(4,)]


def test_an_in_with_a_subquery_beside_a_comparison_is_refused() -> None:
    """Spark reads a = b IN (...) as (a = b) IN (...), the parser as a = (b IN (...))."""
    with pytest.raises(NotAnswered, match="as a value"):
        translate(parse("SELECT units FROM revenue WHERE true = units IN (SELECT 1)"), SCHEMAS)


def test_upper_and_lower_find_their_macros() -> None:
    assert rows("SELECT upper('straße'), lower('ΟΔΟΣ')") == [("STRASSE", "οδος")]


def test_an_alias_may_be_used_by_the_outputs_after_it() -> None:
    assert rows("SELECT units + 1 AS a, a * 2 AS b FROM revenue WHERE units = 3") == [(4, 8)]


def test_a_cte_hides_a_table_only_outside_of_itself() -> None:
    assert rows("WITH revenue AS (SELECT max(units) AS m FROM revenue) SELECT m FROM revenue") == [
        (3,)
    ]


def test_aggregates_without_rows_are_one_row_and_groups_without_rows_none() -> None:
    assert rows("SELECT count(*), sum(units) FROM revenue WHERE false") == [(0, None)]
    assert rows("SELECT region, count(*) FROM revenue WHERE false GROUP BY region") == []


def test_columns_of_two_tables_with_one_name_are_different_groups() -> None:
    query = (
        "SELECT a.units, b.units, count(*) FROM revenue a JOIN revenue b ON a.units = b.units + 1"
        " GROUP BY a.units, b.units ORDER BY 1"
    )
    assert rows(query) == [(1, 0, 1), (2, 1, 1), (3, 2, 1)]
