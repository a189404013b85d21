"""UNION, INTERSECT and EXCEPT: both sides cast to the common types of their columns, and named as
the left side.

UNION ALL is no operator: its result is a relation with the branches of both sides. UNION is
DISTINCT over that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.expressions import Typed, cast_to
from belvedere.operators.set_operation import SetOperation, set_kind
from belvedere.sql.front.binding import Field
from belvedere.sql.front.combining import Word, check_widths, column_type, keeps_copies, word_of
from belvedere.sql.front.sources import Answer
from belvedere.sql.plan.aggregation import plan_groups
from belvedere.sql.plan.context import Context, Planned
from belvedere.sql.plan.joining import check_bounded
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.refusal import VIEW
from belvedere.sql.plan.relation import Branch, Relation, Value, column
from belvedere.types import SqlType


def plan_set_operation(query: exp.SetOperation, context: Context) -> Planned:
    word = word_of(query, VIEW)
    if word == "UNION":
        rows = _unite(query, context)
        return rows if keeps_copies(query) else _distinct(rows, context)
    fields, sides = _sides(
        word,
        context.answer(query.this, context),
        context.answer(query.expression, context),
        context,
    )
    return _compare(word, keeps_copies(query), fields, sides, context)


def _unite(query: exp.SetOperation, context: Context) -> Planned:
    """All rows of both sides.

    What UNION on the left would take out is left in if this query takes it out anyway.
    """
    left, right = query.this, query.expression
    nested = isinstance(left, exp.Union) and not any(
        left.args.get(n) for n in ("with_", "order", "limit", "offset", "by_name")
    )
    first = (
        _unite(left, context)
        if nested and not keeps_copies(query)
        else context.answer(left, context)
    )
    fields, sides = _sides("UNION", first, context.answer(right, context), context)
    return Answer(fields, Relation(sides[0].branches + sides[1].branches))


def _sides(
    word: Word, left: Planned, right: Planned, context: Context
) -> tuple[tuple[Field, ...], list[Relation]]:
    check_widths(word, len(left.fields), len(right.fields))
    check_bounded(left.relation)
    check_bounded(right.relation)
    fields = tuple(context.fresh("", f.name) for f in left.fields)
    kinds = [
        _common(a, left.relation, b, right.relation)
        for a, b in zip(left.fields, right.fields, strict=True)
    ]
    return fields, [_cast(side, fields, kinds) for side in (left, right)]


def _common(a: Field, left: Relation, b: Field, right: Relation) -> SqlType | None:
    types = [left.branches[0].values[a.text].type, right.branches[0].values[b.text].type]
    return column_type(*types)


def _cast(side: Planned, fields: Sequence[Field], kinds: Sequence[SqlType | None]) -> Relation:
    branches = []
    for branch in side.relation.branches:
        values = {}
        for old, new, kind in zip(side.fields, fields, kinds, strict=True):
            value = branch.values[old.text]
            values[new.text] = cast_to(value, kind) if kind is not None else value
        branches.append(replace(branch, values=values))
    return Relation(tuple(branches))


def _distinct(rows: Planned, context: Context) -> Planned:
    return Answer(
        rows.fields, plan_groups(rows.relation, [f.bound for f in rows.fields], [], context)
    )


def _compare(
    word: Word, copies: bool, fields: tuple[Field, ...], sides: Sequence[Relation], context: Context
) -> Planned:
    """INTERSECT and EXCEPT, by an operator that counts the rows of both sides."""
    nodes = context.nodes
    left, right = ([side.known(f.text, f.name) for f in fields] for side in sides)
    types = tuple(value.type for value in left)
    key = [tuple(range(len(types)))]
    below = nodes.feed(sides[0], left, key), nodes.feed(sides[1], right, key)
    operator = SetOperation(WANTED, types, set_kind(word), copies)
    node = nodes.add(operator, below)
    texts = [f.text for f in fields]
    columns = _columns(word, left, right)
    outputs = dict(zip(texts, columns, strict=True))
    identity = nodes.identity(list(zip(texts, types, strict=True)))
    # Copies of a row are told apart by their numbers, which are no columns.
    rows = Relation((Branch(node, outputs),), None if copies else identity, identity.parts)
    return Answer(fields, rows)


def _columns(word: Word, left: Sequence[Value], right: Sequence[Value]) -> Iterator[Typed]:
    """The columns of INTERSECT and EXCEPT: those of the left side."""
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        yield column(i, a.type, a.nullable or (word == "INTERSECT" and b.nullable))
