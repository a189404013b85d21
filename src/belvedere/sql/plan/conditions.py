"""Conjuncts, and what each of them refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.sql.front.binding import text_of
from belvedere.sql.plan.join import Equality

OUTER = -1  # stands for the query around a subquery among the relations of FROM

Places = Mapping[str, int]  # the number of the relation that each bound column is of


@dataclass(frozen=True, slots=True)
class Conjunct:
    node: exp.Expr
    uses: frozenset[int]


def place(nodes: Iterable[exp.Expr], places: Places) -> list[Conjunct]:
    return [Conjunct(node, uses(node, places)) for node in nodes]


def uses(node: exp.Expr, places: Places) -> frozenset[int]:
    return frozenset(places.get(text_of(column), OUTER) for column in node.find_all(exp.Column))


def equality(
    node: exp.Expr, left: Collection[int], right: Collection[int], places: Places
) -> Equality | None:
    """The condition as one column of a join key: an expression over relations of each side,
    compared with = or <=>.
    """
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    if any(
        isinstance(side, exp.Predicate | exp.Connector | exp.Not)
        for side in (node.this, node.expression)
    ):
        return None  # Spark reads a = b IN (c) otherwise than the parser; lowering says so
    first, second = uses(node.this, places), uses(node.expression, places)
    null_safe = isinstance(node, exp.NullSafeEQ)
    if first and second and first <= set(left) and second <= set(right):
        return Equality(node.this, node.expression, null_safe)
    if first and second and first <= set(right) and second <= set(left):
        return Equality(node.expression, node.this, null_safe)
    return None


def columns_of(nodes: Iterable[exp.Expr]) -> dict[str, None]:
    """The texts of the columns in expressions, in their order."""
    return {
        text_of(column): None for node in nodes for column in node.find_all(exp.Column, bfs=False)
    }


def split(
    nodes: Sequence[Conjunct], chosen: Collection[int]
) -> tuple[list[exp.Expr], list[Conjunct]]:
    """The conjuncts that refer to nothing but these relations, and the others."""
    inside = [c.node for c in nodes if c.uses <= set(chosen)]
    return inside, [c for c in nodes if not c.uses <= set(chosen)]
