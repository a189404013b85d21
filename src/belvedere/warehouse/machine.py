"""What the algorithms of the Strobe family have in common: events in, `Ask` and `Apply` out.

    received(transaction)    a source has told a transaction, and it is durable in the spool
    found(query, ...)        rows that a source has found for a query, as the algorithm wants them
    partly(query)            some sources have answered a query, and others have to be asked yet
    answered(query, rows)    a query is answered by all its sources

A machine has no threads, no clock and no input or output. What it remembers is lost in a crash:
another one begins at the positions of the last `Apply` that was durable, and receives all
transactions behind them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from belvedere.warehouse.rows import Combination, Key, Row, Shape

INSERT, DELETE = 1, -1


@dataclass(frozen=True, slots=True)
class Update:
    """One row that a transaction inserts (1) or deletes (-1) in a member of the view."""

    sign: int
    member: int
    row: Row


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction, or the part of a global one, at one source. `parts` are the sources that take
    part, if it is global; `gid` is then the same in each.
    """

    id: str
    source: str
    position: str
    updates: tuple[Update, ...]
    gid: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """The view's expression with some members replaced by given rows (None: the relation itself).

    `changed` is the member whose change this is about, and `weight` how its rows count.
    """

    given: tuple[tuple[Row, ...] | None, ...]
    changed: int = 0
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Query:
    """A sum of terms."""

    number: int
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    query: Query


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """Take away the view rows that were made of rows of a member with these keys."""

    member: int
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class AddRows:
    """Add view rows that are not there yet."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Weigh:
    """Change how often view rows are there."""

    weights: Mapping[Row, int]


Action: TypeAlias = DeleteKeys | AddRows | Weigh


@dataclass(frozen=True, slots=True)
class Apply:
    """Actions in order, to be applied at once and together with what the next process must know:
    the positions that the view then has, and what was received that no answer has shown yet.
    """

    actions: tuple[Action, ...]
    covered: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, Sequence[str]] = field(default_factory=dict)


Step: TypeAlias = Ask | Apply
Answers: TypeAlias = Sequence[Sequence[Combination]]  # per term of a query


class Machine(Protocol):
    def received(self, transaction: Transaction) -> list[Step]: ...

    @property
    def is_held(self) -> bool:
        """Whether something waits until it is due."""

    def due(self) -> list[Step]:
        """Time for the next batch, where batches are of a time."""

    def found(self, query: Query, term: Term, member: int, rows: Iterable[Row]) -> Iterable[Row]:
        """What a source has of a member now, or what it had when the algorithm needs it."""

    def partly(self, query: Query) -> list[Step]: ...

    def answered(self, query: Query, answers: Answers) -> list[Step]: ...


def substituted(shape: Shape, updates: Iterable[Update], weight: int = 1) -> list[Term]:
    """V<U>: a term per member that was changed, with all its rows."""
    rows: dict[int, list[Row]] = {}
    for update in updates:
        rows.setdefault(update.member, []).append(update.row)
    terms = []
    for member, given in rows.items():
        places = [None] * len(shape.members)
        terms.append(Term((*places[:member], tuple(given), *places[member + 1 :]), member, weight))
    return terms


def without(
    shape: Shape, answers: Iterable[Combination], gone: Iterable[tuple[int, Key]]
) -> list[Combination]:
    """key_delete of many keys: combinations in which none of these rows has a part."""
    keys: dict[int, set[Key]] = {}
    for member, key in gone:
        keys.setdefault(member, set()).add(key)

    def stays(combination: Combination) -> bool:
        for member, deleted in keys.items():
            row = combination[member]
            if row is not None and shape.members[member].key_of(row) in deleted:
                return False
        return True

    return [c for c in answers if stays(c)]
