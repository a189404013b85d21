"""Values that a stage computes beside its columns: subqueries in expressions and window functions.

Each becomes a column of a further stage before anything uses it, so the expressions above see only
columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, cast_to, common_type
from belvedere.sql.front.binding import is_in_query, parts_of, text_of
from belvedere.sql.query.aggregation import normalised
from belvedere.sql.query.context import Context
from belvedere.sql.query.ordering import direction
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.stage import Stage, column_of
from belvedere.types import BOOLEAN, INT

_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren)
_RANKS: dict[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}


def check_memberships(node: exp.Expr, tested: bool) -> None:
    """Refuse x IN (SELECT ...) where only its truth is not enough: there Spark's two values are not
    the three of SQL.
    """
    if is_in_query(node) and not tested:
        raise NotAnswered(f"{text_of(node)} as a value", "test it in WHERE or CASE WHEN")
    if isinstance(node, exp.Query | exp.Exists):
        return
    for child in node.iter_expressions():
        decides = (
            isinstance(node, exp.Where)
            or (isinstance(node, exp.If) and child is node.this)
            or _is_false_for_null(node)
        )
        check_memberships(child, decides or (tested and isinstance(node, _LOGIC)))


def _is_false_for_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Coalesce) and node.expressions == [exp.false()]


def with_subqueries(stage: Stage, nodes: Sequence[exp.Expr], context: Context) -> Stage:
    found = [
        part
        for part in parts_of(nodes, exp.In, exp.Subquery, exp.Exists)
        if is_in_query(part) or not isinstance(part, exp.In)
    ]
    lists = [part for part in parts_of(nodes, exp.In) if not is_in_query(part)]
    inner = [operand for part in lists for operand in (part.this, *part.expressions)]
    inner += [part.this for part in found if isinstance(part, exp.In)]
    if inner:
        stage = with_subqueries(stage, inner, context)
    new = {
        text_of(part): _subquery(part, stage, context)
        for part in found
        if stage.value(text_of(part)) is None
    }
    return stage.carried(new, context.alias()) if new else stage


def _subquery(node: exp.Expr, stage: Stage, context: Context) -> Typed:
    inner = context.inside(stage)
    if isinstance(node, exp.Exists):
        return Typed(f"EXISTS ({context.answer(node.this, inner).sql})", BOOLEAN, nullable=False)
    query = node.args["query"] if isinstance(node, exp.In) else node
    found = context.answer(query, inner)
    if len(found.outputs) != 1 or isinstance(node.this, exp.Tuple):
        raise NotAnswered(f"{text_of(node)}: a subquery with several columns")
    output = found.outputs[0]
    if not isinstance(node, exp.In):
        return Typed(f"({found.sql})" if output.type else "NULL", output.type)
    alias, value = context.alias(), stage.lower(node.this)
    kind = common_type([value.type, output.type])
    member = cast_to(column_of(f"{alias}.{output.column}", output.type), kind)
    return Typed(
        f"({cast_to(value, kind).sql} IN (SELECT {member.sql} FROM {found.source} AS {alias}))",
        BOOLEAN,
    )


def with_windows(stage: Stage, nodes: Sequence[exp.Expr], context: Context) -> Stage:
    new = {text_of(part): _window(part, stage) for part in parts_of(nodes, exp.Window)}
    return stage.carried(new, context.alias()) if new else stage


def _window(node: exp.Expr, stage: Stage) -> Typed:
    name = _RANKS.get(type(node.this))
    if name is None:
        raise NotAnswered(
            f"the window function {text_of(node)}", "use row_number, rank or dense_rank"
        )
    if node.args.get("alias"):
        raise NotAnswered("a named window", "write its definition in OVER (...)")
    order = node.args.get("order")
    if order is None:
        raise SqlError(f"{name}() needs ORDER BY in OVER (...)")
    partition = ", ".join(
        normalised(stage.lower(part)) for part in node.args.get("partition_by") or []
    )
    keys = ", ".join(f"{stage.lower(key.this).sql} {direction(key)}" for key in order.expressions)
    window = f"{f'PARTITION BY {partition} ' if partition else ''}ORDER BY {keys}"
    return Typed(f"CAST({name}() OVER ({window}) AS INTEGER)", INT)
