"""ORDER BY, LIMIT and OFFSET. NULLs come first in ascending order and last in descending order,
unless the user says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.binding import (
    Field,
    all_named,
    as_column,
    bind,
    check_int,
    field_of,
    text_of,
    whole_number,
)
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.stage import Output, Relation, stage_of

TAIL = ("order", "limit", "offset")


def direction(key: exp.Expr) -> str:
    if not isinstance(key, exp.Ordered):
        raise NotAnswered(f"ORDER BY {text_of(key)}")
    return (
        f"{'DESC' if key.args.get('desc') else 'ASC'} NULLS"
        f" {'FIRST' if key.args.get('nulls_first') else 'LAST'}"
    )


def sort_keys(
    query: exp.Expr,
    outputs: Sequence[exp.Expr],
    bound: Callable[[exp.Expr], exp.Expr],
    names_all: bool,
) -> list[tuple[exp.Expr, str]]:
    """The sort expressions, bound, each with its direction; numbers and ALL stand for outputs,
    unless something is called ALL.
    """
    order = query.args.get("order")
    parts: Sequence[exp.Expr] = order.expressions if order else []
    if not names_all and all_named([key.this for key in parts]) is not None:
        return [(output, direction(parts[0])) for output in outputs]
    return [
        (
            ordinal(key.this, outputs, "ORDER BY") or bound(as_column(key.this) or key.this),
            direction(key),
        )
        for key in parts
    ]


def has_all(fields: Sequence[Field]) -> bool:
    """Whether a column is called ALL."""
    return field_of(fields, exp.column("all")) is not None


def ordinal(node: exp.Expr, outputs: Sequence[exp.Expr], clause: str) -> exp.Expr | None:
    """The output that a whole number stands for."""
    number = whole_number(node)
    if number is None:
        return None
    if not 1 <= number <= len(outputs):
        raise SqlError(f"{clause} {number}: the query has {len(outputs)} column(s)")
    return outputs[number - 1]


def limits(query: exp.Expr) -> str:
    """LIMIT and OFFSET as DuckDB text, with a space in front."""
    text = ""
    for name in ("limit", "offset"):
        clause = query.args.get(name)
        if clause is None:
            continue
        if not isinstance(clause, exp.Limit | exp.Offset):
            raise NotAnswered(text_of(clause))
        number = clause.expression
        if isinstance(number, exp.Var) and number.name.upper() == "ALL":
            continue
        if (
            not isinstance(number, exp.Literal)
            or number.is_string
            or not str(number.this).isdigit()
        ):
            raise NotAnswered(f"{name.upper()} {text_of(number)}", "write a whole number")
        check_int(int(number.this), name.upper())
        text += f" {name.upper()} {int(number.this)}"
    return text


def has_tail(query: exp.Expr) -> bool:
    return any(query.args.get(name) for name in TAIL)


def ordered(query: exp.Expr, relation: Relation, context: Context) -> Relation:
    """A whole query (a set operation, a query in parentheses) with the ORDER BY, LIMIT and OFFSET
    written after it.
    """
    if not has_tail(query):
        return relation
    alias = context.fresh("r")
    stage = stage_of(relation, alias, "", context.key, context.outer)
    keys = sort_keys(
        query,
        [f.bound for f in stage.fields],
        lambda node: bind(node, stage.find),
        has_all(stage.fields),
    )
    order = ", ".join(f"{stage.lower(node).sql} {words}" for node, words in keys)
    columns = ", ".join(f"{alias}.{o.column} AS c{i}" for i, o in enumerate(relation.outputs))
    text = (
        f"SELECT {columns} FROM {stage.sql}{f' ORDER BY {order}' if order else ''}{limits(query)}"
    )
    return Relation(
        text, tuple(Output(o.name, o.type, f"c{i}") for i, o in enumerate(relation.outputs))
    )
