"""What makes a row unique, and how long its identity can get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from belvedere.sql.front.sources import JoinKind
from belvedere.sql.plan.relation import Identity, Relation
from belvedere.types import SqlType

_FIELD = 18  # bytes of a field of fixed width in a key, at most


def of_columns(columns: Sequence[tuple[str, SqlType]], limit: int) -> Identity:
    """An identity that is the key of these columns, which a store with this limit has accepted as a
    key.
    """
    parts = tuple(frozenset([text]) for text, _ in columns)
    return Identity(parts, longest=min(limit, longest([kind for _, kind in columns], limit)))


def longest(types: Iterable[SqlType], limit: int) -> int:
    """The most bytes that a key of these types can have; more than the limit, if there is text."""
    return sum(2 * limit if kind.name in ("string", "binary") else _FIELD for kind in types)


def unique_on(relation: Relation, texts: frozenset[str]) -> bool:
    """There is at most one row for each combination of these values."""
    return relation.identity is not None and all(part & texts for part in relation.identity.parts)


def joined_identity(
    kind: JoinKind,
    identity: str,
    left: Relation,
    right: Relation,
    keys: Sequence[tuple[frozenset[str], frozenset[str]]],
) -> Identity | None:
    """The parts of `identity` ("left", "right" or "both"); `keys` are texts of values of both sides
    that the join makes equal.

    A column of the right can stand for its equal of the left only where every row has a match.
    """
    a = _also(left.identity, keys if kind == "inner" else [])
    b = _also(right.identity, [(b, a) for a, b in keys] if kind in ("inner", "left") else [])
    if identity != "both":
        return a if identity == "left" else b
    if a is None or b is None or (kind == "full" and not _told_apart(left, right)):
        return None
    exact = kind == "inner" and a.exact and b.exact
    ordered = kind != "full" and a.ordered and b.ordered
    most = max(a.longest, 1) + max(b.longest, 1)
    return Identity(a.parts + b.parts, exact, ordered, longest=most)


def _also(
    identity: Identity | None, equal: Sequence[tuple[frozenset[str], frozenset[str]]]
) -> Identity | None:
    if identity is None:
        return None
    parts = [
        part.union(*(others for own, others in equal if part & own)) for part in identity.parts
    ]
    return replace(identity, parts=tuple(parts))


def _told_apart(left: Relation, right: Relation) -> bool:
    """After a full join a NULL in an identity says that the side is missing, if it is never NULL
    otherwise.
    """
    return (
        _never_null(left)
        and _never_null(right)
        and any(side.identity and side.identity.parts for side in (left, right))
    )


def _never_null(relation: Relation) -> bool:
    """All columns of the identity are there and are never NULL, so a NULL says that the side is
    missing.
    """
    assert relation.identity is not None
    branch = relation.branches[0]
    return all(
        any(t in branch.values and not branch.values[t].nullable for t in part)
        for part in relation.identity.parts
    )
