"""FROM: the relations that stand in it, how each is joined to those before it, and which columns a
name means.

What a table or a subquery is, only the back end knows: it answers with a relation of its own kind
and the columns of it (`Relations`). How these are named, joined and merged is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, Protocol, TypeVar

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.front.binding import Field, bind, text_of
from belvedere.sql.front.names import Names
from belvedere.sql.front.parentheses import is_parenthesised, joins_in
from belvedere.sql.front.purpose import Purpose
from belvedere.sql.names import qualified

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]
INNER: Final = "inner"
LEFT: Final = "left"
RIGHT: Final = "right"
FULL: Final = "full"
SEMI: Final = "semi"
ANTI: Final = "anti"
HALF = (SEMI, ANTI)  # they give out columns of the left side only

_HALF_KINDS: dict[str, JoinKind] = {"SEMI": SEMI, "ANTI": ANTI}
_SIDES: dict[str, JoinKind] = {"": INNER, "LEFT": LEFT, "RIGHT": RIGHT, "FULL": FULL}
_OTHER_KINDS = ("", "INNER", "OUTER", "CROSS")

R = TypeVar("R")  # what a back end calls a relation


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """A relation, and its columns as the user may name them."""

    fields: tuple[Field, ...]
    relation: R


@dataclass(frozen=True, slots=True)
class Joined(Generic[R]):
    """A relation of FROM; `on` are the conditions of its join, with columns bound: first the
    equalities of USING.

    `crossed`: after a comma or CROSS JOIN.

    `merged` are the columns that USING makes of two in a full join: by the texts of their
    equalities.
    """

    relation: R
    fields: tuple[Field, ...]
    kind: JoinKind = INNER
    on: tuple[exp.Expr, ...] = ()
    crossed: bool = False
    merged: Mapping[str, Field] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class From(Generic[R]):
    joined: tuple[Joined[R], ...]
    names: Names

    @property
    def places(self) -> dict[str, int]:
        """The number of the relation that each bound column is of; a merged one is there with the
        second of its two relations.
        """
        return {
            f.text: i for i, j in enumerate(self.joined) for f in (*j.fields, *j.merged.values())
        }


class Relations(Protocol[R]):
    """What a back end makes of the parts of FROM."""

    @property
    def around(self) -> Names:
        """No columns of its own; the query around and the relations beside this one."""

    @property
    def opens(self) -> bool:
        """Whether the relations in parentheses that begin FROM are joined like those behind it,
        instead of being one relation.
        """

    def fresh(self, name: str) -> Field:
        """A new column that belongs to no relation."""

    def table(self, node: exp.Table) -> Answer[R]:
        """What has this name: a table, a view, or a query of WITH."""

    def other(self, node: exp.Expr, beside: Names | None) -> Answer[R]:
        """A subquery, which may know that `beside` stands before it, or whatever else is in
        FROM.
        """

    def enclose(self, node: exp.Subquery, beside: Names | None) -> Answer[R]:
        """A join in parentheses as one relation, with the columns of `bind_joins` in their
        order.
        """


# ---------------------------------------------------------------- relations


def bind_joins(first: exp.Expr, joins: Sequence[exp.Join], relations: Relations[R]) -> From[R]:
    """A relation and those that are joined to it."""
    if relations.opens and is_parenthesised(first):
        start = _open(first, relations)
    else:
        found = bind_relation(first, None, relations)
        names = replace(relations.around, fields=found.fields)
        start = From((Joined(found.relation, found.fields),), names)
    joined, names = list(start.joined), start.names
    crossed = any(item.crossed for item in joined)
    for node in joins:
        item, names = _join(node, names, relations)
        crossed = crossed or item.crossed
        # the parser does not tell whether a comma or CROSS JOIN came before
        if crossed and item.kind in (RIGHT, FULL):
            construct = f"{item.kind.upper()} JOIN after a comma or CROSS JOIN"
            raise names.purpose.refused(construct, "write it first")
        joined.append(item)
    return From(tuple(joined), names)


def _open(first: exp.Subquery, relations: Relations[R]) -> From[R]:
    """Parentheses around the first relations only change names."""
    inner = bind_joins(first.this, joins_in(first), relations)
    return replace(inner, names=replace(inner.names, fields=_rename_all(inner.names.fields, first)))


def bind_relation(node: exp.Expr, beside: Names | None, relations: Relations[R]) -> Answer[R]:
    """What stands in FROM, with its alias in front of its columns."""
    if is_parenthesised(node):
        return _bind_parentheses(node, beside, relations)
    if isinstance(node, exp.Table):
        _check_name(node, relations.around.purpose)
        found, name = relations.table(node), node.alias_or_name
    else:
        found, name = relations.other(node, beside), node.alias
    found = rename(found, column_names(node.args.get("alias")), text_of(node))
    fields = tuple(replace(f, relation=name, visible=True) for f in found.fields)
    return replace(found, fields=fields)


def _bind_parentheses(
    node: exp.Subquery, beside: Names | None, relations: Relations[R]
) -> Answer[R]:
    if joins_in(node):
        found = relations.enclose(node, beside)
    else:
        found = bind_relation(node.this, beside, relations)
    return replace(found, fields=_rename_all(found.fields, node))


def _check_name(node: exp.Table, purpose: Purpose) -> None:
    if not isinstance(node.this, exp.Identifier):
        raise purpose.refused_relation(node)
    if node.args.get("db") or node.args.get("catalog"):  # `parse` has made one name of relations'
        raise qualified(part.name for part in node.parts)


def _rename_all(fields: Sequence[Field], node: exp.Expr) -> tuple[Field, ...]:
    """The columns under the alias of parentheses, if there is one: what USING merged away is gone
    then.
    """
    alias = node.args.get("alias")
    if alias is None:
        return tuple(fields)
    shown = [f for f in fields if f.visible]
    names = listed_names(column_names(alias), [f.name for f in shown], text_of(alias))
    return tuple(replace(f, relation=node.alias, name=n) for f, n in zip(shown, names, strict=True))


def column_names(alias: exp.Expr | None) -> list[str]:
    """The columns that AS t (a, b) names."""
    return [c.name for c in alias.args.get("columns") or []] if alias is not None else []


def listed_names(listed: Sequence[str], names: Sequence[str], text: str) -> Sequence[str]:
    """The names that are listed for these columns, or their own if none are."""
    if listed and len(listed) != len(names):
        raise SqlError(f"{text} names {len(listed)} column(s), the relation has {len(names)}")
    return listed or names


def rename(answer: Answer[R], listed: Sequence[str], text: str) -> Answer[R]:
    """The columns under other names, as in AS t (a, b)."""
    names = listed_names(listed, [f.name for f in answer.fields], text)
    fields = tuple(replace(f, name=n) for f, n in zip(answer.fields, names, strict=True))
    return replace(answer, fields=fields)


# ---------------------------------------------------------------- joins


@dataclass(frozen=True, slots=True)
class _Pair:
    """A column of USING on both sides."""

    left: Field
    right: Field

    @property
    def equality(self) -> exp.Expr:
        return exp.EQ(this=self.left.bound, expression=self.right.bound)


def _join(node: exp.Join, before: Names, relations: Relations[R]) -> tuple[Joined[R], Names]:
    """One more relation, and the columns in sight after it."""
    kind = _kind(node, before.purpose)
    right = bind_relation(node.this, before, relations)
    both = replace(before, fields=before.fields + right.fields)
    pairs = _pairs(node, before.fields, right.fields)
    equalities = [pair.equality for pair in pairs]
    on = (*equalities, *_conditions(node, both))
    made = [relations.fresh(pair.left.name) for pair in pairs] if kind == FULL else []
    merged = {text_of(e): f for e, f in zip(equalities, made, strict=False)}
    fields = before.fields if kind in HALF else both.fields
    if pairs:
        fields = _merge(fields, pairs, kind, made)
    crossed = node.kind == "CROSS"
    joined = Joined(right.relation, right.fields, kind, on, crossed, merged)
    return joined, replace(both, fields=fields)


def _conditions(node: exp.Join, both: Names) -> list[exp.Expr]:
    """What ON says, bound."""
    bound = []
    for condition in both.purpose.conditions(node.args.get("on")):
        both.purpose.check_subqueries(condition, "ON")
        bound.append(bind(condition, both.find))
    return bound


def _kind(node: exp.Join, purpose: Purpose) -> JoinKind:
    half = node.kind in _HALF_KINDS
    known = node.kind in (*_OTHER_KINDS, *_HALF_KINDS) and node.side in _SIDES
    if not known or node.method not in ("", "NATURAL"):
        raise purpose.refused_join(node)
    if half and node.side not in ("", "LEFT"):
        raise purpose.refused_join(node)
    return _HALF_KINDS[node.kind] if half else _SIDES[node.side]


def _pairs(node: exp.Join, left: Sequence[Field], right: Sequence[Field]) -> list[_Pair]:
    """The columns that USING lists, or for NATURAL those that both sides have."""
    names = [column.name for column in node.args.get("using") or []]
    if node.method == "NATURAL":
        there = {f.name.lower() for f in right if f.visible}
        names = [f.name for f in left if f.visible and f.name.lower() in there]
    return [_Pair(_one(left, name), _one(right, name)) for name in names]


def _one(fields: Sequence[Field], name: str) -> Field:
    found = [f for f in fields if f.visible and f.name.lower() == name.lower()]
    if len(found) != 1:
        what = "the column is ambiguous" if found else "both sides must have the column"
        raise SqlError(f"USING ({name}): {what}")
    return found[0]


def _merge(
    fields: Sequence[Field], pairs: Sequence[_Pair], kind: JoinKind, made: Sequence[Field]
) -> tuple[Field, ...]:
    """USING gives one column for two: the side that is always there, or `made`, whichever is there
    after a FULL JOIN.
    """
    merged = made or [pair.right if kind == RIGHT else pair.left for pair in pairs]
    first = {f.key for f in merged}
    gone = {f.key for pair in pairs for f in (pair.left, pair.right)}
    # Before the others, because t.* gives them out first. One that has no relation was merged
    # before, and cannot be named any more.
    hidden = [replace(f, visible=False) for f in fields if f.key in gone - first and f.relation]
    return (*merged, *hidden, *(f for f in fields if f.key not in gone))
