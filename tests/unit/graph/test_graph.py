"""The maintenance graph: levels, and plans as JSON."""

from __future__ import annotations

import json

from belvedere.graph import Graph, bind, from_json, state_tables, to_json
from belvedere.sql.planner import PlannedView, TableInfo, plan_view
from belvedere.types import BIGINT, STRING, Column, Schema

_ORDERS = Schema(
    (Column("id", STRING, False), Column("region", STRING), Column("amount", BIGINT)), ("id",)
)


def plan(select: str, key: tuple[str, ...] = ()) -> PlannedView:
    return plan_view(select, key, [TableInfo(1, "orders", _ORDERS)])


def levels(planned: PlannedView) -> list[int]:
    graph = Graph.of(planned.nodes)
    return [graph.levels[n.id] for n in graph.nodes]


def test_a_view_with_the_key_of_its_table_needs_no_exchange() -> None:
    assert levels(plan("SELECT id, amount * 2 AS twice FROM orders")) == [0, 0, 0]


def test_a_view_with_another_key_gets_an_exchange_of_its_own() -> None:
    assert levels(plan("SELECT * FROM orders", ("region",))) == [0, 0, 1]


def test_a_group_by_needs_one_exchange_and_its_sink_none() -> None:
    assert levels(plan("SELECT region, sum(amount) AS s FROM orders GROUP BY region")) == [
        0,
        0,
        1,
        1,
        1,
    ]


def test_a_grouped_view_with_a_key_of_its_own_needs_two() -> None:
    planned = plan("SELECT region, sum(amount) AS s FROM orders GROUP BY region", ("s",))
    assert levels(planned) == [0, 0, 1, 1, 2]
    assert Graph.of(planned.nodes).depth == 3


def test_plans_come_back_from_json() -> None:
    planned = plan(
        "SELECT region, min(amount) AS m, avg(amount) AS a FROM orders WHERE amount > 0 GROUP BY"
        " region HAVING count(*) > 1"
    )
    assert from_json(json.loads(json.dumps(to_json(planned.nodes)))) == planned.nodes


def test_no_state_table_is_written_by_two_operators() -> None:
    planned = plan(
        "SELECT region, min(amount) AS m, count(DISTINCT id) AS n FROM orders GROUP BY region",
        ("m",),
    )
    ids = iter(range(10, 99))
    tables = [t for n in bind(planned.nodes, {}, lambda: next(ids)) for t in state_tables(n)]
    assert len(tables) == len(set(tables))
