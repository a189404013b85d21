"""The spectrum: what each algorithm reaches for each kind of transactions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from belvedere.consistency.levels import COMPLETE, CONVERGENT, STRONG, WEAK
from belvedere.warehouse.asof import AsOf
from belvedere.warehouse.conventional import Conventional
from belvedere.warehouse.cstrobe import CStrobe
from belvedere.warehouse.cuts import WHEN_DUE
from belvedere.warehouse.strobe import GStrobe, Strobe, TStrobe
from tests.warehouse.levels import DIVERGES, ORDER, reached
from tests.warehouse.world import Begin
from tests.warehouse.worlds import APART, GLOBAL, LOCAL, SINGLE, Kind, world

KNOWING = "t-strobe with key knowledge"  # where there is something to be known


def strobe(kind: type[Strobe]) -> Begin:
    return lambda shape, positions, rules, view: kind(shape, positions, rules)


def c_strobe(every: int) -> Begin:
    return lambda shape, positions, rules, view: CStrobe(shape, positions, every, rules)


def as_of(every: int) -> Begin:
    return lambda shape, positions, rules, view: AsOf(shape, positions, every, rules)


ALGORITHMS: dict[str, Begin] = {
    "conventional": lambda shape, positions, rules, view: Conventional(shape, positions),
    "strobe": strobe(Strobe),
    "t-strobe": strobe(TStrobe),
    "g-strobe": strobe(GStrobe),
    KNOWING: TStrobe,
    "c-strobe": c_strobe(1),
    "c-strobe every 3": c_strobe(3),
    "c-strobe when due": c_strobe(WHEN_DUE),
    "asof": as_of(1),
    "asof every 3": as_of(3),
    "asof when due": as_of(WHEN_DUE),
}
KINDS = (SINGLE, LOCAL, GLOBAL, APART)
REACHES: dict[str, tuple[str, ...]] = {  # as KINDS
    "conventional": (DIVERGES, DIVERGES, DIVERGES, DIVERGES),
    "strobe": (STRONG, CONVERGENT, CONVERGENT, CONVERGENT),
    "t-strobe": (STRONG, STRONG, WEAK, WEAK),
    "g-strobe": (STRONG, STRONG, STRONG, STRONG),
    KNOWING: (STRONG, STRONG, WEAK, WEAK),
    "c-strobe": (COMPLETE, COMPLETE, STRONG, STRONG),
    "c-strobe every 3": (STRONG, STRONG, STRONG, STRONG),
    "c-strobe when due": (STRONG, STRONG, STRONG, STRONG),
    "asof": (COMPLETE, COMPLETE, STRONG, STRONG),
    "asof every 3": (STRONG, STRONG, STRONG, STRONG),
    "asof when due": (STRONG, STRONG, STRONG, STRONG),
}


@dataclass(frozen=True, slots=True)
class Tally:
    """How many schedules have reached which level, and what happened in them."""

    levels: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        return min(self.levels, key=ORDER.index)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.levels + other.levels, self.happened + other.happened)

    def __str__(self) -> str:
        return ", ".join(f"{level} {self.levels[level]}" for level in ORDER if self.levels[level])


def tally(algorithm: str, kind: Kind, seeds: range) -> Tally:
    levels, happened = Counter[str](), Counter[str]()
    if algorithm == KNOWING:
        kind = replace(kind, lookup=True, project=False)
    for seed in seeds:
        played = world(seed, kind, ALGORITHMS[algorithm]).run()
        levels[reached(played)] += 1
        happened += played.counts
        happened["crashes"] += played.crashes
    return Tally(levels, happened)
