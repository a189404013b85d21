"""Fault mixes: what happens in a schedule, and how often. Each is a small TOML file in `mixes/`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.simulation.oracle import VIEWS

FOLDER = Path(__file__).with_name("mixes")


@dataclass(frozen=True, slots=True)
class Mix:
    name: str
    # the work
    # "images": logged with before-images, "plain": without, so with a delta view
    tables: tuple[str, ...] = ("images",)
    rows: int = 4  # in each table from the beginning
    operations: int = 12
    bursts: float = 0.4  # probability that an operation follows at once on the one before
    writers: int = 1
    keys: int = 5
    groups: int = 3
    views: tuple[str, ...] = tuple(VIEWS)  # chosen from these
    live: int = 2  # views from the beginning
    level: str = "strong"  # that views ask for
    creations: int = 0  # statements of one more client: CREATE, CREATE OR REPLACE, DROP
    readers: int = 0
    long_readers: int = 0  # with pins
    # the place
    slots: int = 3
    streams: int = 1
    by_row: bool = False  # a store of single rows, without slot transactions
    history: int = 1
    max_rows: int = 3  # operations per epoch
    wide: float = 0.5  # share of epochs that run in several tasks
    # the faults, as probabilities
    duplicate: float = 0.0  # per task: a second attempt without need
    kill: float = 0.0  # per attempt: it dies
    # per attempt: it sleeps, and goes on after its epoch and others are committed
    late: float = 0.0
    reach: int = 14  # an attempt dies or falls asleep at one of its first so many points
    lost: float = 0.0  # per task: its finished output is lost and computed again
    crash: float = 0.0  # per coordinator: it dies
    pause: float = 0.0  # per coordinator: it stands still until its lease is over, then goes on
    coordinators: int = 4  # after so many of them, the last one stays

    @classmethod
    def of(cls, name: str, values: dict[str, Any]) -> Mix:
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"mix {name}: unknown settings {', '.join(sorted(unknown))}")
        lists_as_tuples: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
        }
        return cls(name, **lists_as_tuples)


# The specifications that everything must be right on: of slots and of rows, one stream and three.
PLACES: dict[str, dict[str, Any]] = {
    "slots": {},
    "rows": {"by_row": True},
    "slots, 3 streams": {"streams": 3},
    "rows, 3 streams": {"by_row": True, "streams": 3},
}


def at(mix: Mix, place: str) -> Mix:
    """The same mix at another place."""
    return replace(mix, **PLACES[place])


@cache
def mixes() -> dict[str, Mix]:
    return {
        path.stem: Mix.of(path.stem, tomllib.loads(path.read_text()))
        for path in sorted(FOLDER.glob("*.toml"))
    }
