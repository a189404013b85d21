"""FROM and JOIN: relations side by side, as text for DuckDB."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, cast_to, common_type
from belvedere.sql.front.binding import Field, bind, text_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.parentheses import joins_in
from belvedere.sql.front.sources import (
    ANTI,
    FULL,
    HALF,
    INNER,
    LEFT,
    RIGHT,
    SEMI,
    Answer,
    From,
    Joined,
    JoinKind,
    bind_joins,
)
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import QUERY
from belvedere.sql.query.stage import Output, Stage, Text
from belvedere.types import SqlType

_JOINS: dict[JoinKind, str] = {
    INNER: "JOIN",
    LEFT: "LEFT JOIN",
    RIGHT: "RIGHT JOIN",
    FULL: "FULL JOIN",
    SEMI: "SEMI JOIN",
    ANTI: "ANTI JOIN",
}


def source(query: exp.Select, context: Context) -> Stage:
    start = query.args.get("from_")
    if start is None:
        return Stage("(SELECT 1)", context.around, {}, context.outer)
    joins = query.args.get("joins") or []
    return _stage_of(bind_joins(start.this, joins, _Relations(context)), context)


@dataclass(frozen=True, slots=True)
class _Relations:
    """What the front end asks of a translation (`front.sources.Relations`)."""

    context: Context
    opens: bool = False  # the user's parentheses are DuckDB's

    @property
    def around(self) -> Names:
        return self.context.around

    def fresh(self, name: str) -> Field:
        return self.context.fresh(name)

    def table(self, node: exp.Table) -> Answer[Stage]:
        return self.context.stage(self.context.relation(node.name))

    def other(self, node: exp.Expr, beside: Names | None) -> Answer[Stage]:
        if isinstance(node, exp.Subquery):
            return self.context.stage(self.context.answer(node.this, self.context))
        if isinstance(node, exp.Values):
            return self.context.stage(_translate_values(node, self.context))
        raise QUERY.refused_relation(node)

    def enclose(self, node: exp.Subquery, beside: Names | None) -> Answer[Stage]:
        inner = _stage_of(bind_joins(node.this, joins_in(node), self), self.context)
        return Answer(inner.names.fields, replace(inner, sql=f"({inner.sql})"))


def _stage_of(bound: From[Stage], context: Context) -> Stage:
    """All relations of FROM, joined in the order in which they are written."""
    fields = bound.names.fields
    context.labels.update({f.text: _label(f) for f in fields})
    first, *others = bound.joined
    stage = first.relation
    for joined in others:
        stage = _join(stage, joined)
    return replace(stage, names=bound.names)


def _label(field: Field) -> str:
    return f"{field.relation}.{field.name}" if field.relation else field.name


def _join(left: Stage, joined: Joined[Stage]) -> Stage:
    right = joined.relation
    both = replace(left, values={**left.values, **right.values})
    test = " AND ".join(both.condition(condition, "ON").sql for condition in joined.on)
    if not test and joined.kind == INNER:
        return replace(both, sql=f"{left.sql} CROSS JOIN {right.sql}")
    sql = f"{left.sql} {_JOINS[joined.kind]} {right.sql} ON {test or 'TRUE'}"
    if joined.kind in HALF:
        return replace(left, sql=sql)
    return replace(both, sql=sql, values={**both.values, **_merged(joined, both)})


def _merged(joined: Joined[Stage], both: Stage) -> dict[str, Typed]:
    """The columns that USING makes of two in a full join: whichever is there."""
    equalities = {text_of(condition): condition for condition in joined.on}
    merged = {}
    for text, field in joined.merged.items():
        left, right = equalities[text].this, equalities[text].expression
        merged[field.text] = both.lower(exp.Coalesce(this=left, expressions=[right]))
    return merged


def _translate_values(node: exp.Values, context: Context) -> Text:
    """VALUES as a union of its rows, with the common type of every column."""
    nowhere = Stage("", Names((), QUERY), {})
    tuples = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    rows = [[nowhere.lower(bind(value, nowhere.names.find)) for value in row] for row in tuples]
    if len({len(row) for row in rows}) != 1:
        raise SqlError("the rows of VALUES have different numbers of columns")
    types = [common_type(value.type for value in column) for column in zip(*rows, strict=True)]
    outputs = tuple(Output(f"col{i + 1}", kind, f"c{i}") for i, kind in enumerate(types))
    return Text(" UNION ALL ".join(_translate_row(row, types) for row in rows), outputs)


def _translate_row(row: list[Typed], types: list[SqlType]) -> str:
    cast = [cast_to(value, kind).sql for value, kind in zip(row, types, strict=True)]
    return f"SELECT {', '.join(f'{sql} AS c{i}' for i, sql in enumerate(cast))}"
