"""Rows of relations, combinations of them, and joins: all that the warehouse computes with.

    row           the values of one relation's columns that a view needs, its key among them
    combination   per relation of a view a row, None for those that are not joined yet
    view row      what the view shows of a whole combination

Joins are on equal columns, and NULL is equal to nothing. Everything else of a SELECT (conditions,
expressions, groups) is a view over these rows, and none of the warehouse's business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[Any, ...]
Combination: TypeAlias = tuple[Row | None, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A relation of a view: where it is, the columns that travel, and which of them are its key."""

    name: str
    source: str
    columns: tuple[str, ...]
    key: tuple[int, ...]

    def key_of(self, row: Row) -> Key:
        return tuple(row[i] for i in self.key)


@dataclass(frozen=True, slots=True)
class Equality:
    """`left` and `right` are members by number; the columns are numbers of their columns."""

    left: int
    left_column: int
    right: int
    right_column: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A view as the warehouse sees it: relations, what joins them, and (member, column) shown."""

    members: tuple[Member, ...]
    equalities: tuple[Equality, ...]
    shown: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted({m.source for m in self.members}))

    @property
    def has_keys(self) -> bool:
        """Whether the view shows the keys of all its relations."""
        return all((n, i) in self.shown for n, m in enumerate(self.members) for i in m.key)

    def show(self, combination: Combination) -> Row:
        return tuple(_known(combination[member])[column] for member, column in self.shown)

    def key_shown(self, member: int) -> Callable[[Row], Key]:
        """How to find the key of a member in a view row."""
        places = [self.shown.index((member, column)) for column in self.members[member].key]
        return lambda row: tuple(row[i] for i in places)

    def meeting(self, member: int, known: Collection[int]) -> list[tuple[int, int, int]]:
        """What joins a member with those that are known: its column, another member, its column."""
        found = []
        for e in self.equalities:
            if e.left == member and e.right in known:
                found.append((e.left_column, e.right, e.right_column))
            if e.right == member and e.left in known:
                found.append((e.right_column, e.left, e.left_column))
        return found

    def neighbours(self, known: Collection[int]) -> list[int]:
        """Members that a join ties to what is known; all others if it ends there."""
        others = [n for n in range(len(self.members)) if n not in known]
        return [n for n in others if self.meeting(n, known)] or others

    def empty(self) -> Combination:
        return (None,) * len(self.members)


def _known(row: Row | None) -> Row:
    assert row is not None, "the combination is not whole"
    return row


def put(combination: Combination, member: int, row: Row) -> Combination:
    return (*combination[:member], row, *combination[member + 1 :])


def join(
    shape: Shape,
    combinations: Sequence[Combination],
    known: Collection[int],
    member: int,
    rows: Iterable[Row],
) -> list[Combination]:
    """Every combination with every row of a further member that it agrees with."""
    ties = shape.meeting(member, known)
    by_values: dict[Key, list[Row]] = {}
    for row in rows:
        by_values.setdefault(tuple(row[own] for own, _, _ in ties), []).append(row)
    found = []
    for combination in combinations:
        wanted = tuple(_known(combination[other])[column] for _, other, column in ties)
        if None not in wanted:
            found += [put(combination, member, row) for row in by_values.get(wanted, ())]
    return found


def asked_values(
    shape: Shape, combinations: Sequence[Combination], known: Collection[int], member: int
) -> tuple[tuple[int, ...], list[Key]] | None:
    """Columns of a member, and each combination of their values that can join what is known; None
    if nothing restricts it.
    """
    ties = shape.meeting(member, known)
    if not ties:
        return None
    columns = tuple(dict.fromkeys(own for own, _, _ in ties))
    first = [next(tie for tie in ties if tie[0] == column) for column in columns]
    values = dict.fromkeys(
        tuple(_known(c[other])[column] for _, other, column in first) for c in combinations
    )
    return columns, [v for v in values if None not in v]


def chunks(values: Sequence[Key], size: int) -> Iterator[Sequence[Key]]:
    """At least one, perhaps empty: an answer says what it shows even where nothing was asked."""
    for start in range(0, max(1, len(values)), size):
        yield values[start : start + size]
