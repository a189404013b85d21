"""The planner's decisions about joins, subqueries, unions and first rows: what is kept, what is
unique, what is shared.
"""

from __future__ import annotations

from typing import TypeVar

import pytest

from belvedere.graph import Node, bind, places, state_tables
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.arrange import Arrange
from belvedere.operators.join import Join
from belvedere.operators.select import Select
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.operators.topk import TopK
from belvedere.sql.planner import PlannedView, TableInfo, ViewInfo, plan_view
from belvedere.types import BIGINT, DOUBLE, INT, STRING, Column, Schema

ORDERS = TableInfo(
    1,
    "orders",
    Schema(
        (
            Column("id", INT, False),
            Column("cust", BIGINT),
            Column("amount", BIGINT),
            Column("note", STRING),
        ),
        ("id",),
    ),
)
LINES = TableInfo(
    2,
    "lines",
    Schema(
        (Column("order_id", INT, False), Column("line", INT, False), Column("price", DOUBLE)),
        ("order_id", "line"),
    ),
)
CUSTOMERS = TableInfo(
    3,
    "customers",
    Schema((Column("id", BIGINT, False), Column("name", STRING), Column("score", DOUBLE)), ("id",)),
)
TABLES = [ORDERS, LINES, CUSTOMERS]
VIEWS = [
    ViewInfo(
        "totals", "SELECT cust, sum(amount) AS total FROM orders GROUP BY cust", ("cust", "total")
    )
]
T = TypeVar("T")


def plan(select: str, *key: str, longest_key: int | None = None) -> PlannedView:
    return plan_view(select, key, TABLES, VIEWS, longest_key)


def all_of(planned: PlannedView, kind: type[T]) -> list[T]:
    return [n.operator for n in planned.nodes if isinstance(n.operator, kind)]


def the_join(select: str) -> Join:
    (join,) = all_of(plan(select), Join)
    return join


# ---------------------------------------------------------------- what identifies a row


@pytest.mark.parametrize(
    ("select", "identity"),
    [
        ("SELECT o.id FROM orders o JOIN customers c ON o.cust = c.id", "left"),
        ("SELECT o.id FROM customers c JOIN orders o ON o.cust = c.id", "right"),
        ("SELECT o.id FROM orders o JOIN customers c ON o.note = c.name", "both"),
        # int and bigint: no two keys become one
        ("SELECT o.id FROM orders o JOIN customers c ON o.id = c.id", "left"),
        ("SELECT o.id FROM orders o LEFT JOIN customers c ON o.cust = c.id", "left"),
        ("SELECT c.id FROM customers c LEFT JOIN orders o ON o.cust = c.id", "both"),
        ("SELECT o.id FROM orders o RIGHT JOIN customers c ON o.cust = c.id", "both"),
        ("SELECT o.id FROM orders o FULL JOIN customers c ON o.cust = c.id", "both"),
        ("SELECT o.id FROM orders o JOIN totals t ON o.cust = t.cust", "left"),
        (
            (
                "SELECT o.id FROM orders o JOIN (SELECT DISTINCT name FROM customers) d ON o.note ="
                " d.name"
            ),
            "left",
        ),
        (
            (
                "SELECT o.id FROM orders o JOIN (SELECT name FROM customers UNION ALL SELECT note"
                " FROM orders) u ON o.note = u.name"
            ),
            "both",
        ),
        ("SELECT o.id FROM orders o LEFT ANTI JOIN lines l ON l.order_id = o.id", "left"),
    ],
)
def test_a_side_that_matches_at_most_once_adds_nothing_to_the_identity(
    select: str, identity: str
) -> None:
    assert the_join(select).identity == identity


@pytest.mark.parametrize(
    ("select", "key"),
    [
        ("SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id", ("id",)),
        ("SELECT o.id, c.id AS c FROM orders o JOIN customers c ON o.note = c.name", ("id", "c")),
        (
            "SELECT o.id, o.cust, l.line FROM orders o JOIN lines l ON o.id = l.order_id",
            ("id", "line"),
        ),
        ("SELECT a.id, b.cust FROM orders a JOIN orders b ON a.amount = b.cust", None),
        ("SELECT o.cust, c.name FROM orders o JOIN customers c ON o.cust = c.id", None),
        (
            "SELECT o.amount, l.order_id, l.line FROM orders o JOIN lines l ON l.order_id = o.id",
            ("order_id", "line"),
        ),
        (
            (
                "SELECT a.note, b.id AS x, c.id AS y FROM orders a JOIN customers c ON a.cust ="
                " c.id JOIN orders b ON b.cust = c.id"
            ),
            None,
        ),
        (
            "SELECT o.id, l.line FROM orders o LEFT JOIN lines l ON o.id = l.order_id",
            ("id", "line"),
        ),
        (
            "SELECT o.id, c.id AS c FROM orders o FULL JOIN customers c ON o.cust = c.id",
            ("id", "c"),
        ),
        # NULL is a group
        ("SELECT t.cust, c.id FROM totals t FULL JOIN customers c ON t.cust = c.id", None),
        ("SELECT id, name FROM orders FULL JOIN customers USING (id)", ("id",)),
        (
            (
                "SELECT a.m, b.n FROM (SELECT max(id) AS m FROM orders) a FULL JOIN (SELECT max(id)"
                " AS n FROM customers) b ON a.m = b.n"
            ),
            None,
        ),
        ("SELECT name AS n FROM customers EXCEPT SELECT note FROM orders", ("n",)),
        ("SELECT name AS n FROM customers EXCEPT ALL SELECT note FROM orders", None),
        ("SELECT id FROM orders UNION ALL SELECT order_id FROM lines", None),
        ("SELECT id FROM orders UNION SELECT order_id FROM lines", ("id",)),
        ("SELECT cust, id FROM orders ORDER BY amount LIMIT 3", ("id",)),
    ],
)
def test_the_record_key_of_a_join_is_what_identifies_its_rows(
    select: str, key: tuple[str, ...] | None
) -> None:
    planned = plan(select)
    assert planned.unique == (key is not None)
    assert isinstance(planned.sink, BagSink if key is None else KeyedSink)
    assert key is None or planned.schema.key == key


def test_a_column_that_the_join_makes_equal_stands_for_one_that_is_not_there() -> None:
    lines = "SELECT o.id, l.line, l.price FROM orders o JOIN lines l ON l.order_id = o.id"
    assert plan(lines).schema.key == ("id", "line")


def test_a_double_never_makes_a_side_unique() -> None:
    by_score = (
        "SELECT s.score, o.id FROM orders o JOIN (SELECT DISTINCT score FROM customers) s ON"
        " s.score = o.amount"
    )
    assert not any(a.unique for a in all_of(plan(by_score), Arrange))


@pytest.mark.parametrize(
    ("select", "by_id", "local"),
    [
        ("SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id", True, False),
        ("SELECT c.id, t.total FROM customers c JOIN totals t ON t.cust = c.id", True, True),
        ("SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust", True, False),
        (
            "SELECT c.id, o.id AS o FROM customers c LEFT JOIN orders o ON o.cust = c.id",
            False,
            False,
        ),
        (
            "SELECT id, name FROM customers LEFT ANTI JOIN orders ON orders.cust = customers.id",
            True,
            True,
        ),
        ("SELECT name FROM customers INTERSECT SELECT note FROM orders", True, True),
    ],
)
def test_a_sink_is_local_only_where_its_rows_are(select: str, by_id: bool, local: bool) -> None:
    planned = plan(select)
    assert isinstance(planned.sink, KeyedSink)
    assert (planned.sink.by_id, planned.nodes[-1].local) == (by_id, local)


# ---------------------------------------------------------------- what is kept


def test_a_side_keeps_its_key_and_what_is_needed_above() -> None:
    join = the_join(
        "SELECT o.id FROM orders o JOIN customers c ON o.cust = c.id WHERE o.amount > 1 AND c.name"
        " <> o.note"
    )
    assert join.left.types == (BIGINT, INT, STRING)  # cust; id, note
    assert join.right.types == (BIGINT, STRING)  # id; name


def test_a_column_that_is_the_key_is_not_kept_twice() -> None:
    select = "SELECT o.cust, c.id, o.id AS o FROM orders o {} JOIN customers c ON o.cust = c.id"
    assert [len(a.types) for a in all_of(plan(select.format("")), Arrange)] == [2, 1]
    assert [len(a.types) for a in all_of(plan(select.format("LEFT")), Arrange)] == [2, 2]
    assert [len(a.types) for a in all_of(plan(select.format("FULL")), Arrange)] == [3, 2]


def test_a_key_that_is_cast_is_kept_beside_its_column() -> None:
    assert the_join(
        "SELECT l.line, c.name FROM lines l JOIN customers c ON l.line = c.id"
    ).left.types == (BIGINT, INT)


def test_rows_that_never_match_are_left_out_below() -> None:
    def conditions(kind: str) -> list[bool]:
        planned = plan(f"SELECT a.id FROM orders a {kind} JOIN orders b ON a.cust = b.amount")
        leaves = [n.operator for n in planned.nodes if isinstance(n.operator, Select)][:2]
        return ["IS NOT NULL" in (s.condition.sql if s.condition else "") for s in leaves]

    found = {kind: conditions(kind) for kind in ("INNER", "LEFT", "FULL", "LEFT SEMI", "LEFT ANTI")}
    assert found == {
        "INNER": [True, True],
        "LEFT": [False, True],
        "FULL": [False, False],
        "LEFT SEMI": [True, True],
        "LEFT ANTI": [False, True],
    }


def test_conditions_are_tested_as_low_as_they_may_be() -> None:
    left = the_join(
        "SELECT o.id FROM orders o LEFT JOIN lines l ON o.id = l.order_id AND l.price > 1 AND"
        " o.amount > 2 AND o.amount > l.line"
    )
    assert left.condition is not None
    assert left.condition.text == "amount > 2 AND amount > line"
    last = (
        plan(
            "SELECT o.id FROM orders o LEFT JOIN lines l ON o.id = l.order_id WHERE o.amount > 2"
            " AND l.price > 1"
        )
        .nodes[-2]
        .operator
    )
    assert isinstance(last, Select)
    assert last.condition is not None
    assert last.condition.text == "price > 1"


def test_long_record_keys_are_looked_for_only_where_they_can_be() -> None:
    by_number = "SELECT o.id, c.score FROM orders o JOIN customers c ON o.cust = c.id"
    by_text = "SELECT o.id, c.id AS c FROM orders o JOIN customers c ON o.note = c.name"

    def keys(select: str, longest_key: int | None) -> list[tuple[tuple[int, ...], ...]]:
        return [s.keys for s in all_of(plan(select, longest_key=longest_key), Select)]

    assert keys(by_number, 503) == [(), (), ()]
    assert keys(by_text, 503) == [((0, -1),), ((0, -1),), ()]
    assert keys(by_text, None) == [(), (), ()]


# ---------------------------------------------------------------- what is shared


def bound(*selects: str) -> list[Node]:
    """The nodes of several views together."""
    nodes: dict[int, Node] = {}
    ids = iter(range(100, 1000))
    for select in selects:
        nodes |= {
            n.id: n for n in bind(plan(select).nodes, places(nodes.values()), lambda: next(ids))
        }
    return list(nodes.values())


_JOIN = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.cust = c.id"
_GROUPS = "SELECT cust, count(*) AS n, sum(amount) AS s FROM orders GROUP BY cust"
_VIEW = "SELECT o.id, t.total FROM orders o JOIN totals t ON o.cust = t.cust"
_CTE = (
    "WITH t AS (SELECT cust, sum(amount) AS s FROM orders GROUP BY cust) SELECT o.id, s FROM orders"
    " o JOIN t USING (cust)"
)


@pytest.mark.parametrize(
    "selects",
    [
        (_JOIN, "SELECT a.id, b.name FROM orders a, customers b WHERE a.cust = b.id"),
        (
            _JOIN,
            (
                "SELECT x.id, name FROM (SELECT cust, id FROM orders) x JOIN customers y ON cust ="
                " y.id"
            ),
        ),
        (_GROUPS, "SELECT cust AS c, sum(amount) AS a, count(*) AS b FROM orders GROUP BY cust"),
        (_VIEW, _CTE),
    ],
)
def test_the_same_in_other_words_is_the_same_nodes(selects: tuple[str, str]) -> None:
    kept = [n for n in bound(*selects) if isinstance(n.operator, Arrange | Aggregate)]
    assert len(kept) == len(
        [n for n in bound(selects[0]) if isinstance(n.operator, Arrange | Aggregate)]
    )


def test_both_sides_of_a_self_join_on_the_same_columns_are_one_arrangement() -> None:
    planned = plan("SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.cust = b.cust")
    assert len(all_of(planned, Arrange)) == 1


def test_a_view_on_a_view_adds_only_what_is_new() -> None:
    nodes = bound(VIEWS[0].select, "SELECT total, count(*) AS n FROM totals GROUP BY total")
    assert len([n for n in nodes if isinstance(n.operator, Aggregate)]) == 2
    tables = [t for n in nodes for t in state_tables(n)]
    assert len(tables) == len(set(tables))


def test_a_plan_says_which_views_and_tables_it_reads() -> None:
    planned = plan(
        "WITH big AS (SELECT * FROM TOTALS WHERE total > 9) SELECT b.cust, l.line FROM big b JOIN"
        " lines l ON l.line = b.cust"
    )
    assert planned.reads == ("totals",)
    assert sorted(planned.sources) == [1, 2]


# ---------------------------------------------------------------- orders


@pytest.mark.parametrize(
    ("select", "checked"),
    [
        ("SELECT id FROM orders", "SELECT id FROM orders"),
        (
            "SELECT id FROM orders ORDER BY amount, id LIMIT 3",
            "SELECT id FROM orders ORDER BY amount, id LIMIT 3",
        ),
        (
            "select id from orders order by amount limit 3",
            "SELECT id FROM orders ORDER BY amount, orders.id LIMIT 3",
        ),
        (
            (
                "SELECT x.id, l.line FROM orders AS x JOIN lines AS l ON x.id = l.order_id ORDER BY"
                " l.price DESC LIMIT 3"
            ),
            (
                "SELECT x.id, l.line FROM orders AS x JOIN lines AS l ON x.id = l.order_id ORDER BY"
                " l.price DESC, x.id, l.line LIMIT 3"
            ),
        ),
        (
            "SELECT cust, SUM(amount) AS s FROM orders GROUP BY cust ORDER BY s LIMIT 1",
            "SELECT cust, SUM(amount) AS s FROM orders GROUP BY cust ORDER BY s, cust LIMIT 1",
        ),
        (
            (
                "SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY cust ORDER BY"
                " amount) = 1"
            ),
            (
                "SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY cust ORDER BY"
                " amount, orders.id) = 1"
            ),
        ),
        (
            (
                "SELECT name FROM customers INTERSECT SELECT note FROM orders ORDER BY LENGTH(name)"
                " LIMIT 2"
            ),
            (
                "SELECT name FROM customers INTERSECT SELECT note FROM orders ORDER BY"
                " LENGTH(name), name LIMIT 2"
            ),
        ),
    ],
)
def test_the_text_that_is_checked_has_a_total_order(select: str, checked: str) -> None:
    assert plan(select).checked == checked


def test_row_numbers_are_computed_only_if_they_are_seen() -> None:
    inner = (
        "SELECT id, amount, ROW_NUMBER() OVER (PARTITION BY cust ORDER BY amount) AS rn FROM orders"
    )
    (hidden,) = all_of(plan(f"SELECT id FROM ({inner}) WHERE rn <= 3"), TopK)
    (seen,) = all_of(plan(f"SELECT id, rn FROM ({inner}) WHERE rn <= 3"), TopK)
    (tested,) = all_of(plan(f"SELECT id FROM ({inner}) WHERE rn = 3"), TopK)
    assert [(t.limit, t.rank) for t in (hidden, seen, tested)] == [(3, False), (3, True), (3, True)]


def test_branches_of_a_union_are_told_apart() -> None:
    selects = all_of(
        plan(
            "SELECT id FROM orders UNION ALL SELECT order_id FROM lines UNION ALL SELECT id FROM"
            " orders"
        ),
        Select,
    )
    assert [s.tag for s in selects] == [0, 1, 2]
