"""ORDER BY, LIMIT and OFFSET. NULLs come first in ascending order and last in descending order,
unless the user says otherwise.
"""

from __future__ import annotations

from sqlglot import exp

from belvedere.sql.front.binding import check_int, text_of
from belvedere.sql.front.clauses import bind_order, items_of
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.stage import Output, Text

TAIL = ("order", "limit", "offset")


def direction(key: exp.Expr) -> str:
    """The words behind a sort key; `key` is an Ordered."""
    way = "DESC" if key.args.get("desc") else "ASC"
    return f"{way} NULLS {'FIRST' if key.args.get('nulls_first') else 'LAST'}"


def limits(query: exp.Expr) -> str:
    """LIMIT and OFFSET as DuckDB text, with a space in front."""
    words = [_limit(name, query.args[name]) for name in TAIL[1:] if query.args.get(name)]
    return "".join(words)


def _limit(name: str, clause: exp.Expr) -> str:
    """A whole number; LIMIT ALL says nothing."""
    if not isinstance(clause, exp.Limit | exp.Offset):
        raise NotAnswered(text_of(clause))
    number, word = clause.expression, name.upper()
    if isinstance(number, exp.Var) and number.name.upper() == "ALL":
        return ""
    if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
        raise NotAnswered(f"{word} {text_of(number)}", "write a whole number")
    check_int(int(number.this), word)
    return f" {word} {int(number.this)}"


def translate_tail(query: exp.Expr, text: Text, context: Context) -> Text:
    """A whole query (a set operation, a query in parentheses) with the ORDER BY, LIMIT and OFFSET
    written after it.
    """
    if not any(query.args.get(name) for name in TAIL):
        return text
    stage = context.stage(text).relation
    items = items_of(stage.names.fields)
    order = query.args.get("order")
    keys = bind_order(order, items, stage.names) if order else []
    sorts = ", ".join(f"{stage.lower(key.this).sql} {direction(key)}" for key in keys)
    values = [stage.lower(item.node).sql for item in items]
    columns = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(values))
    ordered = f" ORDER BY {sorts}" if sorts else ""
    outputs = tuple(Output(o.name, o.type, f"c{i}") for i, o in enumerate(text.outputs))
    return Text(f"SELECT {columns} FROM {stage.sql}{ordered}{limits(query)}", outputs)
