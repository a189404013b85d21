"""UNION, INTERSECT and EXCEPT: both sides are cast to the common types of their columns, and named
as the left side.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, cast_to, common_type
from belvedere.sql.query.aggregation import normalised
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.stage import Output, Relation, column_of
from belvedere.types import SqlType

_WORDS: dict[type[exp.Expr], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def combined(query: exp.SetOperation, context: Context) -> Relation:
    word = _WORDS.get(type(query))
    if word is None:
        raise NotAnswered(type(query).__name__.upper())
    left, right = context.answer(query.this, context), context.answer(query.expression, context)
    if len(left.outputs) != len(right.outputs):
        raise SqlError(
            f"{word} needs as many columns on both sides: {len(left.outputs)} and"
            f" {len(right.outputs)}"
        )
    types = [_common(a.type, b.type) for a, b in zip(left.outputs, right.outputs, strict=True)]
    every = query.args.get("distinct") is False
    sides = [_side(side, types, not (every and word == "UNION"), context) for side in (left, right)]
    text = f" {word}{' ALL' if every else ''} ".join(sides)
    return Relation(
        text,
        tuple(
            Output(o.name, kind, f"c{i}")
            for i, (o, kind) in enumerate(zip(left.outputs, types, strict=True))
        ),
    )


def _common(a: SqlType | None, b: SqlType | None) -> SqlType | None:
    return None if a is None and b is None else common_type([a, b])


def _side(side: Relation, types: Sequence[SqlType | None], compares: bool, context: Context) -> str:
    alias = context.fresh("r")

    def column(output: Output, kind: SqlType | None) -> str:
        value = column_of(f"{alias}.{output.column}", output.type)
        cast: Typed = cast_to(value, kind) if kind is not None else value
        return normalised(cast) if compares else cast.sql

    columns = ", ".join(
        f"{column(o, kind)} AS c{i}"
        for i, (o, kind) in enumerate(zip(side.outputs, types, strict=True))
    )
    return f"SELECT {columns} FROM {side.source} AS {alias}"
