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
from belvedere.sql.binding import counts_rows, text_of
from belvedere.sql.query.context import Context
from belvedere.sql.query.refusal import NotAnswered
from belvedere.sql.query.stage import Stage, column_of
from belvedere.types import BIGINT, SqlType

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_ONE = exp.Literal.number(1)


def aggregated(
    stage: Stage, groups: Sequence[exp.Expr], calls: Sequence[exp.Expr], context: Context
) -> Stage:
    leaf = context.fresh("r")
    keys = [_typed(stage.lower(group), group) for group in groups]
    columns = [f"{normalised(key)} AS g{i}" for i, key in enumerate(keys)]
    results: list[str] = [f"{leaf}.g{i}" for i in range(len(keys))]
    types: list[SqlType | None] = [key.type for key in keys]
    for call in calls:
        sql, kind = _call(call, stage, columns, leaf)
        results.append(sql)
        types.append(kind)
    inner = f"SELECT {', '.join(columns) or '1'} FROM {stage.sql}"
    grouping = f" GROUP BY {', '.join(results[: len(keys)])}" if keys else ""
    outputs = ", ".join(f"{sql} AS a{i}" for i, sql in enumerate(results)) or "count(*)"
    alias = context.fresh("r")
    texts = [text_of(node) for node in (*groups, *calls)]
    values = {
        text: column_of(f"{alias}.a{i}", kind)
        for i, (text, kind) in enumerate(zip(texts, types, strict=True))
    }
    sql = f"(SELECT {outputs} FROM ({inner}) AS {leaf}{grouping}) AS {alias}"
    return replace(
        stage,
        sql=sql,
        values=values,
        missing="must stand in GROUP BY or inside an aggregate function",
    )


def normalised(value: Typed) -> str:
    """A grouping value: Spark gives out 0.0 for groups of 0.0 and -0.0."""
    return (
        f"CASE WHEN {value.sql} = 0 THEN CAST(0 AS DOUBLE) ELSE {value.sql} END"
        if value.kind == "double"
        else value.sql
    )


def _typed(value: Typed, node: exp.Expr) -> Typed:
    if value.type is None:
        raise SqlError(f"{text_of(node)} has no type: write CAST(NULL AS ...)")
    return value


def _call(node: exp.Expr, stage: Stage, columns: list[str], leaf: str) -> tuple[str, SqlType]:
    """The call over columns of the leaf, to which its arguments are added."""
    function, distinct, parts = _function(node)
    names, types = [], []
    for part in parts:
        if part.find(exp.AggFunc):
            raise SqlError(f"aggregates cannot be nested: {text_of(node)}")
        value = stage.lower(part)
        names.append(f"{leaf}.x{len(columns)}")
        types.append(value.type)
        columns.append(f"{normalised(value) if distinct else value.sql} AS x{len(columns)}")
    if function == "count":
        return _count(names, distinct), BIGINT
    kind = types[0]
    result = aggregate_type(function, kind)
    assert kind is not None  # aggregate_type refuses an untyped NULL
    argument = f"DISTINCT {names[0]}" if distinct else names[0]
    return (
        _average(argument, kind, result)
        if function == "avg"
        else f"CAST({function}({argument}) AS {result.duckdb})"
    ), result


def _function(node: exp.Expr) -> tuple[str, bool, list[exp.Expr]]:
    """Name, DISTINCT and arguments; FILTER (WHERE c) and count_if(c) are CASE WHEN c inside."""
    if isinstance(node, exp.Filter):
        function, distinct, parts = _function(node.this)
        return (
            function,
            distinct,
            [exp.case().when(node.expression.this.copy(), part.copy()) for part in parts or [_ONE]],
        )
    if isinstance(node, exp.CountIf) and not isinstance(node.this, exp.Distinct):
        return "count", False, [exp.case().when(node.this.copy(), _ONE.copy())]
    name = _FUNCTIONS.get(type(node))
    if name is None:
        raise NotAnswered(
            f"the aggregate {type(node).__name__.lower()}", "use count, sum, avg, min or max"
        )
    distinct = isinstance(node.this, exp.Distinct)
    parts = list(node.this.expressions) if distinct else [node.this, *node.expressions]
    if name == "count":
        every = not distinct and counts_rows(parts)
        return name, distinct, [] if every else parts
    if len(parts) != 1:
        raise SqlError(f"{name} takes one argument: {text_of(node)}")
    return name, distinct and name not in ("min", "max"), parts


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
