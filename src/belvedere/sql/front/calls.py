"""Aggregate calls: which function, over what.

FILTER (WHERE c) and count_if(c) are CASE WHEN c around the arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.front.binding import counts_rows, text_of
from belvedere.sql.front.purpose import Purpose

Function = Literal["count", "sum", "avg", "min", "max"]
_FUNCTIONS: dict[type[exp.Expr], Function] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_ONE = exp.Literal.number(1)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """count has no arguments if it counts all rows; DISTINCT of min and max says nothing, and is
    left out.
    """

    function: Function
    arguments: tuple[exp.Expr, ...]
    distinct: bool = False


def aggregate_call(node: exp.Expr, purpose: Purpose) -> AggregateCall:
    call = _read(node, purpose)
    for argument in call.arguments:
        if argument.find(exp.AggFunc):
            raise SqlError(f"aggregates cannot be nested: {text_of(argument)}")
    return call


def _read(node: exp.Expr, purpose: Purpose) -> AggregateCall:
    if isinstance(node, exp.Filter):
        call = _read(node.this, purpose)
        test = node.expression.this
        return replace(call, arguments=tuple(_when(test, a) for a in call.arguments or (_ONE,)))
    distinct = isinstance(node.this, exp.Distinct)
    if isinstance(node, exp.CountIf) and not distinct:
        return AggregateCall("count", (_when(node.this, _ONE),))
    function = _FUNCTIONS.get(type(node))
    if function is None:
        raise purpose.refused(f"the aggregate {text_of(node)}", purpose.aggregates)
    arguments = _arguments(node)
    if function == "count":
        every = not distinct and counts_rows(arguments)
        return AggregateCall("count", () if every else arguments, distinct)
    if len(arguments) != 1:
        raise SqlError(f"{function} takes one argument: {text_of(node)}")
    return AggregateCall(function, arguments, distinct and function not in ("min", "max"))


def _arguments(node: exp.Expr) -> tuple[exp.Expr, ...]:
    if isinstance(node.this, exp.Distinct):
        arguments = tuple(node.this.expressions)
    else:
        arguments = tuple(a for a in (node.this, *node.expressions) if a is not None)
    if not arguments:
        raise SqlError(f"{text_of(node)} has no argument: write count(*), or what is counted")
    return arguments


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.case().when(condition.copy(), value.copy())
