"""From a parsed query to DuckDB text: WITH, the kinds of queries, and the schema of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import with_room
from belvedere.sql.front.binding import text_of
from belvedere.sql.front.parentheses import is_parenthesised
from belvedere.sql.front.sources import column_names, listed_names
from belvedere.sql.front.values import reword
from belvedere.sql.names import qualified
from belvedere.sql.query.context import Context
from belvedere.sql.query.ordering import translate_tail
from belvedere.sql.query.refusal import QUERY, NotAnswered
from belvedere.sql.query.selects import translate_select
from belvedere.sql.query.stage import Text
from belvedere.sql.query.unions import translate_set_operation
from belvedere.sql.understood import check
from belvedere.types import Column, Schema


@dataclass(frozen=True, slots=True)
class Translated:
    """`sql` reads the relations "rel_<lower name>" and gives columns c0, c1, ... whose names and
    types `schema` has.
    """

    sql: str
    schema: Schema


@with_room
def relations(query: exp.Expr) -> list[str]:
    """The tables and views that the query reads, as the user first spelled them."""
    found: dict[str, str] = {}

    def visit(node: exp.Expr, ctes: frozenset[str]) -> None:
        definitions = node.args.get("with_")
        for cte in definitions.expressions if definitions else []:
            visit(cte.this, ctes)
            ctes |= {cte.alias.lower()}
        if isinstance(node, exp.Table) and node.args.get("db"):
            raise qualified(part.name for part in node.parts)
        if (
            isinstance(node, exp.Table)
            and isinstance(node.this, exp.Identifier)
            and node.name.lower() not in ctes
        ):
            found.setdefault(node.name.lower(), node.name)
        for child in node.iter_expressions():
            if child is not definitions and not isinstance(child, exp.Hint):
                visit(child, ctes)

    visit(query, frozenset())
    return list(found.values())


@with_room
def translate(query: exp.Expr, schemas: Mapping[str, Schema]) -> Translated:
    context = Context({name.lower(): schema for name, schema in schemas.items()}, _answer)
    try:
        if isinstance(query, exp.Query):
            check(query, QUERY)
        text = _answer(query, context)
    except SqlError as error:
        raise reword(error, context.labels, QUERY) from error
    columns = []
    for output in text.outputs:
        if output.type is None:
            raise SqlError(f"column {output.name} has no type: write CAST(NULL AS ...)")
        columns.append(Column(output.name, output.type))
    ctes = f"WITH {', '.join(context.hoisted)} " if context.hoisted else ""
    return Translated(ctes + text.sql, Schema(tuple(columns)))


def _answer(query: exp.Expr, context: Context) -> Text:
    definitions = query.args.get("with_")
    if definitions is not None:
        for cte in definitions.expressions:
            context = context.with_cte(cte.alias, _define(cte, context))
    if isinstance(query, exp.Select):
        return translate_select(query, context)
    if isinstance(query, exp.SetOperation):
        return translate_tail(query, translate_set_operation(query, context), context)
    if isinstance(query, exp.Subquery) and not is_parenthesised(query):
        return translate_tail(query, _answer(query.this, context), context)
    if isinstance(query, exp.Query | exp.Values):
        raise NotAnswered(text_of(query).split("(")[0].strip() or type(query).__name__.upper())
    raise SqlError(f"this is not a query: {text_of(query)}")


def _define(cte: exp.Expr, context: Context) -> Text:
    """A query of WITH, under the names that are given to its columns."""
    text, alias = _answer(cte.this, context), cte.args["alias"]
    names = listed_names(column_names(alias), [o.name for o in text.outputs], text_of(alias))
    outputs = [replace(o, name=name) for o, name in zip(text.outputs, names, strict=True)]
    return replace(text, outputs=tuple(outputs))
