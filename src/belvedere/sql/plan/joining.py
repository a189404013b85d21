"""FROM and WHERE as one relation.

    1  conditions on one relation are tested below all joins, unless a join fills that relation with
       NULLs
    2  up to the last RIGHT or FULL JOIN the written order is kept, and only ON says what belongs
       together
    3  after it, ON of inner joins and WHERE are one: relations are joined as soon as an equality
       connects them
    4  what is left is tested above

A relation keeps only the columns that something above still needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from belvedere.sql.front.binding import text_of
from belvedere.sql.front.sources import ANTI, FULL, HALF, INNER, LEFT, RIGHT, SEMI, From
from belvedere.sql.plan.conditions import Conjunct, columns_of, equality, place, split
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.join import Equality, plan_join
from belvedere.sql.plan.membership import Membership
from belvedere.sql.plan.order import join_order, without_equality
from belvedere.sql.plan.ranking import plan_bound, unbounded
from belvedere.sql.plan.relation import Relation


def from_and_where(
    source: From[Relation],
    where: Sequence[exp.Expr],
    memberships: Sequence[Membership],
    above: Iterable[exp.Expr],
    context: Context,
) -> Relation:
    """`above` are the expressions over FROM that are evaluated after WHERE."""
    return _Joining(source, where, memberships, above, context).run()


class _Joining:
    def __init__(
        self,
        source: From[Relation],
        where: Sequence[exp.Expr],
        memberships: Sequence[Membership],
        above: Iterable[exp.Expr],
        context: Context,
    ) -> None:
        self.context, self.places = context, source.places
        self.above = columns_of(above)
        self.relations = [j.relation for j in source.joined]
        self.kinds = [j.kind for j in source.joined]
        self.merged = [j.merged for j in source.joined]
        self.on = [place(j.on, self.places) for j in source.joined]
        self.strict = max(
            (i for i, kind in enumerate(self.kinds) if kind in (RIGHT, FULL)), default=-1
        )
        self.pool: list[Conjunct] = []
        for i, kind in enumerate(self.kinds):
            if kind == INNER and i > self.strict:
                self.pool += self.on[i]
                self.on[i] = []
        self.pool += place(where, self.places)
        self.memberships = list(memberships)
        self.filled = self._filled()

    def _filled(self) -> set[int]:
        """The relations that some join fills with NULLs."""
        filled: set[int] = set()
        for i, kind in enumerate(self.kinds):
            if kind in (LEFT, FULL):
                filled.add(i)
            if kind in (RIGHT, FULL):
                filled.update(range(i))
        return filled

    def run(self) -> Relation:
        for i in range(len(self.relations)):
            self._push(i)
        current, done = self._in_written_order()
        waiting = [i for i in range(len(self.kinds)) if i not in done]
        may_start = [i for i in waiting if self.kinds[i] == INNER]
        for i in join_order(frozenset(done), waiting, may_start, self._connects):
            current = self.relations[i] if current is None else self._join(current, i, done)
            done.add(i)
            current = self._test(current, done)
        assert current is not None  # FROM names at least one relation
        current = current.tested([c.node for c in self.pool], self.context.words)
        self.pool = []
        while self.memberships:
            current = self._member(current, self.memberships[0])
        return current

    def _needed(self, *more: exp.Expr) -> dict[str, None]:
        """What is still to be computed needs these columns."""
        waiting = (
            [c.node for c in self.pool]
            + [c.node for on in self.on for c in on]
            + [n for m in self.memberships for n in m.outside]
        )
        return self.above | columns_of([*waiting, *more])

    def _push(self, i: int) -> None:
        """Test below all joins what refers to this relation alone."""
        own = self._own_conditions(i)
        relation = self.relations[i]
        if relation.ranking is None:
            relation = self.context.nodes.settled(relation, self._needed(*own), self.context.label)
        else:
            relation, own = plan_bound(relation, own, self._needed(), self.context)
        relation = relation.tested(own, self.context.words)
        if self._is_given(i):
            for membership in [m for m in self.memberships if m.uses(self.places) == {i}]:
                relation = self._member(relation, membership)
        self.relations[i] = relation

    def _is_given(self, i: int) -> bool:
        """Whether the rows of this relation stand in the result as they are: a condition of WHERE
        on it alone may then be tested below the joins.
        """
        return i not in self.filled and self.kinds[i] not in HALF

    def _own_conditions(self, i: int) -> list[exp.Expr]:
        """The conditions on this relation alone that may be tested below, taken out of ON and
        WHERE; those on nothing at all go with the first relation.
        """
        own: list[exp.Expr] = []
        kind = self.kinds[i]
        if kind in (LEFT, SEMI, ANTI) or (kind == INNER and 0 < i <= self.strict):
            own, self.on[i] = _alone(self.on[i], i)
        if self._is_given(i):
            more, self.pool = split(self.pool, [i]) if i == 0 else _alone(self.pool, i)
            own += more
        return own

    def _member(self, relation: Relation, membership: Membership) -> Relation:
        self.memberships = [m for m in self.memberships if m is not membership]
        return membership.apply(relation, self._needed(), self.context)

    def _in_written_order(self) -> tuple[Relation | None, set[int]]:
        current, done = None, set[int]()
        for i in range(self.strict + 1):
            current = self.relations[i] if current is None else self._join(current, i, done)
            done.add(i)
            rest, self.on[i] = self.on[i], []
            # Of an inner join: the others have put all of ON into the join.
            current = current.tested([c.node for c in rest], self.context.words)
        return current, done

    def _connects(self, done: frozenset[int], i: int) -> bool:
        if self.kinds[i] != INNER:
            return all(c.uses <= done | {i} for c in self.on[i])
        return any(equality(c.node, done, [i], self.places) for c in self.pool)

    def _join(self, current: Relation, i: int, done: set[int]) -> Relation:
        """One more relation; its equalities are the key of the join.

        What else ON says is a condition of the join, if that is not inner; else it is tested above.
        """
        kind = self.kinds[i]
        if kind == RIGHT:
            below, self.on[i] = split(self.on[i], done)
            current = current.tested(below, self.context.words)
        pooled = kind == INNER and i > self.strict
        found = [
            (c, equality(c.node, done, [i], self.places))
            for c in (self.pool if pooled else self.on[i])
        ]
        on = [self._equality(i, c, e) for c, e in found if e is not None]
        others = [c for c, e in found if e is None]
        if not on:
            raise without_equality()
        if pooled:
            self.pool = others
        else:
            self.on[i] = others if kind == INNER else []
        conditions = [c.node for c in others] if kind != INNER else []
        right = self.relations[i]
        return plan_join(kind, current, right, on, conditions, self._needed(), self.context)

    def _equality(self, i: int, conjunct: Conjunct, found: Equality) -> Equality:
        """With the column that USING makes of its two sides."""
        merged = self.merged[i].get(text_of(conjunct.node)) if self.merged[i] else None
        return found if merged is None else replace(found, merged=merged.text)

    def _test(self, current: Relation, done: set[int]) -> Relation:
        ready, self.pool = split(self.pool, done)
        return current.tested(ready, self.context.words)


def _alone(conjuncts: Sequence[Conjunct], i: int) -> tuple[list[exp.Expr], list[Conjunct]]:
    return [c.node for c in conjuncts if c.uses == {i}], [c for c in conjuncts if c.uses != {i}]


def check_bounded(relation: Relation) -> Relation:
    """Row numbers that nothing bounds would be of all rows."""
    if relation.ranking is not None:
        raise unbounded(relation.ranking)
    return relation
