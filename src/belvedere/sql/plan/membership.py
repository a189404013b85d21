"""EXISTS, IN and their negations in WHERE: semi and anti joins with the subquery.

EXISTS, x IN (...)        semi join       on the equalities with the query around, and x = y
NOT EXISTS                anti join       the same
x NOT IN (SELECT y ...)   anti join       if neither x nor y can be NULL; else also one row about
                                          the whole subquery: keep a row iff the subquery is empty,
                                          or x is not NULL and no y is
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.sql.front.binding import Field
from belvedere.sql.front.sources import ANTI, INNER, SEMI, JoinKind
from belvedere.sql.plan.aggregation import plan_groups
from belvedere.sql.plan.conditions import columns_of, uses
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.join import Equality, plan_join
from belvedere.sql.plan.refusal import is_membership
from belvedere.sql.plan.relation import Branch, Relation


@dataclass(frozen=True, slots=True)
class Membership:
    """`relation` are the rows of the subquery.

    `on` has columns of the query around on the left, of the subquery on the right.

    `operands` are the columns of `on` that stand left of NOT IN, and `correlated` says that there
    are others.
    """

    relation: Relation
    on: tuple[Equality, ...]
    conditions: tuple[exp.Expr, ...]
    negated: bool
    operands: int
    correlated: bool
    text: str

    @property
    def outside(self) -> list[exp.Expr]:
        """What it needs of the query around."""
        own = columns_of([e.right for e in self.on]) | columns_of(self.conditions)
        mine = [exp.to_column(text) for text in own if text not in self.relation]
        return [e.left for e in self.on] + [c for c in mine if isinstance(c, exp.Expr)]

    def uses(self, places: Mapping[str, int]) -> frozenset[int]:
        return frozenset[int]().union(*(uses(node, places) for node in self.outside))

    def apply(self, relation: Relation, needed: Iterable[str], context: Context) -> Relation:
        kind: JoinKind = ANTI if self.negated else SEMI
        if not (self.negated and self.operands and self._nullable(relation)):
            return plan_join(
                kind, relation, self.relation, self.on, self.conditions, needed, context
            )
        if self.correlated or self.operands > 1:
            raise Unsupported(
                f"{self.text} over columns that can be NULL",
                "write NOT EXISTS with the equalities in its WHERE",
            )
        operand = self.on[0].left
        wanted = {**dict.fromkeys(needed), **columns_of([operand])}
        found = plan_join(kind, relation, self.relation, self.on, (), wanted, context)
        return self._with_nulls(found, operand, needed, context)

    def _nullable(self, relation: Relation) -> bool:
        compared = self.on[: self.operands]
        return any(
            relation.value(e.left, "").nullable or self.relation.value(e.right, "").nullable
            for e in compared
        )

    def _with_nulls(
        self, rows: Relation, operand: exp.Expr, needed: Iterable[str], context: Context
    ) -> Relation:
        """What SQL says about NULLs, by a join with one row that says whether the subquery is empty
        and whether it has a NULL.
        """
        about, empty, full = self._facts(context)
        wanted = [*needed, *columns_of([operand]), empty.text, full.text]
        both = plan_join(INNER, rows, about, [], [], wanted, context)
        given = exp.Not(this=exp.Is(this=operand.copy(), expression=exp.Null()))
        decided = exp.Paren(this=exp.And(this=given, expression=full.bound))
        return both.tested([exp.Or(this=empty.bound, expression=decided)], context.words)

    def _facts(self, context: Context) -> tuple[Relation, Field, Field]:
        """One row about the subquery, and its two columns: it is empty, it has no NULL."""
        rows, values = exp.Count(this=exp.Star()), exp.Count(this=self.on[0].right.copy())
        counted = plan_groups(self.relation, [], [rows, values], context)
        tests = {
            "the subquery is empty": exp.EQ(this=rows.copy(), expression=exp.Literal.number(0)),
            "it has no NULL": exp.EQ(this=rows.copy(), expression=values.copy()),
        }
        empty, full = (context.fresh("", words) for words in tests)
        facts = {
            field.text: counted.value(test, "").each[0]
            for field, test in zip((empty, full), tests.values(), strict=True)
        }
        branch = Branch(counted.branches[0].node, facts)
        return Relation((branch,), counted.identity, counted.partition), empty, full


def membership(node: exp.Expr) -> tuple[exp.Expr, bool] | None:
    """EXISTS or IN, and whether it is negated, if the condition is one."""
    inner, negated = node.unnest(), False
    while isinstance(inner, exp.Not):
        inner, negated = inner.this.unnest(), not negated
    return (inner, negated) if is_membership(inner) else None
