"""Levels over a set of source states that is ordered in part.

A source state is a vector: so many steps of every line. For whole views the lines are streams and
the steps transactions; for one record the lines are rows and the steps their versions. With one
line this is the plain sequence of states.

    weak       every state seen is the value of some vector
    strong     there are v1 <= v2 <= ... with these values. Of all vectors that a state can stand
               for only the least ones above those of the state before matter: what can follow
               a vector can follow every smaller one. So this is exact, without going back.
    complete   a path of single steps, from the first vector to the last, shows exactly these
               values, each as often in a row as one likes
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from belvedere.consistency.levels import Undecided

Point = tuple[int, ...]
LIMIT = 20_000  # source states that are looked at


@dataclass(slots=True)
class Lattice:
    first: Point
    last: Point
    evaluate: Callable[[Point], Hashable]
    limit: int = LIMIT
    _known: dict[Point, Hashable] = field(default_factory=dict)

    def value(self, point: Point) -> Hashable:
        if point not in self._known:
            if len(self._known) >= self.limit:
                raise Undecided(f"more than {self.limit:,} source states would have to be tried")
            self._known[point] = self.evaluate(point)
        return self._known[point]

    def next(self, point: Point) -> Iterator[Point]:
        for i, steps in enumerate(point):
            if steps < self.last[i]:
                yield (*point[:i], steps + 1, *point[i + 1 :])

    def least(self, starts: Sequence[Point], wanted: Hashable) -> list[Point]:
        """The least points at or above one of `starts` that have the wanted value."""
        found: list[Point] = []
        layer = list(dict.fromkeys(starts))
        seen = set(layer)
        while layer:
            layer.sort(key=sum)
            point = layer.pop(0)
            if any(_covers(point, f) for f in found):
                continue
            if self.value(point) == wanted:
                found.append(point)
                continue
            for other in self.next(point):
                if other not in seen:
                    seen.add(other)
                    layer.append(other)
        return found


def _covers(point: Point, other: Point) -> bool:
    return all(a >= b for a, b in zip(point, other, strict=True))


def first_strange(lattice: Lattice, states: Sequence[Hashable]) -> int | None:
    """The number of the first state that no source state has (weak)."""
    known: dict[Hashable, bool] = {}
    for number, state in enumerate(states):
        if state not in known:
            known[state] = bool(lattice.least([lattice.first], state))
        if not known[state]:
            return number
    return None


def first_backward(
    lattice: Lattice, states: Sequence[Hashable], hints: Sequence[Point | None] = ()
) -> int | None:
    """The number of the first state that no source state at or after those before has (strong)."""
    if hints and _hints_hold(lattice, states, hints):
        return None
    frontier = [lattice.first]
    for number, state in enumerate(states):
        frontier = lattice.least(frontier, state)
        if not frontier:
            return number
    return None


def _hints_hold(
    lattice: Lattice, states: Sequence[Hashable], hints: Sequence[Point | None]
) -> bool:
    """Whether the places that the writer names are in order and have these values: then nothing
    has to be searched.
    """
    before = lattice.first
    for state, hint in zip(states, hints, strict=True):
        if hint is None or not _covers(hint, before) or not _covers(lattice.last, hint):
            return False
        if lattice.value(hint) != state:
            return False
        before = hint
    return True


def first_skipped(lattice: Lattice, states: Sequence[Hashable]) -> tuple[int, Point] | None:
    """None if some path of single steps shows exactly these states (complete); else how many
    changes could be followed, and the last point that shows what was seen then. The first source
    state is shown by assumption.
    """
    shown = [lattice.value(lattice.first)]
    for state in states:
        if state != shown[-1]:
            shown.append(state)
    furthest, todo, seen = (0, lattice.first), [(lattice.first, 0)], {(lattice.first, 0)}
    while todo:
        point, at = todo.pop()
        furthest = max(furthest, (at, point))
        if point == lattice.last and at == len(shown) - 1:
            return None
        for other in lattice.next(point):
            value = lattice.value(other)
            for step in (at, at + 1):
                place = (other, step)
                if step < len(shown) and shown[step] == value and place not in seen:
                    seen.add(place)
                    todo.append(place)
    return furthest
