"""The contract of sources: databases of others, whose changes are followed and whose rows are asked
for.

    Source    one database: says what its relations are, prepares them, answers queries
    Monitor   follows its log: whole transactions, net per key, in the order of their commits

Positions, markers and ids of transactions are texts that only the source can read:

    position     a place in the source's log; to follow from it gives every transaction behind it
    transaction  names one transaction, the same whenever it is followed again
    marker       what an answer reflects: which transactions it shows

A log and a connection are two channels: a commit may be followed before a query sees it, and a
query may show what was not followed yet. So every answer has a marker; `shows` tells whether it
shows a transaction, and `end` the position from which on everything that it shows was followed.

Nothing here is durable. Whoever follows keeps transactions together with their positions, and only
then calls `confirm`: the source may forget what lies before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from belvedere.libraries import pa
from belvedere.types import Schema


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as it can be followed: `name` as users write it behind the source's, its columns
    as ours, its primary key. `has_before`: the log tells whole rows before. `needs_copy`: whoever
    follows it has to keep its rows.
    """

    name: str
    schema: Schema
    has_before: bool = True
    needs_copy: bool = False


@dataclass(frozen=True, slots=True)
class RelationChange:
    """What a transaction did to a relation, net per key.

    `before` are the rows that it changed or took away, `after` those that it changed or made, both
    with the relation's Arrow schema. A key in both was updated. Where the log does not tell rows
    before (`Relation.has_before`), `before` has the columns of the key only, of rows that are gone.
    """

    relation: str
    before: pa.Table
    after: pa.Table


@dataclass(frozen=True, slots=True)
class Part:
    """That a transaction is a part of a global one: its name, and all sources that take part."""

    gid: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceTransaction:
    """A committed transaction: `position` is behind it, `time` is when it was committed."""

    transaction: str
    position: str
    time: float
    changes: tuple[RelationChange, ...]
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing more happened to the relations that are followed, up to a position."""

    position: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """A relation cannot be followed beyond a position, and why: it was truncated, altered, ...

    Said once; nothing of this relation comes behind it. Others go on.
    """

    relation: str
    position: str
    reason: str


Event: TypeAlias = SourceTransaction | Quiet | Stopped


class Monitor(Protocol):
    """One connection, used by one thread."""

    def poll(self, timeout: float) -> Sequence[Event]:
        """What comes within so many seconds, in order, as soon as there is something; perhaps
        nothing. Bounded in memory, but for one transaction. Raises SourceUnreachable when the
        connection is gone (begin again with `Source.follow`), SourceLost when the log has a gap.
        """

    def confirm(self, position: str) -> None:
        """All before this position is kept: the source may forget it. Does not wait."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Question:
    """Rows of one relation: some columns (always those of the primary key too, see `names`), where
    `keys` are given only rows that agree with one of them: columns of the relation with the values
    that are asked for, each combination once; NULL agrees with nothing. An answer may have more
    rows than were asked for (collations), never fewer: compare again.
    """

    relation: Relation
    columns: tuple[str, ...]
    keys: pa.Table | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer: those that are asked for and those of the primary key, in
        their order in the relation.
        """
        schema = self.relation.schema
        wanted = {*self.columns, *schema.key}
        return tuple(name for name in schema.names if name in wanted)


@dataclass(frozen=True, slots=True)
class Answer:
    """Tables per question, all as of one snapshot; read them before anything else is asked."""

    marker: str
    end: str
    tables: tuple[Iterator[pa.Table], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lag:
    """How far behind a position is: bytes of log, and what the source keeps for us."""

    bytes: int
    kept_bytes: int
    note: str = ""


class Source(Protocol):
    """One database. Methods may be called by several threads; each call has a connection of its
    own, or waits.
    """

    kind: str  # as in CREATE SOURCE name TYPE kind

    def relations(self) -> list[str]:
        """Names of what could be followed, for SHOW; no promise that `describe` takes them."""

    def describe(self, name: str) -> Relation:
        """A relation with its columns and key. Raises SourceError for one that cannot be followed
        (no primary key, a type that we have not, cascades, no rows in the log, ...) with what to
        do about it.
        """

    def prepare(self, relations: Sequence[Relation]) -> str:
        """Have the source keep its log from now on for these relations (all of them: replaces what
        was prepared), and return a position from which on it does. Idempotent: what was prepared
        before keeps its place.
        """

    def follow(self, relations: Sequence[Relation], position: str) -> Monitor:
        """Follow the log from a position that `prepare` or an event has given. Raises SourceLost if
        the source has forgotten it.
        """

    def position(self) -> str:
        """A position behind every transaction whose commit was acknowledged before this call."""

    def covers(self, position: str, other: str) -> bool:
        """Whether `position` is at or behind `other`."""

    def ask(self, questions: Sequence[Question]) -> Answer:
        """Rows as of one snapshot."""

    def shows(self, marker: str, transaction: str) -> bool:
        """Whether an answer with this marker reflects a transaction."""

    def lag(self, position: str) -> Lag: ...

    def remove(self) -> None:
        """Take away what `prepare` has made (slot, publication). Idempotent."""

    def close(self) -> None: ...
