"""One front end: a view and a query understand the same SELECT in the same way.

What only one of them does is refused by the other with an error of its own kind (`Unsupported`,
`NotAnswered`). Everything else must agree: the columns that come out, and the words of a mistake.
"""

from __future__ import annotations

import random
import re

import pytest

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.dialect import parse
from belvedere.sql.planner import TableInfo, plan_view
from belvedere.sql.query import NotAnswered, translate
from belvedere.types import DOUBLE, INT, STRING, Column, Schema, SqlType


def table(number: int, name: str, key: str, **columns: SqlType) -> TableInfo:
    listed = tuple(Column(column, kind, column != key) for column, kind in columns.items())
    return TableInfo(number, name, Schema(listed, (key,)))


TABLES = [
    table(1, "t", "id", id=INT, k=INT, g=STRING, x=DOUBLE),
    table(2, "u", "k", k=INT, g=STRING, n=INT),
    table(3, "w", "k", k=INT, all=INT),
]
SCHEMAS = {t.name: t.schema for t in TABLES}

Understood = tuple[str, ...] | str | None


def as_view(select: str) -> Understood:
    """The names of the columns, or the words of the mistake; None if it is only not maintained."""
    try:
        return plan_view(select, [], TABLES).schema.names
    except Unsupported:
        return None
    except SqlError as error:
        return str(error)


def as_query(select: str) -> Understood:
    try:
        return translate(parse(select), SCHEMAS).schema.names
    except NotAnswered:
        return None
    except SqlError as error:
        return str(error)


# ---------------------------------------------------------------- the law

SOURCES = [
    *("t", "t AS a", "t JOIN u ON t.k = u.k", "t JOIN u USING (k)", "t NATURAL JOIN u"),
    *("t LEFT JOIN u USING (k, g)", "t RIGHT JOIN u USING (k)", "t FULL JOIN u USING (k)"),
    *("t LEFT SEMI JOIN u USING (k)", "(t JOIN u USING (k)) AS a", "(t JOIN u USING (k))"),
    *("u JOIN (t JOIN w USING (k)) ON u.n = t.id", "t RIGHT SEMI JOIN u ON t.k = u.k"),
    *("(SELECT k AS a, g FROM t) AS a", "(SELECT k, g FROM t) AS a (x, n)", "t AS a (x)"),
    *("t JOIN u USING (x)", "w JOIN t ON w.k = t.k", "t AS a JOIN t AS u ON a.id = u.id"),
]
COLUMNS = ["id", "k", "g", "x", "n", "a", "all", "t.k", "u.k", "a.k", "u.n", "a.x", "t.zz"]
AGGREGATES = [
    "count(*)",
    "sum({})",
    "max({})",
    "count(DISTINCT {})",
    "min({}) FILTER (WHERE k > 1)",
]
LISTS = ["{}", "{} AS a", "{} AS n", "*", "t.*", "u.*", "a.*", "{} + 1 AS k", "a + 1 AS b"]


def random_select(seed: int) -> str:
    rnd = random.Random(seed)

    def column() -> str:
        return rnd.choice(COLUMNS)

    items = [rnd.choice(LISTS).format(column()) for _ in range(rnd.randint(1, 3))]
    grouped = rnd.random() < 0.4
    if grouped:
        items.append(f"{rnd.choice(AGGREGATES).format(column())} AS {rnd.choice('abn')}")
    text = f"SELECT {', '.join(items)} FROM {rnd.choice(SOURCES)}"
    if rnd.random() < 0.3:
        text += f" WHERE {column()} IS NOT NULL"
    if grouped:
        by = [rnd.choice([column(), column(), "1", "2", "(k)", "ALL", "k + 1"]) for _ in range(2)]
        text += f" GROUP BY {', '.join(by[: rnd.randint(1, 2)])}"
    if grouped and rnd.random() < 0.4:
        text += f" HAVING {rnd.choice([column(), 'count(*)'])} IS NOT NULL"
    return text


@pytest.mark.parametrize("first", range(0, 2000, 250))
def test_views_and_queries_understand_the_same(first: int) -> None:
    accepted = refused = 0
    for seed in range(first, first + 250):
        select = random_select(seed)
        view, query = as_view(select), as_query(select)
        if view is None or query is None or is_of_views(view):
            continue
        assert unqualified(view) == unqualified(query), select
        accepted += isinstance(view, tuple)
        refused += isinstance(view, str)
    assert accepted > 10  # not only mistakes
    assert refused > 100


def is_of_views(view: Understood) -> bool:
    """Two columns of a view may not have one name; those of a query may."""
    return isinstance(view, str) and view.startswith("two columns of the view")


def unqualified(understood: Understood) -> Understood:
    """A query names columns with their relation, a view only where it has to."""
    if not isinstance(understood, str):
        return understood
    return re.sub(r"^column \w+\.(\w+ must)", r"column \1", understood).replace("view", "query")


# ---------------------------------------------------------------- where they disagreed


@pytest.mark.parametrize(
    "select",
    [
        "SELECT g FROM t GROUP BY (g)",
        "SELECT k + 1 AS n FROM t GROUP BY (k + 1)",
    ],
)
def test_parentheses_around_a_group_are_nothing(select: str) -> None:
    assert (
        as_query(select)
        == as_view(select)
        == tuple(column.alias_or_name for column in parse(select).expressions)
    )


def test_a_right_semi_join_is_not_taken_for_a_left_one() -> None:
    select = "SELECT * FROM t RIGHT SEMI JOIN u ON t.k = u.k"
    assert as_view(select) is None
    assert as_query(select) == (
        "RIGHT SEMI JOIN is not understood here: write LEFT SEMI JOIN, with ON or USING"
    )


def test_on_behind_a_natural_join_is_obeyed() -> None:
    text = translate(parse("SELECT * FROM t NATURAL JOIN u ON t.id = u.n"), SCHEMAS).sql
    assert text.count(" = ") == 3  # k, g, and what ON says


@pytest.mark.parametrize("understood", [as_view, as_query])
@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT count(ALL) AS n FROM t", "COUNT() has no argument"),
        ("SELECT k FROM t WHERE count(*) > 1", "an aggregate function cannot stand in WHERE"),
        (
            "SELECT k FROM t WHERE row_number() OVER (ORDER BY k) = 1",
            "a window function cannot stand in WHERE",
        ),
        (
            "SELECT row_number() OVER (ORDER BY k) AS r FROM t GROUP BY 1",
            "GROUP BY cannot contain the window function ROW_NUMBER()",
        ),
        ("SELECT count(*) AS n FROM t GROUP BY 1", "GROUP BY cannot contain the aggregate COUNT"),
        ("SELECT t.k FROM t AS t (a, b)", "t AS t(a, b) names 2 column(s), the relation has 4"),
    ],
)
def test_both_have_one_message(understood: object, select: str, message: str) -> None:
    assert callable(understood)
    found = understood(select)
    assert isinstance(found, str)
    assert found.startswith(message)
