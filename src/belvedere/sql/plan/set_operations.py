"""UNION, INTERSECT and EXCEPT: both sides cast to the common types of their columns, and named as
the left side.

UNION ALL is no operator: its result is a relation with the branches of both sides. UNION is
DISTINCT over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import cast_to, common_type
from belvedere.operators.set_operation import SetOperation, set_kind
from belvedere.sql.binding import Field
from belvedere.sql.plan.aggregation import aggregated
from belvedere.sql.plan.context import Answer, Context
from belvedere.sql.plan.identity import of_columns
from belvedere.sql.plan.joining import check_bounded
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import Branch, Relation, column
from belvedere.types import SqlType

_WORDS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def combined(query: exp.SetOperation, context: Context) -> Answer:
    word = _WORDS.get(type(query))
    if word is None:
        raise Unsupported(type(query).__name__.upper())
    if word == "UNION":
        rows = _united(query, context)
        return rows if _keeps_copies(query) else _distinct(rows, context)
    fields, sides = _sides(
        word,
        context.answer(query.this, context),
        context.answer(query.expression, context),
        context,
    )
    return _compared(word, _keeps_copies(query), fields, sides, context)


def _keeps_copies(query: exp.Expr) -> bool:
    return query.args.get("distinct") is False


def _united(query: exp.SetOperation, context: Context) -> Answer:
    """All rows of both sides.

    What UNION on the left would take out is left in if this query takes it out anyway.
    """
    left, right = query.this, query.expression
    nested = isinstance(left, exp.Union) and not any(
        left.args.get(n) for n in ("with_", "order", "limit", "offset", "by_name")
    )
    first = (
        _united(left, context)
        if nested and not _keeps_copies(query)
        else context.answer(left, context)
    )
    fields, sides = _sides("UNION", first, context.answer(right, context), context)
    return Answer(fields, Relation(sides[0].branches + sides[1].branches))


def _sides(
    word: str, left: Answer, right: Answer, context: Context
) -> tuple[tuple[Field, ...], list[Relation]]:
    if len(left.fields) != len(right.fields):
        raise SqlError(
            f"{word} needs as many columns on both sides: {len(left.fields)} and"
            f" {len(right.fields)}"
        )
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
    return None if types == [None, None] else common_type(types)


def _cast(side: Answer, fields: Sequence[Field], kinds: Sequence[SqlType | None]) -> Relation:
    branches = []
    for branch in side.relation.branches:
        values = {}
        for old, new, kind in zip(side.fields, fields, kinds, strict=True):
            value = branch.values[old.text]
            values[new.text] = cast_to(value, kind) if kind is not None else value
        branches.append(replace(branch, values=values))
    return Relation(tuple(branches))


def _distinct(rows: Answer, context: Context) -> Answer:
    return Answer(
        rows.fields, aggregated(rows.relation, [f.bound for f in rows.fields], [], context)
    )


def _compared(
    word: str, copies: bool, fields: tuple[Field, ...], sides: Sequence[Relation], context: Context
) -> Answer:
    values = [[side.known(f.text, f.name) for f in fields] for side in sides]
    types = tuple(v.type for v in values[0])
    key = tuple(range(len(types)))
    below = [
        context.nodes.feed(side, columns, [key])
        for side, columns in zip(sides, values, strict=True)
    ]
    node = context.nodes.add(
        SetOperation(WANTED, types, set_kind(word), copies), (below[0], below[1])
    )
    nullable = [
        a.nullable or (word == "INTERSECT" and b.nullable) for a, b in zip(*values, strict=True)
    ]
    outputs = {f.text: column(i, types[i], nullable[i]) for i, f in enumerate(fields)}
    identity = of_columns([(f.text, kind) for f, kind in zip(fields, types, strict=True)])
    return Answer(
        fields, Relation((Branch(node, outputs),), None if copies else identity, identity.parts)
    )
