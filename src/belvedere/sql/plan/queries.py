"""Any query: WITH, a SELECT, a set operation, a query in parentheses; with the ORDER BY and LIMIT
written after it.
"""

from __future__ import annotations

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.front.binding import text_of
from belvedere.sql.front.clauses import bind_order, items_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.parentheses import is_parenthesised
from belvedere.sql.front.sources import Answer
from belvedere.sql.plan.context import Context, Planned
from belvedere.sql.plan.joining import check_bounded
from belvedere.sql.plan.ranking import limit_of, make_total, ordering, plan_first_rows
from belvedere.sql.plan.refusal import VIEW, refuse_ends
from belvedere.sql.plan.selects import plan_select
from belvedere.sql.plan.set_operations import plan_set_operation
from belvedere.sql.plan.sources import plan_definition


def answer(query: exp.Expr, context: Context) -> Planned:
    definitions = query.args.get("with_")
    if definitions is None:
        return _answer(query, context)
    if definitions.args.get("recursive"):
        raise Unsupported("WITH RECURSIVE")
    for cte in definitions.expressions:
        context = context.with_cte(cte.alias, cte.this, cte.args["alias"])
    found = _answer(query, context)
    for cte in definitions.expressions:
        if id(cte.this) not in context.used:
            _check(cte, context)
    return found


def _check(cte: exp.Expr, context: Context) -> None:
    """A definition that nothing names is planned all the same, so that a mistake in it is found
    when the view is created.
    """
    context.unused[id(cte)] = cte
    if context.created:
        plan_definition(context.ctes[cte.alias.lower()])


def _answer(query: exp.Expr, context: Context) -> Planned:
    if isinstance(query, exp.Select):
        return plan_select(query, context)
    if isinstance(query, exp.SetOperation):
        refuse_ends(query)
        return _first(query, plan_set_operation(query, context), context)
    if isinstance(query, exp.Subquery) and not is_parenthesised(query):
        refuse_ends(query)
        return _first(query, answer(query.this, context), context)
    if isinstance(query, exp.Values):
        raise Unsupported("VALUES", "insert the rows into a table")
    raise SqlError(f"a view is defined by a SELECT, not by {text_of(query).split()[0]}")


def _first(query: exp.Expr, found: Planned, context: Context) -> Planned:
    """The first rows of a whole query."""
    order = query.args.get("order")
    if order is None:
        return found
    relation = check_bounded(found.relation)
    names = Names(found.fields, VIEW)
    keys = bind_order(order, items_of(found.fields), names)
    texts = [f.text for f in found.fields]
    given = [text_of(key.this) for key in keys]
    make_total(order, given, relation, names.nameable(), texts, context)
    sorts, limit = ordering(keys, relation, context), limit_of(query)
    return Answer(found.fields, plan_first_rows(relation, [], sorts, texts, limit, "", context))
