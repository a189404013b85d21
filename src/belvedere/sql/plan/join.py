"""Two relations arranged by a key and joined.

    Select (key, rest) -> Arrange ─┐
                                   Join -> key, left rest, right rest
    Select (key, rest) -> Arrange ─┘

A side keeps the key and the columns that are needed above, in an order that does not depend on the
query, so that equal sides of different joins are one arrangement. A column that is a key itself is
read from the key where the join makes them equal. Rows with a NULL in a key that never matches are
left out below, where nobody needs them.

    right side unique on the key    inner, left    a row of the left has at most one match: its
                                                   identity is enough
    left side unique on the key     inner          the same for the right
    otherwise                                      both identities, one after the other
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.expressions import Typed, cast_to, common_type
from belvedere.operators.arrange import Arrange
from belvedere.operators.join import Join
from belvedere.operators.matching import join_kind
from belvedere.operators.select import IDENTITY, Expression
from belvedere.sql.front.binding import text_of
from belvedere.sql.front.sources import ANTI, FULL, HALF, INNER, LEFT, RIGHT, SEMI, JoinKind
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.identity import joined_identity, unique_on
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import (
    Branch,
    Identity,
    Relation,
    Test,
    Value,
    column,
    conjunction,
    sort_values,
)
from belvedere.types import BOOLEAN, DOUBLE, SqlType


@dataclass(frozen=True, slots=True)
class Equality:
    """One column of a join key: an expression over each side.

    `merged` is the text of the one column that USING makes of both.
    """

    left: exp.Expr
    right: exp.Expr
    null_safe: bool = False
    merged: str = ""

    @property
    def swapped(self) -> Equality:
        return Equality(self.right, self.left, self.null_safe)


@dataclass(frozen=True, slots=True)
class Side:
    """`plain` has per key column the texts of values that are equal to it in every bit; `same` has
    all that the key determines.
    """

    relation: Relation
    keys: tuple[Value, ...]
    plain: tuple[frozenset[str], ...]
    same: frozenset[str]
    rest: tuple[str, ...] = ()  # texts of values that are kept beside the key
    values: tuple[Value, ...] = ()  # the columns that keep them

    @property
    def unique(self) -> bool:
        return unique_on(self.relation, self.same)

    @property
    def can_be_empty(self) -> bool:
        """The identity of the one row of an aggregate without groups has no bytes."""
        return self.relation.identity is not None and not self.relation.identity.longest

    @property
    def stays(self) -> bool:
        """The rows are partitioned by the key already, so they need not travel."""
        partition = self.relation.partition
        same = partition is not None and len(partition) == len(self.keys)
        return same and all(
            part & plain for part, plain in zip(partition or (), self.plain, strict=True)
        )

    def number(self, text: str) -> int:
        """Where a kept value stands among the columns of the side."""
        place = self.relation.known(text, "").place
        return len(self.keys) + next(i for i, v in enumerate(self.values) if v.place == place)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both sides of a join that is not RIGHT; `wanted` are the values that are needed above it."""

    kind: JoinKind
    left: Side
    right: Side
    on: tuple[Equality, ...]
    wanted: Mapping[str, None]

    @property
    def null_safe(self) -> tuple[bool, ...]:
        return tuple(e.null_safe for e in self.on)

    @property
    def identity(self) -> Literal["left", "right", "both"]:
        """Whose identity a row of the result has: a side's, if the other has one match at most."""
        if self.kind in HALF or (self.kind in (INNER, LEFT) and self.right.unique):
            return "left"
        return "right" if self.kind == INNER and self.left.unique else "both"


def plan_join(
    kind: JoinKind,
    left: Relation,
    right: Relation,
    on: Sequence[Equality],
    conditions: Sequence[exp.Expr],
    needed: Iterable[str],
    context: Context,
) -> Relation:
    """`conditions` are what else must hold for a pair: of an inner join they are tested above it,
    by the caller.
    """
    if kind == RIGHT:
        kind, left, right, on = LEFT, right, left, [e.swapped for e in on]
    pair = _plan_sides(kind, left, right, on, conditions, needed, context)
    node = _add_join(pair, conditions, context)
    values = _with_merged(_outputs(pair), pair)
    identity = _identity_of(pair, left, right, bool(conditions), context.nodes.longest_key)
    return Relation((Branch(node, values),), identity, _partition(pair))


def _plan_sides(
    kind: JoinKind,
    left: Relation,
    right: Relation,
    on: Sequence[Equality],
    conditions: Sequence[exp.Expr],
    needed: Iterable[str],
    context: Context,
) -> _Pair:
    """What each side keeps: of a semi or anti join the right one only its key."""
    a, b = _sides(left, right, on, context)
    wanted = _wanted(kind, a, on, needed)
    inside = [text for node in conditions for text in _known(node, left, right)]
    a = _kept(a, wanted, inside, kind != FULL, context)
    b = _kept(b, [] if kind in HALF else wanted, inside, kind == INNER, context)
    safe = [e.null_safe for e in on]
    if kind in (INNER, SEMI):
        a = _without_nulls(a, safe)
    if kind != FULL:
        b = _without_nulls(b, safe)
    return _Pair(kind, a, b, tuple(on), wanted)


def _add_join(pair: _Pair, conditions: Sequence[exp.Expr], context: Context) -> int:
    """The nodes of both arrangements, and the join over them."""
    # Two empty identities would look like none on either side, so one of them gets a byte.
    empty = pair.kind == FULL and pair.left.can_be_empty and pair.right.can_be_empty
    left, left_rows = _arrange(pair.left, context, 0 if empty else -1)
    right, right_rows = _arrange(pair.right, context)
    condition = _condition(conditions, pair, context)
    kind = join_kind(pair.kind)
    operator = Join(kind, left_rows, right_rows, pair.null_safe, condition, pair.identity)
    return context.nodes.add(operator, ((left,), (right,)), local=True)


def _identity_of(
    pair: _Pair, left: Relation, right: Relation, has_conditions: bool, limit: int
) -> Identity | None:
    """What USING makes of two columns in a full join may tell all rows apart; else what the sides
    have.
    """
    merged = all(e.merged in pair.wanted for e in pair.on)
    if pair.kind == FULL and not has_conditions and merged and _one_per_key(pair):
        parts = tuple(frozenset([e.merged]) for e in pair.on)
        return Identity(parts, exact=False, ordered=False, longest=2 * limit)
    equal = list(zip(pair.left.plain, pair.right.plain, strict=True))
    return joined_identity(pair.kind, pair.identity, left, right, equal)


def _wanted(
    kind: JoinKind, left: Side, on: Sequence[Equality], needed: Iterable[str]
) -> dict[str, None]:
    """What USING makes of two columns of a full join is read from the key, unless the key may
    differ from both in the sign of zero.
    """
    wanted = dict.fromkeys(needed)
    for key, e in zip(left.keys, on, strict=True):
        if kind == FULL and key.type == DOUBLE and e.merged in wanted:
            wanted.update(dict.fromkeys(_columns(e.left) + _columns(e.right)))
    return wanted


def _with_merged(values: dict[str, Typed], pair: _Pair) -> dict[str, Typed]:
    """The values, with the merged columns that are not read from the key."""
    rows = Relation((Branch(0, values),))
    merged = {}
    for e in pair.on:
        if e.merged in pair.wanted and e.merged not in values:
            either = exp.Coalesce(this=e.left.copy(), expressions=[e.right.copy()])
            merged[e.merged] = rows.value(either, "").each[0]
    return {**values, **merged}


def _columns(node: exp.Expr) -> list[str]:
    return [text_of(c) for c in node.find_all(exp.Column)]


def _known(node: exp.Expr, left: Relation, right: Relation) -> list[str]:
    """The largest parts of an expression that are values of a side already."""
    if (text := text_of(node)) in left or text in right:
        return [text]
    return [text for child in node.iter_expressions() for text in _known(child, left, right)]


def _sides(
    left: Relation, right: Relation, on: Sequence[Equality], context: Context
) -> tuple[Side, Side]:
    """The key columns of both sides, cast to their common types as for a comparison."""
    pairs = [
        (left.value(e.left, context.words(e.left)), right.value(e.right, context.words(e.right)))
        for e in on
    ]
    kinds = [common_type([a.each[0].type, b.each[0].type]) for a, b in pairs]
    return _side(left, [a for a, _ in pairs], kinds), _side(right, [b for _, b in pairs], kinds)


def _side(relation: Relation, values: Sequence[Value], kinds: Sequence[SqlType]) -> Side:
    keys = tuple(_key(value, kind) for value, kind in zip(values, kinds, strict=True))
    equal = [
        relation.equal(value) if _is_injective(value, kind) else frozenset[str]()
        for value, kind in zip(values, kinds, strict=True)
    ]
    plain = [
        e if v.each[0].type == kind != DOUBLE else frozenset[str]()
        for e, v, kind in zip(equal, values, kinds, strict=True)
    ]
    return Side(relation, keys, tuple(plain), frozenset[str]().union(*equal))


def _key(value: Value, kind: SqlType) -> Value:
    """A cast that can raise is named, because the records of its errors quote the text."""
    cast = tuple(cast_to(v, kind) for v in value.each)
    raises = any(c.raises and not v.raises for c, v in zip(cast, value.each, strict=True))
    return Value(cast, f"CAST({value.text} AS {str(kind).upper()})" if raises else value.text)


def _is_injective(value: Value, to: SqlType) -> bool:
    """Different values stay different in the type of the key; 0.0 and -0.0, which a primary key
    tells apart, do not.
    """
    kind = value.each[0].type
    if kind is None or kind == to:
        return kind is not None and kind != DOUBLE
    if to.name == "decimal" and kind.name in ("int", "bigint", "decimal"):
        digits = {"int": 10, "bigint": 20}.get(kind.name, kind.precision - kind.scale)
        return to.precision - to.scale >= digits and to.scale >= kind.scale
    return (kind.name, to.name) in (("int", "bigint"), ("date", "timestamp"))


def _kept(
    side: Side, wanted: Iterable[str], inside: Iterable[str], reads_key: bool, context: Context
) -> Side:
    """What the side keeps beside its key: values that are wanted above the join or inside its
    condition, and not read from the key.
    """
    key = frozenset[str]().union(*side.plain)
    texts = [t for t in wanted if not (reads_key and t in key)] + [
        t for t in inside if t not in key
    ]
    rest = [t for t in dict.fromkeys(texts) if t in side.relation]
    values = sort_values(side.relation.known(t, context.label(t)) for t in rest)
    return replace(side, rest=tuple(rest), values=tuple(values))


def _without_nulls(side: Side, null_safe: Sequence[bool]) -> Side:
    relation = side.relation
    for key, safe in zip(side.keys, null_safe, strict=True):
        if not safe and key.nullable:
            tests = [
                Test(
                    Typed(f"({v.sql} IS NOT NULL)", BOOLEAN, v.raises, False),
                    f"{key.text} IS NOT NULL",
                )
                for v in key.each
            ]
            relation = relation.where(tests)
    return replace(side, relation=relation)


def _arrange(side: Side, context: Context, tag: int = -1) -> tuple[int, Arrange]:
    columns = [*side.keys, *side.values]
    count = len(side.keys)
    key = tuple(range(count)) if side.unique else (*range(count), IDENTITY)
    below = context.nodes.feed(side.relation, columns, [key] if key else [], tag)
    operator = Arrange(WANTED, tuple(v.type for v in columns), count, (), side.unique)
    return context.nodes.add(operator, (below,), side.stays), operator


def _matched(left: Side, right: Side) -> dict[str, Typed]:
    """The values of two rows that agree on the key: the key's columns, those of the left, those of
    the right.
    """
    values = {}
    for i, (a, b, key) in enumerate(zip(left.plain, right.plain, left.keys, strict=True)):
        values.update({text: column(i, key.type) for text in a | b})
    for side, shift in ((left, 0), (right, len(left.values))):
        for text in side.rest:
            kind = side.relation.known(text, "").type
            values[text] = column(side.number(text) + shift, kind)
    return values


def _condition(conditions: Sequence[exp.Expr], pair: _Pair, context: Context) -> Expression | None:
    if not conditions:
        return None
    rows = Relation((Branch(0, _matched(pair.left, pair.right)),)).tested(conditions, context.words)
    found = conjunction(rows.branches[0].tests)
    if found is not None and found.raises:
        instead = (
            "move what can raise into a subquery, as a column that is computed before the join"
        )
        raise Unsupported(
            f"the condition {found.text} of an outer, semi or anti join, which can raise,", instead
        )
    return found


def _outputs(pair: _Pair) -> dict[str, Typed]:
    """The values of a row of the result; an outer join makes those of the other side NULL."""
    values: dict[str, Typed] = {}
    sides = [(pair.left, 0, pair.kind == FULL)]
    if pair.kind not in HALF:
        sides.append((pair.right, len(pair.left.values), pair.kind in (LEFT, FULL)))
    for side, shift, outer in sides:
        for text in side.rest:
            value = side.relation.known(text, "")
            values[text] = column(side.number(text) + shift, value.type, value.nullable or outer)
    for i, key in enumerate(pair.left.keys):
        made = column(i, key.type, _is_nullable_key(pair, i))
        values.update(dict.fromkeys(_from_key(pair, i), made))
    return values


def _is_nullable_key(pair: _Pair, number: int) -> bool:
    """Whether a key column of the result can be NULL.

    full            either side's
    left, anti      the left side's
    inner, semi     NULL with NULL, where they match (<=>)
    """
    left, right = pair.left.keys[number].nullable, pair.right.keys[number].nullable
    if pair.kind == FULL:
        return left or right
    return left and (pair.kind in (LEFT, ANTI) or (pair.on[number].null_safe and right))


def _from_key(pair: _Pair, number: int) -> list[str]:
    """The values that are read from a key column of the output; of a full join what USING makes of
    two columns.
    """
    if pair.kind == FULL:
        merged = pair.on[number].merged
        return [merged] if merged and pair.left.keys[number].type != DOUBLE else []
    sides = [pair.left, pair.right] if pair.kind == INNER else [pair.left]
    return [text for side in sides for text in sorted(side.plain[number])]


def _one_per_key(pair: _Pair) -> bool:
    """Every key, none of them NULL, has at most one row on each side; so the column that USING
    makes of two tells all rows apart.
    """
    keys = (*pair.left.keys, *pair.right.keys)
    unique = pair.left.unique and pair.right.unique
    return unique and not any(key.nullable or key.type == DOUBLE for key in keys)


def _partition(pair: _Pair) -> tuple[frozenset[str], ...]:
    """The output stands where its key columns belong; a double may differ from the key in the sign
    of zero.
    """
    return tuple(frozenset(_from_key(pair, i)) for i in range(len(pair.on)))
