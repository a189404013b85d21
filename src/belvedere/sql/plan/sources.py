"""FROM of a view: what its tables, views, subqueries and common table expressions are as
relations.

A view that another one reads is planned from its SELECT again, so that both share their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.operators.source import Source
from belvedere.sql.dialect import parse
from belvedere.sql.front.binding import Field, text_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.sources import Answer, From, bind_joins, column_names, rename
from belvedere.sql.plan.context import Context, Cte, Planned
from belvedere.sql.plan.refusal import VIEW, unknown_table
from belvedere.sql.plan.relation import Branch, Relation, column
from belvedere.sql.planned import TableInfo


def from_clause(query: exp.Select, context: Context) -> From[Relation]:
    start = query.args.get("from_")
    if start is None:
        raise Unsupported("a SELECT without FROM", "a view needs a table whose changes it follows")
    source = from_relation(start.this, query.args.get("joins") or [], context)
    context.labels.update(source.names.labels())
    return source


def from_relation(first: exp.Expr, joins: Sequence[exp.Join], context: Context) -> From[Relation]:
    """A relation and those that are joined to it."""
    return bind_joins(first, joins, _Relations(context))


@dataclass(frozen=True, slots=True)
class _Relations:
    """What the front end asks of planning (`front.sources.Relations`)."""

    context: Context
    opens: bool = True  # so that all of them can be joined in the order that fits best

    @property
    def around(self) -> Names:
        return Names((), VIEW, self.context.outer, self.context.beside)

    def fresh(self, name: str) -> Field:
        return self.context.fresh("", name)

    def table(self, node: exp.Table) -> Planned:
        """A common table expression hides a table, and a table a view."""
        context, name = self.context, node.name.lower()
        if name in context.ctes:
            cte = context.ctes[name]
            context.used.add(id(cte.query))
            return plan_definition(cte)
        if name in context.tables:
            return _plan_table(context.tables[name], context)
        if name not in context.views:
            raise unknown_table(node.name)
        view = context.views[name]
        context.reads[name] = None
        planned = context.answer(parse(view.select), context.elsewhere())
        return rename(planned, view.names, view.name)

    def other(self, node: exp.Expr, beside: Names | None) -> Planned:
        if not isinstance(node, exp.Subquery):
            raise VIEW.refused_relation(node)
        return self.context.answer(node.this, self.context.apart(beside))

    def enclose(self, node: exp.Subquery, beside: Names | None) -> Planned:
        return self.context.related(node, replace(self.context, beside=beside))


def plan_definition(cte: Cte) -> Planned:
    """A query of WITH, as of its definition and under the names that are given to its columns."""
    planned = cte.context.answer(cte.query, cte.context)
    return rename(planned, column_names(cte.alias), text_of(cte.alias))


def _plan_table(table: TableInfo, context: Context) -> Planned:
    schema = table.schema
    node = context.nodes.add(Source(table.id, tuple(c.type for c in schema.columns)))
    fields = tuple(context.fresh(table.name, c.name) for c in schema.columns)
    values = {
        f.text: column(i, c.type, c.nullable and c.name not in schema.key)
        for i, (f, c) in enumerate(zip(fields, schema.columns, strict=True))
    }
    key = [schema.names.index(name) for name in schema.key]
    identity = context.nodes.identity([(fields[i].text, schema.columns[i].type) for i in key])
    return Answer(fields, Relation((Branch(node, values),), identity, identity.parts))
