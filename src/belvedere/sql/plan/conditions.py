"""Conditions taken apart into conjuncts, and what each of them refers to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.sql.binding import text_of
from belvedere.sql.plan.join import Equality
from belvedere.sql.relation import refuse_null

OUTER = -1  # stands for the query around a subquery among the relations of FROM

Places = Mapping[str, int]  # the number of the relation that each bound column is of


@dataclass(frozen=True, slots=True)
class Conjunct:
    node: exp.Expr
    uses: frozenset[int]


def conjuncts(node: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold, in the order in which they are written; what is always true is left out."""
    if node is None:
        return []
    refuse_null(node)
    return _parts(node)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        return _parts(node.this) + _parts(node.expression)
    return [] if isinstance(node, exp.Boolean) and node.this else [node]


def placed(nodes: Iterable[exp.Expr], places: Places) -> list[Conjunct]:
    return [Conjunct(node, uses(node, places)) for node in nodes]


def uses(node: exp.Expr, places: Places) -> frozenset[int]:
    return frozenset(places.get(text_of(column), OUTER) for column in node.find_all(exp.Column))


def equality(node: exp.Expr, left: Collection[int], right: Collection[int], places: Places) -> Equality | None:
    """The condition as one column of a join key: an expression over relations of each side, compared with = or <=>."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return None
    if any(isinstance(side, exp.Predicate | exp.Connector | exp.Not) for side in (node.this, node.expression)):
        return None  # Spark reads a = b IN (c) otherwise than the parser; lowering says so
    first, second = uses(node.this, places), uses(node.expression, places)
    null_safe = isinstance(node, exp.NullSafeEQ)
    if first and second and first <= set(left) and second <= set(right):
        return Equality(node.this, node.expression, null_safe)
    if first and second and first <= set(right) and second <= set(left):
        return Equality(node.expression, node.this, null_safe)
    return None


def columns_of(nodes: Iterable[exp.Expr], units: Collection[str] = ()) -> dict[str, None]:
    """The texts of the columns in expressions; an expression that is one of `units` is taken as a whole."""
    found: dict[str, None] = {}

    def visit(node: exp.Expr) -> None:
        if isinstance(node, exp.Column) or (units and text_of(node) in units):
            found[text_of(node)] = None
        else:
            for child in node.iter_expressions():
                visit(child)

    for node in nodes:
        visit(node)
    return found


def split(nodes: Sequence[Conjunct], chosen: Collection[int]) -> tuple[list[exp.Expr], list[Conjunct]]:
    """The conjuncts that refer to nothing but these relations, and the others."""
    inside = [c.node for c in nodes if c.uses <= set(chosen)]
    return inside, [c for c in nodes if not c.uses <= set(chosen)]
