"""Subqueries in WHERE: what they test, which of their conditions refer to the query around, and
what is joined with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.sql.front.binding import bind, parts_of, text_of
from belvedere.sql.front.clauses import bind_items, bind_where
from belvedere.sql.front.conjuncts import conjuncts
from belvedere.sql.front.names import Names
from belvedere.sql.front.sources import From
from belvedere.sql.plan.conditions import OUTER, Conjunct, equality, place
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.join import Equality
from belvedere.sql.plan.joining import check_bounded, from_and_where
from belvedere.sql.plan.membership import Membership, membership
from belvedere.sql.plan.order import without_equality
from belvedere.sql.plan.refusal import VIEW, refuse_ends
from belvedere.sql.plan.relation import Relation
from belvedere.sql.plan.sources import from_clause

_ENDS = {"order": "ORDER BY", "limit": "LIMIT"}
_COMPLEX = ("group", "having", "qualify", "order", "limit", "offset", "with_")


def where_clause(
    query: exp.Select, names: Names, context: Context
) -> tuple[list[exp.Expr], list[Membership]]:
    """The conditions of WHERE, bound, and apart from them those that are
    EXISTS or IN (SELECT ...).
    """
    where = query.args.get("where")
    conditions, memberships = [], []
    for node in conjuncts(where.this if where else None):
        tested = membership(node)
        if tested is None:
            conditions.append(bind_where(node, names))
        else:
            memberships.append(_plan_membership(*tested, names, context))
    return conditions, memberships


def _plan_membership(node: exp.Expr, negated: bool, names: Names, context: Context) -> Membership:
    if isinstance(node, exp.Exists):
        return _Subquery(node, node.this, [], negated, names, context).plan()
    left = node.this.unnest()
    operands = list(left.expressions) if isinstance(left, exp.Tuple) else [left]
    for operand in operands:
        VIEW.check_subqueries(operand, "")
    bound = [bind(operand, names.find) for operand in operands]
    return _Subquery(node, node.args["query"], bound, negated, names, context).plan()


class _Subquery:
    def __init__(
        self,
        node: exp.Expr,
        query: exp.Expr,
        operands: Sequence[exp.Expr],
        negated: bool,
        names: Names,
        context: Context,
    ) -> None:
        self.node, self.operands, self.negated = node, operands, negated
        self.text = _written(node, negated)
        self.query = _unwrapped(query)
        self.context = context.inside(names)

    def plan(self) -> Membership:
        if isinstance(self.query, exp.Select) and _is_simple(self.query):
            return self._simple(self.query)
        if isinstance(self.node, exp.Exists):
            ends = " and ".join(word for name, word in _ENDS.items() if self.query.args.get(name))
            if ends:
                raise Unsupported(
                    f"{ends} in {self.text}",
                    "leave it out: EXISTS asks only whether there is a row",
                )
            raise Unsupported(
                f"the grouped or combined subquery in {self.text}",
                "test with IN (SELECT ...), or join with it in FROM",
            )
        answer = self.context.answer(self.query, self.context)
        relation = check_bounded(answer.relation)
        return self._membership(relation, [f.bound for f in answer.fields], [], [])

    def _membership(
        self,
        relation: Relation,
        outputs: Sequence[exp.Expr],
        on: Sequence[Equality],
        conditions: Sequence[exp.Expr],
    ) -> Membership:
        if self.operands and len(self.operands) != len(outputs):
            raise SqlError(
                f"{self.text} compares {len(self.operands)} value(s) with {len(outputs)} column(s)"
            )
        compared = [Equality(a, b) for a, b in zip(self.operands, outputs, strict=False)]
        correlated = bool(on) or bool(conditions)
        return Membership(
            relation,
            (*compared, *on),
            tuple(conditions),
            self.negated,
            len(compared),
            correlated,
            self.text,
        )

    def _simple(self, query: exp.Select) -> Membership:
        """No grouping inside, so conditions that refer to the query around become the join's."""
        refuse_ends(query)
        source = from_clause(query, self.context)
        outputs = [item.node for item in bind_items(query, source.names)] if self.operands else []
        conditions, nested = where_clause(query, source.names, self.context)
        on, others, own = self._sort(place(conditions, source.places), source)
        self._check_inside(outputs, nested, source)
        if not self.operands and not on:
            raise without_equality() if others else self._unconnected()
        above = [*outputs, *(e.right for e in on), *_inside(others, source)]
        relation = from_and_where(source, own, nested, above, self.context)
        return self._membership(relation, outputs, on, [c.node for c in others])

    def _check_inside(
        self, outputs: Sequence[exp.Expr], nested: Sequence[Membership], source: From[Relation]
    ) -> None:
        """Outputs, joins and subqueries of the subquery may not refer to the query around."""
        places = source.places
        joins = [condition for joined in source.joined for condition in joined.on]
        used = [c.uses for c in place([*outputs, *joins], places)]
        if any(OUTER in uses for uses in [*used, *(m.uses(places) for m in nested)]):
            raise self._refused()

    def _sort(
        self, conditions: Sequence[Conjunct], source: From[Relation]
    ) -> tuple[list[Equality], list[Conjunct], list[exp.Expr]]:
        """Equalities with the query around, other conditions that refer to it, and conditions of
        the subquery alone.
        """
        on, others, own = [], [], []
        every = range(len(source.joined))
        for c in conditions:
            found = equality(c.node, [OUTER], every, source.places)
            if found is not None:
                on.append(found)
            elif OUTER in c.uses:
                others.append(c)
            else:
                own.append(c.node)
        return on, others, own

    def _unconnected(self) -> Unsupported:
        instead = "say with = in its WHERE which rows belong together"
        return Unsupported(
            f"{self.text} without a condition that refers to the query around it", instead
        )

    def _refused(self) -> Unsupported:
        instead = "refer to the query around it only in the WHERE of the subquery itself"
        return Unsupported(f"the correlated subquery in {self.text}", instead)


def _inside(conditions: Sequence[Conjunct], source: From[Relation]) -> list[exp.Expr]:
    return [
        column
        for c in conditions
        for column in c.node.find_all(exp.Column)
        if text_of(column) in source.places
    ]


def _written(node: exp.Expr, negated: bool) -> str:
    if isinstance(node, exp.In) and negated:
        return f"{text_of(node.this)} NOT IN {text_of(node.args['query'])}"
    return f"NOT {text_of(node)}" if negated else text_of(node)


def _unwrapped(query: exp.Expr) -> exp.Expr:
    """Without parentheses that nothing else is written to."""
    while isinstance(query, exp.Subquery) and not any(
        value for name, value in query.args.items() if name != "this"
    ):
        query = query.this
    return query


def _is_simple(query: exp.Select) -> bool:
    return not any(query.args.get(name) for name in _COMPLEX) and not parts_of(
        query.expressions, exp.AggFunc, exp.Window
    )
