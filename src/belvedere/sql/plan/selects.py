"""One SELECT: its clauses in the order in which SQL evaluates them.

FROM, WHERE -> GROUP BY, HAVING -> ROW_NUMBER, QUALIFY -> SELECT, DISTINCT -> ORDER BY, LIMIT
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.front.binding import Field, parts_of, text_of
from belvedere.sql.front.clauses import Clauses, Item, bind_clauses, items_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.parentheses import joins_in
from belvedere.sql.front.sources import Answer, From
from belvedere.sql.plan.aggregation import plan_groups
from belvedere.sql.plan.conditions import columns_of
from belvedere.sql.plan.context import Context, Planned
from belvedere.sql.plan.identity import unique_on
from belvedere.sql.plan.joining import check_bounded, from_and_where
from belvedere.sql.plan.ranking import (
    limit_of,
    make_total,
    ordering,
    plan_bound,
    plan_first_rows,
    unbounded,
)
from belvedere.sql.plan.refusal import refuse_ends
from belvedere.sql.plan.relation import Branch, Ranking, Relation, Value, renamed
from belvedere.sql.plan.sources import from_clause, from_relation
from belvedere.sql.plan.subqueries import where_clause
from belvedere.types import DOUBLE

Nameable = list[tuple[exp.Expr, str]]
_BOUNDED = (
    "ROW_NUMBER() with a bound is maintained: WHERE rn <= 10 in a query around it, or QUALIFY"
)


def plan_select(query: exp.Select, context: Context) -> Planned:
    refuse_ends(query)
    source = from_clause(query, context)
    clauses = bind_clauses(query, source.names)
    window = _window(clauses)
    relation = _plan_rows(query, source, clauses, context)
    nameable: Nameable = source.names.nameable()
    if clauses.grouped:
        groups = [g.node for g in clauses.groups]
        relation = plan_groups(relation, groups, clauses.calls, context)
        relation = relation.tested(clauses.having, context.words)
        nameable = [(g.written.copy(), text_of(g.node)) for g in clauses.groups]
    if window is not None:
        relation = _plan_numbers(relation, window, query, clauses, nameable, context)
    elif clauses.qualify:
        raise Unsupported("QUALIFY without ROW_NUMBER()", "write its condition in WHERE")
    if clauses.distinct:
        relation, nameable = _plan_distinct(relation, clauses, context)
    if clauses.order:
        relation = _plan_limit(relation, query, clauses, nameable, context)
    return _project(relation, clauses.items, context)


def _plan_rows(
    query: exp.Select, source: From[Relation], clauses: Clauses, context: Context
) -> Relation:
    """FROM and WHERE."""
    where, memberships = where_clause(query, source.names, context)
    on = [condition for joined in source.joined for condition in joined.on]
    _refuse_outer([*where, *clauses.over_rows, *clauses.results, *on], source.names)
    return from_and_where(source, where, memberships, clauses.over_rows, context)


def plan_parentheses(node: exp.Subquery, context: Context) -> Planned:
    """A join in parentheses: one relation with the columns of all that stand in it, each under its
    own relation's name.
    """
    source = from_relation(node.this, joins_in(node), context)
    fields = source.names.fields
    context.labels.update(source.names.labels())
    own = {f.text for f in fields} | source.places.keys()
    if any(text not in own for text in columns_of(c for j in source.joined for c in j.on)):
        raise Unsupported(
            "a join in parentheses whose ON refers to the query around it",
            "write that condition in WHERE",
        )
    relation = check_bounded(from_and_where(source, [], [], [f.bound for f in fields], context))
    made = _project(relation, items_of(fields), context)
    named = [
        replace(new, relation=f.relation, visible=f.visible)
        for new, f in zip(made.fields, fields, strict=True)
    ]
    return replace(made, fields=tuple(named))


def _refuse_outer(nodes: Sequence[exp.Expr], names: Names) -> None:
    """Only a subquery without grouping may refer to the query around it, and only in its WHERE
    (`subqueries`).
    """
    own = {f.text for f in names.fields} | set(columns_of(f.bound for f in names.fields))
    if names.outer is not None and any(text not in own for text in columns_of(nodes)):
        construct = "a correlated subquery with GROUP BY, LIMIT or a set operation"
        raise Unsupported(construct, "write it as a join with a subquery in FROM")


def _window(clauses: Clauses) -> exp.Expr | None:
    """The one ROW_NUMBER() OVER (...) of the query."""
    found = parts_of(clauses.results, exp.Window)
    for node in found:
        if (
            not isinstance(node.this, exp.RowNumber)
            or node.args.get("alias")
            or node.args.get("spec")
        ):
            raise Unsupported(f"the window function {text_of(node)}", _BOUNDED)
    if len(found) > 1:
        raise Unsupported(
            "more than one window function in a query",
            "number the rows in one subquery after the other",
        )
    if found and parts_of(list(clauses.having), exp.Window):
        raise SqlError("a window function cannot stand in HAVING: use QUALIFY")
    return found[0] if found else None


def _plan_numbers(
    relation: Relation,
    window: exp.Expr,
    query: exp.Select,
    clauses: Clauses,
    nameable: Nameable,
    context: Context,
) -> Relation:
    """The relation with row numbers that wait for a bound: QUALIFY gives one, or the query around
    this one.
    """
    numbered = replace(relation, ranking=_ranking(relation, window, context))
    outputs = [*(i.node for i in clauses.items), *(key.this for key in clauses.order)]
    seen = numbered.used([*outputs, *clauses.qualify])
    seen.pop(text_of(window), None)
    given = [text_of(part) for part in _keys(window)]
    for written in _windows(query):
        make_total(written.args["order"], given, relation, nameable, seen, context)
    if not clauses.qualify:
        return numbered
    first, others = plan_bound(numbered, clauses.qualify, numbered.used(outputs), context)
    return first.tested(others, context.words)


def _ranking(relation: Relation, window: exp.Expr, context: Context) -> Ranking:
    order = window.args.get("order")
    if order is None:
        raise SqlError("ROW_NUMBER() needs ORDER BY in OVER (...)")
    by = window.args.get("partition_by") or []
    partition = tuple(relation.value(node, context.words(node)) for node in by)
    keys = ordering(order.expressions, relation, context)
    return Ranking(text_of(window), partition, keys, context.words(window))


def _keys(window: exp.Expr) -> list[exp.Expr]:
    """What the rows are partitioned and ordered by."""
    by = window.args.get("partition_by") or []
    return [*by, *(key.this for key in window.args["order"].expressions)]


def _windows(query: exp.Select) -> list[exp.Expr]:
    """The window functions as they are written; all of them are the same one."""
    clauses = [query.args.get(name) for name in ("qualify", "order")]
    return [
        w
        for part in (*query.expressions, *clauses)
        if part is not None
        for w in part.find_all(exp.Window)
    ]


def _plan_distinct(
    relation: Relation, clauses: Clauses, context: Context
) -> tuple[Relation, Nameable]:
    """A group for each different row, unless the outputs tell all rows apart; above it only outputs
    can be named.
    """
    check_bounded(relation)
    nodes = [item.node for item in clauses.items]
    values = [relation.value(node, context.words(node)) for node in nodes]
    names: Nameable = [(exp.column(item.name), text_of(item.node)) for item in clauses.items]
    if unique_on(relation, frozenset(map(text_of, nodes))) and all(
        v.type != DOUBLE for v in values
    ):
        return relation, names
    groups = plan_groups(relation, nodes, [], context)
    return replace(groups, missing="must be an output, because of SELECT DISTINCT"), names


def _plan_limit(
    relation: Relation, query: exp.Select, clauses: Clauses, nameable: Nameable, context: Context
) -> Relation:
    check_bounded(relation)
    seen = relation.used(item.node for item in clauses.items)
    sure = [
        (node, text) for node, text in nameable if clauses.distinct or not _taken(node, clauses)
    ]
    make_total(
        query.args["order"],
        [text_of(key.this) for key in clauses.order],
        relation,
        sure,
        seen,
        context,
    )
    return plan_first_rows(
        relation, [], ordering(clauses.order, relation, context), seen, limit_of(query), "", context
    )


def _taken(node: exp.Expr, clauses: Clauses) -> bool:
    """In ORDER BY a bare name is an output first: one that means something else there cannot be
    used.
    """
    names = {c.name.lower() for c in node.find_all(exp.Column) if not c.table}
    return any(
        i.name.lower() in names
        and not (isinstance(i.written, exp.Column) and i.written.name == i.name)
        for i in clauses.items
    )


def _project(relation: Relation, items: Sequence[Item], context: Context) -> Planned:
    """The outputs under new names; a row number that waits for a bound is carried along."""
    fields = tuple(context.fresh("", item.name) for item in items)
    texts = [text_of(item.node.unnest()) for item in items]
    ranking = relation.ranking
    number = ranking.key if ranking else None
    outputs = zip(fields, items, texts, strict=True)
    computed = {f: item.node for f, item, text in outputs if text != number}
    values = _compute(relation, computed, context)
    branches = [
        Branch(b.node, {text: v.each[i] for text, v in values.items()}, b.tests)
        for i, b in enumerate(relation.branches)
    ]
    names = _new_names(fields, texts)
    identity = relation.identity.renamed(names) if relation.identity else None
    partition = renamed(relation.partition, names) if relation.partition is not None else None
    if ranking:
        if ranking.key not in names:
            raise unbounded(ranking)
        ranking = replace(ranking, key=min(names[ranking.key]))
    return Answer(fields, Relation(tuple(branches), identity, partition, ranking))


def _compute(
    relation: Relation, nodes: Mapping[Field, exp.Expr], context: Context
) -> dict[str, Value]:
    """The values of the fields; no expression may be made of a row number that has no bound."""
    ranking = relation.ranking
    for field, node in nodes.items():
        if ranking and text_of(node) != ranking.key and parts_of([node], exp.Window):
            raise unbounded(ranking)
        context.labels[field.text] = context.words(node)
    return {f.text: relation.value(node, context.words(node)) for f, node in nodes.items()}


def _new_names(fields: Sequence[Field], texts: Sequence[str]) -> dict[str, frozenset[str]]:
    """By the text of an expression, the texts of all outputs that are it."""
    names: dict[str, frozenset[str]] = {}
    for field, text in zip(fields, texts, strict=True):
        names[text] = names.get(text, frozenset()) | {field.text}
    return names
