"""From a SELECT to the maintenance graph of a view. `sql.plan` is the map of how.

    selection, projection    Source -> Select -> KeyedSink          (what makes a row unique is among the columns)
                             Source -> Select -> BagSink            (it is not: equal rows are counted)
    GROUP BY, DISTINCT       Source -> Select -> Aggregate -> Select -> sink
    joins                    Source -> Select -> Arrange ─┐
                             Source -> Select -> Arrange ─┴ Join -> Select -> sink
    first rows               Source -> Select -> Arrange -> TopK -> Select -> sink
    INTERSECT, EXCEPT        both sides -> SetOperation -> Select -> sink

A Select computes what the operator above it needs. Equal nodes over equal inputs are one, within a view and between views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.operators.arrange import Arrange
from belvedere.operators.graph import Node, Source
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.dialect import parse, sql_of
from belvedere.sql.expressions import with_room
from belvedere.sql.names import quoted_in
from belvedere.sql.plan.context import Context, TableInfo, ViewInfo
from belvedere.sql.plan.queries import answer
from belvedere.sql.plan.refusal import VIEW
from belvedere.sql.plan.relation import reworded
from belvedere.sql.plan.selects import related
from belvedere.sql.plan.sink import ended
from belvedere.sql.relation import condition_of, expression_of
from belvedere.sql.understood import check
from belvedere.stores.base import TableId
from belvedere.types import Schema

__all__ = ["PlannedView", "TableInfo", "ViewInfo", "condition_of", "expression_of", "plan_view"]

Sink = KeyedSink | BagSink | Arrange


@dataclass(frozen=True, slots=True)
class PlannedView:
    """`schema.key` is the record key: the columns that the user named (the first `named`), then what makes it unique.

    `unique` is False for a bag: rows are counted and the key is all columns. `nodes` have local ids in an order in which inputs
    come first, and 1 for every state table (`graph.bind` gives both their real ids); the last is the sink. `checked` is the
    SELECT by which another engine can recompute the view: orders that leave something open are made total. `reads` names the
    views that the SELECT refers to, in lower case. `columns` says which column of the sink each column of the view is.
    """

    schema: Schema
    named: int
    unique: bool
    nodes: tuple[Node, ...]
    checked: str
    reads: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def sink(self) -> Sink:
        operator = self.nodes[-1].operator
        assert isinstance(operator, Sink)  # the planner ends every graph with one
        return operator

    @property
    def sources(self) -> tuple[TableId, ...]:
        """The base tables whose changes the view follows."""
        return tuple(n.operator.table for n in self.nodes if isinstance(n.operator, Source))


@with_room
def plan_view(select: str, key: Sequence[str], tables: Sequence[TableInfo], views: Sequence[ViewInfo] = ()) -> PlannedView:
    query = parse(select)
    context = Context({t.name.lower(): t for t in tables}, {v.name.lower(): v for v in views}, answer, related)
    try:
        check(query, VIEW)
        end = ended(answer(query, context), key, context)
    except SqlError as error:
        raise reworded(error, context.labels) from error
    checked = _checked(query, context) if context.ties or context.unused else select
    return PlannedView(end.schema, end.named, end.unique, context.nodes.until(end.node), checked, tuple(context.reads), end.columns)


def _checked(query: exp.Expr, context: Context) -> str:
    for order, more in context.ties.values():
        order.set("expressions", [*order.expressions, *map(quoted_in, more)])
    for definition in context.unused.values():  # what it reads may be dropped, as nothing depends on it
        around = definition.parent
        definition.pop()
        if around is not None and not around.expressions:
            around.pop()
    return sql_of(query)
