"""Conditions taken apart into the parts that must all hold."""

from __future__ import annotations

from sqlglot import exp

from belvedere.errors import SqlError


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold, in the order in which they are written; what is
    always true is left out.
    """
    if node is None:
        return []
    refuse_null(node)
    parts, waiting = [], [node]
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        elif not (isinstance(part, exp.Boolean) and part.this):
            parts.append(part)
    return parts


def refuse_null(condition: exp.Expr) -> None:
    """As a whole condition NULL has no type for Spark; below AND it is a boolean."""
    if isinstance(condition.unnest(), exp.Null):
        raise SqlError("a condition needs a boolean, not NULL: write false")
