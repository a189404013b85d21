"""GROUP BY and aggregate calls, with Spark's result types.

    SELECT g0, f(x0) FROM (SELECT <group> AS g0, <argument> AS x0 FROM ...) GROUP BY g0

A sum of bigint or decimal is exact and raises when the result does not fit. The average of decimals
is the exact quotient, rounded half up; that of integers adds doubles, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, aggregate_type
from belvedere.expressions.decimals import rescaled, unscaled
from belvedere.sql.front.binding import text_of
from belvedere.sql.front.calls import aggregate_call
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import QUERY
from belvedere.sql.query.stage import Stage, column_of
from belvedere.types import BIGINT, SqlType

_MISSING = "must stand in GROUP BY or inside an aggregate function"


def translate_groups(
    stage: Stage, groups: Sequence[exp.Expr], calls: Sequence[exp.Expr], context: Context
) -> Stage:
    """One row per group, or the one row of all; its values are the groups and the calls."""
    leaf = _Leaf(stage, context.alias())
    keys = [leaf.group(group) for group in groups]
    results = [*keys, *(_translate_call(call, leaf) for call in calls)]
    grouping = f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
    outputs = ", ".join(f"{r.sql} AS a{i}" for i, r in enumerate(results)) or "count(*)"
    alias = context.alias()
    values = {
        text_of(node): column_of(f"{alias}.a{i}", results[i].type)
        for i, node in enumerate((*groups, *calls))
    }
    sql = f"(SELECT {outputs} FROM ({leaf.sql}) AS {leaf.alias}{grouping}) AS {alias}"
    return replace(stage, sql=sql, values=values, missing=_MISSING)


class _Leaf:
    """The rows below the groups: a column g0, g1, ... for each group, and x0, x1, ... for what
    aggregates are computed of, numbered together.
    """

    def __init__(self, stage: Stage, alias: str) -> None:
        self.stage, self.alias = stage, alias
        self._columns: list[str] = []

    @property
    def sql(self) -> str:
        return f"SELECT {', '.join(self._columns) or '1'} FROM {self.stage.sql}"

    def group(self, node: exp.Expr) -> Typed:
        value = self.stage.lower(node)
        if value.type is None:
            raise SqlError(f"{text_of(node)} has no type: write CAST(NULL AS ...)")
        return self._add("g", normalised(value), value.type)

    def argument(self, node: exp.Expr, distinct: bool) -> Typed:
        value = self.stage.lower(node)
        return self._add("x", normalised(value) if distinct else value.sql, value.type)

    def _add(self, prefix: str, sql: str, kind: SqlType | None) -> Typed:
        name = f"{prefix}{len(self._columns)}"
        self._columns.append(f"{sql} AS {name}")
        return Typed(f"{self.alias}.{name}", kind)


def normalised(value: Typed) -> str:
    """A grouping value: Spark gives out 0.0 for groups of 0.0 and -0.0."""
    return (
        f"CASE WHEN {value.sql} = 0 THEN CAST(0 AS DOUBLE) ELSE {value.sql} END"
        if value.kind == "double"
        else value.sql
    )


def _translate_call(node: exp.Expr, leaf: _Leaf) -> Typed:
    call = aggregate_call(node, QUERY)
    arguments = [leaf.argument(part, call.distinct) for part in call.arguments]
    if call.function == "count":
        return Typed(_count([a.sql for a in arguments], call.distinct), BIGINT)
    (argument,) = arguments
    result = aggregate_type(call.function, argument.type)
    assert argument.type is not None  # aggregate_type refuses an untyped NULL
    text = f"DISTINCT {argument.sql}" if call.distinct else argument.sql
    if call.function == "avg":
        return Typed(_average(text, argument.type, result), result)
    return Typed(f"CAST({call.function}({text}) AS {result.duckdb})", result)


def _count(names: Sequence[str], distinct: bool) -> str:
    if len(names) == 1:
        return f"count({'DISTINCT ' if distinct else ''}{names[0]})"
    if not names:
        return "count(*)"
    counted = f"DISTINCT ({', '.join(names)})" if distinct else "*"
    return (
        f"count({counted}) FILTER (WHERE {' AND '.join(f'{name} IS NOT NULL' for name in names)})"
    )


def _average(argument: str, kind: SqlType, result: SqlType) -> str:
    count = f"count({argument})"
    if kind.name != "decimal":
        doubles = argument.removeprefix("DISTINCT ")
        distinct = "DISTINCT " if doubles != argument else ""
        return f"(sum({distinct}CAST({doubles} AS DOUBLE)) / CAST({count} AS DOUBLE))"
    n, c = (
        unscaled(f"sum({argument})", SqlType("decimal", 38, kind.scale)),
        f"CAST({count} AS HUGEINT)",
    )
    shift = 10 ** (result.scale - kind.scale)
    # Whole quotient and remainder apart, because the sum times `shift` might not fit 128 bits.
    rounded = f"((abs({n}) % {c}) * {2 * shift} + {c}) // (2 * {c})"
    return rescaled(f"sign({n}) * ((abs({n}) // {c}) * {shift} + {rounded})", result)
