"""From a parsed query to DuckDB text: WITH, the kinds of queries, and the schema of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import with_room
from belvedere.sql.binding import text_of
from belvedere.sql.names import qualified
from belvedere.sql.parentheses import is_parenthesised
from belvedere.sql.query.context import Context
from belvedere.sql.query.ordering import ordered
from belvedere.sql.query.refusal import QUERY, NotAnswered, reworded
from belvedere.sql.query.selects import selected
from belvedere.sql.query.sources import renamed
from belvedere.sql.query.stage import Relation
from belvedere.sql.query.unions import combined
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
        relation = _answer(query, context)
    except SqlError as error:
        raise reworded(error, context.labels) from error
    columns = []
    for output in relation.outputs:
        if output.type is None:
            raise SqlError(f"column {output.name} has no type: write CAST(NULL AS ...)")
        columns.append(Column(output.name, output.type))
    ctes = f"WITH {', '.join(context.hoisted)} " if context.hoisted else ""
    return Translated(ctes + relation.text, Schema(tuple(columns)))


def _answer(query: exp.Expr, context: Context) -> Relation:
    definitions = query.args.get("with_")
    if definitions is not None:
        for cte in definitions.expressions:
            context = context.with_cte(
                cte.alias, renamed(_answer(cte.this, context), cte.args["alias"])
            )
    if isinstance(query, exp.Select):
        return selected(query, context)
    if isinstance(query, exp.SetOperation):
        return ordered(query, combined(query, context), context)
    if isinstance(query, exp.Subquery) and not is_parenthesised(query):
        return ordered(query, _answer(query.this, context), context)
    if isinstance(query, exp.Query | exp.Values):
        raise NotAnswered(text_of(query).split("(")[0].strip() or type(query).__name__.upper())
    raise SqlError(f"this is not a query: {text_of(query)}")
