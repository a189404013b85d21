"""What an update costs in subqueries, where the sources change faster than the warehouse works.

Every relation is at a source of its own, twelve updates are committed, and most rows join with most
others: the paper's bounds are about such cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from tests.warehouse.spectrum import ALGORITHMS
from tests.warehouse.worlds import SINGLE, Kind, world

NUMBERS = (3, 4, 5)  # of relations
PRICED = ("strobe", "c-strobe", "c-strobe every 3", "asof", "asof every 3")
UPDATES = 12
_NAMES = "vwxyz"


@dataclass(frozen=True, slots=True)
class Price:
    mean: float  # subqueries per update
    worst: float  # the same, of the worst run
    states: float  # of the view, per run


def price(algorithm: str, relations: int, runs: int) -> Price:
    places = (_NAMES[:relations],)
    kind = Kind(SINGLE, lag=0.0, crash=0.0, bias=4.0, places=places, updates=UPDATES, alike=0.8)
    worlds = [world(seed, kind, ALGORITHMS[algorithm]).run() for seed in range(runs)]
    asked = [played.asked / UPDATES for played in worlds]
    return Price(mean(asked), max(asked), mean(len(played.states) - 1 for played in worlds))
