"""From a SELECT to the maintenance graph of a view. `sql.plan` is the map of how.

    selection, projection    Source -> Select -> KeyedSink          (what makes a row unique is
                             among the columns) Source -> Select -> BagSink            (it is not:
                             equal rows are counted)
    GROUP BY, DISTINCT       Source -> Select -> Aggregate -> Select -> sink
    joins                    Source -> Select -> Arrange ─┐
                             Source -> Select -> Arrange ─┴ Join -> Select -> sink
    first rows               Source -> Select -> Arrange -> TopK -> Select -> sink
    INTERSECT, EXCEPT        both sides -> SetOperation -> Select -> sink

A Select computes what the operator above it needs. Equal nodes over equal inputs are one, within a
view and between views.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import with_room
from belvedere.sql.dialect import parse, sql_of
from belvedere.sql.front.values import reword
from belvedere.sql.names import quoted_in
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.nodes import Nodes
from belvedere.sql.plan.queries import answer
from belvedere.sql.plan.refusal import VIEW
from belvedere.sql.plan.selects import plan_parentheses
from belvedere.sql.plan.sink import plan_sink
from belvedere.sql.planned import PlannedView, TableInfo, ViewInfo
from belvedere.sql.relation import condition_of, expression_of
from belvedere.sql.understood import check

__all__ = ["PlannedView", "TableInfo", "ViewInfo", "condition_of", "expression_of", "plan_view"]


@with_room
def plan_view(
    select: str,
    key: Sequence[str],
    tables: Sequence[TableInfo],
    views: Sequence[ViewInfo] = (),
    longest_key: int | None = None,
) -> PlannedView:
    """`longest_key` is what the store takes (`Capabilities.longest_key`); None: any length."""
    query = parse(select)
    context = Context(
        {t.name.lower(): t for t in tables},
        {v.name.lower(): v for v in views},
        answer,
        plan_parentheses,
        Nodes(longest_key),
    )
    try:
        check(query, VIEW)
        end = plan_sink(answer(query, context), key, context)
    except SqlError as error:
        raise reword(error, context.labels, VIEW) from error
    checked = _checked(query, context) if context.ties or context.unused else select
    return PlannedView(
        end.schema,
        end.named,
        end.unique,
        context.nodes.until(end.node),
        checked,
        tuple(context.reads),
        end.columns,
    )


def _checked(query: exp.Expr, context: Context) -> str:
    for order, more in context.ties.values():
        order.set("expressions", [*order.expressions, *map(quoted_in, more)])
    # what it reads may be dropped, as nothing depends on it
    for definition in context.unused.values():
        around = definition.parent
        definition.pop()
        if around is not None and not around.expressions:
            around.pop()
    return sql_of(query)
