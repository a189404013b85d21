"""The planner's decisions: the key of a view, what is unique, where errors are kept, what shares
state.
"""

from __future__ import annotations

from itertools import count

import pytest

from belvedere.errors import SqlError
from belvedere.graph import bind, places
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.arrange import Arrange
from belvedere.operators.select import Select
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.planner import PlannedView, TableInfo, plan_view
from belvedere.types import BIGINT, DOUBLE, STRING, Column, Schema

_COLUMNS = (
    Column("order_id", STRING, False),
    Column("line", BIGINT, False),
    Column("price", DOUBLE),
    Column("Kind", STRING),
)
_LINES = Schema(_COLUMNS, ("order_id", "line"))


def plan(select: str, *key: str, longest_key: int | None = None) -> PlannedView:
    return plan_view(select, key, [TableInfo(1, "Lines", _LINES)], longest_key=longest_key)


def aggregate(planned: PlannedView) -> Aggregate:
    return next(n.operator for n in planned.nodes if isinstance(n.operator, Aggregate))


def last_select(planned: PlannedView) -> Select:
    operator = planned.nodes[-2].operator
    assert isinstance(operator, Select)
    return operator


@pytest.mark.parametrize(
    ("select", "key", "expected", "unique"),
    [
        ("SELECT * FROM lines", (), ("order_id", "line"), True),
        ("SELECT line, order_id AS o FROM lines", (), ("o", "line"), True),
        (
            "SELECT price, line, order_id FROM lines",
            ("price",),
            ("price", "order_id", "line"),
            True,
        ),
        ("SELECT line, order_id FROM lines", ("line",), ("line", "order_id"), True),
        ("SELECT line, price FROM lines", (), ("line", "price"), False),
        ("SELECT line, price FROM lines", ("price",), ("price", "line"), False),
        ("SELECT kind, count(*) AS n FROM lines GROUP BY kind", (), ("kind",), True),
        ("SELECT kind, count(*) AS n FROM lines GROUP BY kind", ("n",), ("n", "kind"), True),
        ("SELECT count(*) AS n FROM lines GROUP BY kind", (), ("n",), False),
        ("SELECT count(*) AS n FROM lines", (), (), True),
        ("SELECT DISTINCT kind, price FROM lines", ("PRICE",), ("price", "kind"), True),
        ("SELECT kind AS a, kind AS b, count(*) AS n FROM lines GROUP BY kind", (), ("a",), True),
    ],
)
def test_the_record_key(
    select: str, key: tuple[str, ...], expected: tuple[str, ...], unique: bool
) -> None:
    planned = plan(select, *key)
    assert planned.schema.key == expected
    assert planned.unique == unique
    assert isinstance(planned.sink, KeyedSink | Arrange if unique else BagSink)


def test_a_computed_copy_of_the_key_does_not_make_a_row_unique() -> None:
    assert not plan("SELECT upper(order_id) AS order_id, line FROM lines").unique


def test_named_counts_the_columns_that_the_user_named() -> None:
    assert plan("SELECT * FROM lines", "price").named == 1
    assert plan("SELECT * FROM lines").named == 2


def test_names_are_compared_without_case_and_kept_as_they_are_written() -> None:
    assert plan("SELECT ORDER_ID, Line, kind FROM LINES AS l WHERE L.KIND = 'x'").schema.names == (
        "ORDER_ID",
        "Line",
        "kind",
    )


def test_columns_without_a_name_are_called_as_in_spark() -> None:
    names = plan(
        "SELECT kind, count(*), sum(price), max(line) + 1 FROM lines GROUP BY kind"
    ).schema.names
    assert names == ("kind", "count(1)", "sum(price)", "(MAX(line) + 1)")


def test_only_a_select_that_can_fail_keeps_errors() -> None:
    assert last_select(plan("SELECT order_id, line FROM lines")).errors == 0
    assert last_select(plan("SELECT order_id, line, 1 / line AS x FROM lines")).errors > 0
    assert last_select(plan("SELECT kind FROM lines")).errors == 0
    # where a key may be too long for the store
    assert last_select(plan("SELECT kind FROM lines", longest_key=503)).errors > 0
    assert last_select(plan("SELECT price FROM lines", longest_key=503)).errors == 0


def test_equal_arguments_share_one_state_and_equal_calls_are_one() -> None:
    calls = (
        "min(price) AS a, MAX(Price) AS b, sum(lines.price) AS c, avg(price) AS d, min(PRICE) + 1"
        " AS e"
    )
    found = aggregate(plan(f"SELECT {calls} FROM lines"))
    assert len(found.arguments) == 1
    assert sorted(c.function for c in found.calls) == ["avg", "max", "min", "sum"]


def test_an_argument_that_is_also_the_group_is_kept_apart_from_it() -> None:
    found = aggregate(plan("SELECT kind, max(kind) AS m FROM lines GROUP BY kind"))
    assert found.arguments[0].inputs == (1,)


def test_the_text_of_having_is_what_the_user_wrote() -> None:
    condition = last_select(
        plan("SELECT kind FROM lines GROUP BY kind HAVING 10 / count(*) > 2")
    ).condition
    assert condition is not None
    assert condition.text == "10 / COUNT(*) > 2"


def test_an_alias_in_group_by_gives_way_to_a_column_of_the_table() -> None:
    with pytest.raises(SqlError, match="must stand in GROUP BY"):
        plan("SELECT upper(kind) AS price, kind, count(*) AS n FROM lines GROUP BY price")


@pytest.mark.parametrize(
    "select",
    [
        "SELECT kind, order_id, line FROM lines",
        "SELECT DISTINCT kind FROM lines",
        "SELECT kind FROM lines INTERSECT SELECT order_id FROM lines",
        "SELECT a.line, b.kind FROM lines AS a FULL JOIN lines AS b ON a.kind = b.order_id",
    ],
)
def test_selects_refuse_keys_that_are_too_long_for_the_store(select: str) -> None:
    plans = [plan(select, "kind", longest_key=n) for n in (503, 32_000, None)]
    checked = [
        [
            (n.operator.keys, n.operator.longest_key)
            for n in p.nodes
            if isinstance(n.operator, Select)
        ]
        for p in plans
    ]
    assert any(keys for keys, _ in checked[0])
    assert checked[1] == [(keys, 32_000) for keys, _ in checked[0]]
    assert not any(keys for keys, _ in checked[2]), "a store that takes any key has none to refuse"


def test_a_plan_without_limits_shares_what_an_older_version_has_planned() -> None:
    """Where nothing had to be checked, because no column of the key is a text."""
    select = "SELECT line, sum(price) AS total FROM lines GROUP BY line"
    before = bind(plan(select, longest_key=503).nodes, {}, count(1).__next__)
    nothing_new = iter(()).__next__
    assert bind(plan(select).nodes, places(before), nothing_new) == before


def test_a_key_that_always_fits_is_not_checked() -> None:
    """Three fields of fixed width are 54 bytes at most, and a store may take fewer."""
    columns = tuple(Column(name, BIGINT) for name in "abcd")
    tables = [TableInfo(1, "t", Schema(columns, ("a",)))]
    for longest, keys in ((503, ()), (40, ((0, 1, 2),))):
        planned = plan_view("SELECT DISTINCT b, c, d FROM t", (), tables, longest_key=longest)
        first = next(n.operator for n in planned.nodes if isinstance(n.operator, Select))
        assert first.keys == keys
