"""From a SELECT to the maintenance graph of a view.

    selection, projection    Source -> Select -> KeyedSink          (the base key is among the columns)
                             Source -> Select -> BagSink            (it is not: equal rows are counted)
    GROUP BY, DISTINCT       Source -> Select -> Aggregate -> Select -> KeyedSink (or BagSink)

The first Select computes what the aggregate needs, the second what the user wrote around the aggregates, and HAVING. A
sink that is keyed as its input is partitioned needs no exchange; any other gets one of its own (rule R8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.operators.graph import Node, Source
from belvedere.operators.select import Expression, Select
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.aggregates import collect, reduce_groups
from belvedere.sql.dialect import parse, sql_of
from belvedere.sql.expressions import lower, lower_condition
from belvedere.sql.relation import Scope, scope_of
from belvedere.sql.select_plan import SelectPlan, analyse
from belvedere.stores.base import TableId
from belvedere.types import Column, Schema, SqlType

NewId = Callable[[], int]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What the planner must know of a base table."""

    id: TableId
    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class PlannedView:
    """`schema.key` is the record key: the columns that the user named (the first `named`), then what makes it unique.

    `unique` is False for a bag: rows are counted and the key is all columns.
    """

    schema: Schema
    named: int
    unique: bool
    source: TableId
    nodes: tuple[Node, ...]

    @property
    def sink(self) -> KeyedSink | BagSink:
        operator = self.nodes[-1].operator
        assert isinstance(operator, KeyedSink | BagSink)  # the planner ends every graph with one
        return operator


def plan_view(select: str, key: Sequence[str], tables: Sequence[TableInfo], new_id: NewId) -> PlannedView:
    by_name = {t.name.lower(): t for t in tables}
    plan = analyse(parse(select), {name: t.schema.names for name, t in by_name.items()})
    table = by_name[plan.relation.lower()]
    scope = scope_of(plan.alias, table.schema.columns, lambda i: f'"c{i}"')
    source = Node(new_id(), Source(table.id, tuple(c.type for c in table.schema.columns)))
    if plan.grouped or plan.distinct:
        return _grouped(plan, table, scope, source, key, new_id)
    condition = condition_of(plan.where, scope)
    outputs = tuple(expression_of(item.node, scope) for item in plan.items)
    base_key = [table.schema.names.index(name) for name in table.schema.key]
    return _finish(plan, table, [source], condition, outputs, base_key, key, new_id)


def _grouped(plan: SelectPlan, table: TableInfo, scope: Scope, source: Node, key: Sequence[str], new_id: NewId) -> PlannedView:
    groups = plan.groups
    if not plan.grouped:  # SELECT DISTINCT: a group per row, nothing to count
        groups = tuple(item.node for item in plan.items)
    if plan.distinct and plan.grouped and not _covers(plan):
        raise SqlError("SELECT DISTINCT together with GROUP BY needs all grouping columns among the view's columns")
    calls = collect([item.node for item in plan.items] + ([plan.having] if plan.having else []))
    leaf, aggregate = reduce_groups([expression_of(g, scope) for g in groups], calls, lambda n: expression_of(n, scope), new_id)
    select = Select(condition_of(plan.where, scope), leaf.outputs, new_id(), leaf.keys)
    above = calls.scope(groups, aggregate.types)
    condition = condition_of(calls.replaced(plan.having, groups), above) if plan.having else None
    if condition is not None and plan.having is not None:
        condition = _with_text(condition, plan.having)
    outputs = tuple(_with_text(expression_of(calls.replaced(i.node, groups), above), i.node) for i in plan.items)
    first = Node(new_id(), select, (source.id,))
    nodes = [source, first, Node(new_id(), aggregate, (first.id,))]
    return _finish(plan, table, nodes, condition, outputs, list(range(len(groups))), key, new_id)


def _finish(
    plan: SelectPlan,
    table: TableInfo,
    nodes: list[Node],
    condition: Expression | None,
    outputs: tuple[Expression, ...],
    identity: list[int],
    key: Sequence[str],
    new_id: NewId,
) -> PlannedView:
    """Add the last Select and the sink; `identity` are the input columns that make a row unique, in partition order."""
    names = [item.name for item in plan.items]
    named = [_position(name, names) for name in key]
    passed = {e.column: i for i, e in reversed(list(enumerate(outputs))) if e.column >= 0}
    unique = all(column in passed for column in identity)
    needed = [passed[c] for c in identity] if unique else list(range(len(names)))
    record = named + [i for i in needed if i not in named]
    by_id = unique and record == needed
    columns = tuple(Column(name, e.type) for name, e in zip(names, outputs, strict=True))
    keys = () if by_id else (tuple(record),)
    may_fail = any(e.raises for e in outputs) or bool(condition and condition.raises) or bool(keys)
    select = Node(new_id(), Select(condition, outputs, new_id() if may_fail else 0, keys), (nodes[-1].id,))
    types = tuple(e.type for e in outputs)
    sink: KeyedSink | BagSink = BagSink(new_id(), types, tuple(record))
    if unique:
        rest = tuple(i for i in range(len(names)) if i not in record)
        sink = KeyedSink(new_id(), types, tuple(record), rest, by_id)
    end = Node(new_id(), sink, (select.id,), local=by_id)
    schema = Schema(columns, tuple(names[i] for i in record))
    return PlannedView(schema, len(named) or len(record), unique, table.id, (*nodes, select, end))


def expression_of(node: exp.Expression, scope: Scope) -> Expression:
    text = sql_of(node)
    typed = lower(node, scope.resolve)
    if typed.type is None:
        raise SqlError(f"{text} has no type: write CAST(NULL AS ...)")
    column = next((i for i, f in enumerate(scope.fields) if f.sql == typed.sql), -1) if isinstance(node, exp.Column) else -1
    return Expression(typed.sql, typed.type, text, typed.raises, column)


def condition_of(node: exp.Expression | None, scope: Scope) -> Expression | None:
    if node is None:
        return None
    typed = lower_condition(node, scope.resolve)
    return Expression(typed.sql, SqlType("boolean"), sql_of(node), typed.raises)


def _with_text(expression: Expression, node: exp.Expression) -> Expression:
    return Expression(expression.sql, expression.type, sql_of(node), expression.raises, expression.column)


def _position(name: str, names: Sequence[str]) -> int:
    for i, candidate in enumerate(names):
        if candidate.lower() == name.lower():
            return i
    raise SqlError(f"the key column {name} is not a column of the view: its columns are {', '.join(names)}")


def _covers(plan: SelectPlan) -> bool:
    return all(any(item.node == group for item in plan.items) for group in plan.groups)
