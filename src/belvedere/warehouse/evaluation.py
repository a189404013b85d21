"""source_evaluate: the way of one query over the sources.

A term starts with the rows that it is given and goes on to neighbours of what is known: only values
of join columns travel, and rows that agree with them come back. Terms that go to the same source
are asked together, and what several of them want of a relation is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from belvedere.warehouse.machine import Answers, Query, Term
from belvedere.warehouse.rows import Combination, Key, Row, Shape, asked_values, join

Choose: TypeAlias = Callable[[Sequence[str]], str]  # next_source, among those that are possible


def first(sources: Sequence[str]) -> str:
    return sources[0]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a member: all of them (`values` is None), or those with values in some columns."""

    member: int
    columns: tuple[int, ...] = ()
    values: tuple[Key, ...] | None = None


@dataclass(frozen=True, slots=True)
class Leg:
    """Terms that go to one source next, each with the members that are asked for."""

    source: str
    terms: tuple[tuple[int, tuple[int, ...]], ...]
    wanted: tuple[Wanted, ...]


class Way:
    """What is known of one term."""

    def __init__(self, shape: Shape, term: Term) -> None:
        self.shape, self.term = shape, term
        self.combinations: list[Combination] = [shape.empty()]
        self.known: set[int] = set()
        given = [(len(rows), n) for n, rows in enumerate(term.given) if rows is not None]
        if given:
            self._join(min(given)[1])
            self._join_given()

    @property
    def done(self) -> bool:
        return not self.combinations or len(self.known) == len(self.shape.members)

    def next(self, choose: Choose) -> tuple[str, tuple[int, ...]]:
        """A source, and the neighbours of what is known that it has."""
        possible = self.shape.neighbours(self.known)
        members = self.shape.members
        source = choose(sorted({members[n].source for n in possible}))
        there = [n for n in possible if members[n].source == source]
        tied = [n for n in there if self.shape.meeting(n, self.known)]
        return source, tuple(tied or there[:1])

    def take(self, member: int, rows: Iterable[Row]) -> None:
        self._join(member, rows)
        self._join_given()

    def _join(self, member: int, rows: Iterable[Row] | None = None) -> None:
        rows = self.term.given[member] or () if rows is None else rows
        self.combinations = join(self.shape, self.combinations, self.known, member, rows)
        self.known.add(member)

    def _join_given(self) -> None:
        """Given rows of members that have become neighbours."""
        while near := [n for n in self._neighbours() if self.term.given[n] is not None]:
            self._join(near[0])

    def _neighbours(self) -> list[int]:
        return self.shape.neighbours(self.known)


class Evaluation:
    def __init__(self, shape: Shape, query: Query, choose: Choose = first) -> None:
        self.query = query
        self._shape, self._choose = shape, choose
        self._ways = [Way(shape, term) for term in query.terms]

    @property
    def done(self) -> bool:
        return all(way.done for way in self._ways)

    @property
    def answers(self) -> Answers:
        return [way.combinations for way in self._ways]

    def start(self) -> list[Leg]:
        return self._legs(range(len(self._ways)))

    def go_on(self, leg: Leg, found: Callable[[Term, int], Iterable[Row]]) -> list[Leg]:
        """Take what a source has found, and tell where its terms go next."""
        for number, members in leg.terms:
            way = self._ways[number]
            for member in members:
                if member not in way.known:
                    way.take(member, found(way.term, member))
        return self._legs([number for number, _ in leg.terms])

    def _legs(self, numbers: Iterable[int]) -> list[Leg]:
        going: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for number in numbers:
            if not self._ways[number].done:
                source, members = self._ways[number].next(self._choose)
                going.setdefault(source, []).append((number, members))
        return [Leg(s, tuple(terms), self._wanted(terms)) for s, terms in going.items()]

    def _wanted(self, terms: Iterable[tuple[int, tuple[int, ...]]]) -> tuple[Wanted, ...]:
        found: dict[tuple[int, tuple[int, ...]], dict[Key, None]] = {}
        whole: dict[int, None] = {}
        for number, members in terms:
            way = self._ways[number]
            for member in members:
                asked = asked_values(self._shape, way.combinations, way.known, member)
                if asked is None:
                    whole[member] = None
                else:
                    columns, values = asked
                    found.setdefault((member, columns), {}).update(dict.fromkeys(values))
        keyed = [Wanted(m, c, tuple(v)) for (m, c), v in found.items() if m not in whole]
        return (*map(Wanted, whole), *keyed)
