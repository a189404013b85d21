"""UNION, INTERSECT and EXCEPT: both sides are cast to the common types of their columns, and named
as the left side.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.expressions import cast_to
from belvedere.sql.front.combining import check_widths, column_type, keeps_copies, word_of
from belvedere.sql.query.aggregation import normalised
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import QUERY
from belvedere.sql.query.stage import Output, Text, column_of
from belvedere.types import SqlType


def translate_set_operation(query: exp.SetOperation, context: Context) -> Text:
    word = word_of(query, QUERY)
    left, right = context.answer(query.this, context), context.answer(query.expression, context)
    check_widths(word, len(left.outputs), len(right.outputs))
    columns = list(zip(left.outputs, right.outputs, strict=True))
    types = [column_type(a.type, b.type) for a, b in columns]
    copies = keeps_copies(query)
    compares = not (copies and word == "UNION")
    sides = [_side(side, types, compares, context) for side in (left, right)]
    outputs = [Output(a.name, types[i], f"c{i}") for i, (a, _) in enumerate(columns)]
    return Text(f" {word}{' ALL' if copies else ''} ".join(sides), tuple(outputs))


def _side(side: Text, types: Sequence[SqlType | None], compares: bool, context: Context) -> str:
    alias = context.alias()

    def column(output: Output, kind: SqlType | None) -> str:
        value = column_of(f"{alias}.{output.column}", output.type)
        cast = cast_to(value, kind) if kind is not None else value
        return normalised(cast) if compares else cast.sql

    columns = [column(o, kind) for o, kind in zip(side.outputs, types, strict=True)]
    listed = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(columns))
    return f"SELECT {listed} FROM {side.source} AS {alias}"
