"""The level that a world's view has reached, decided by the judge of histories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from belvedere.consistency.lattice import (
    Lattice,
    Point,
    first_backward,
    first_skipped,
    first_strange,
)
from belvedere.consistency.levels import COMPLETE, CONVERGENT, STRONG, WEAK
from belvedere.warehouse.machine import Transaction
from tests.warehouse.reference import Content, evaluate
from tests.warehouse.sources import execute
from tests.warehouse.world import World

DIVERGES = "diverges"
ORDER = (DIVERGES, CONVERGENT, WEAK, STRONG, COMPLETE)
_HALF = "half a global transaction"  # equals no content of a view


@dataclass(slots=True)
class WholeSteps(Lattice):
    """Steps of whole transactions, as a serial order has them: a global one is a single step."""

    parts: list[dict[int, int]] = field(default_factory=list)  # per global one: line, place in it

    def next(self, point: Point) -> Iterator[Point]:
        tied = {(line, place) for parts in self.parts for line, place in parts.items()}
        for line in range(len(point)):
            if point[line] < self.last[line] and (line, point[line]) not in tied:
                yield (*point[:line], point[line] + 1, *point[line + 1 :])
        for parts in self.parts:
            if all(point[line] == place for line, place in parts.items()):
                yield tuple(p + (line in parts) for line, p in enumerate(point))


def reached(world: World) -> str:
    """The highest level that holds; the view is final, as nothing is left to be done.

    For a weak view any state of each source will do, even one inside a global transaction. From
    strong upwards the sources are seen as of a cut that no global transaction crosses.
    """
    if world.broken:
        return DIVERGES
    names = world.shape.sources
    lines = [[t for t in world.transactions if t.source == name] for name in names]
    parts = list(_parts(lines).values())
    values: dict[Point, Content] = {}

    def value(point: Point) -> Content:
        if point not in values:
            values[point] = _view(world, lines, point)
        return values[point]

    def closed_value(point: Point) -> Content | str:
        crossed = any(len({point[line] > place for line, place in p.items()}) > 1 for p in parts)
        return _HALF if crossed else value(point)

    first, last = (0,) * len(lines), tuple(map(len, lines))
    if world.states[-1] != value(last):
        return DIVERGES
    if first_strange(Lattice(first, last, value), world.states) is not None:
        return CONVERGENT
    if first_backward(Lattice(first, last, closed_value), world.states) is not None:
        return WEAK
    whole = WholeSteps(first, last, closed_value, parts=parts)
    return COMPLETE if first_skipped(whole, world.states) is None else STRONG


def _parts(lines: list[list[Transaction]]) -> dict[str, dict[int, int]]:
    """Per global transaction, in which line each part stands, and at which place."""
    found: dict[str, dict[int, int]] = {}
    for line, transactions in enumerate(lines):
        for place, transaction in enumerate(transactions):
            if transaction.parts:
                found.setdefault(transaction.gid, {})[line] = place
    return found


def _view(world: World, lines: list[list[Transaction]], point: Point) -> Content:
    tables = {n: dict(rows) for n, rows in world.initial.items()}
    for line, steps in zip(lines, point, strict=True):
        for transaction in line[:steps]:
            execute(world.shape, tables, transaction)
    return evaluate(world.shape, tables)
