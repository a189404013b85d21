"""Random cases from a seed, and smaller ones that fail as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

from belvedere.pipeline.coordinator import Settings
from tests.laws.domains import Table, random_table
from tests.laws.queries import random_view
from tests.laws.world import Case, Create, Run, Write

Key = tuple[Any, ...]
_SHRINKING_SECONDS = 30.0


def random_case(seed: int) -> Case:
    dice = Random(seed)
    table = random_table(dice)
    store = "embedded" if dice.random() < 0.05 else "memory"
    choices = Settings(max_rows=dice.choice([1, 4, 1000]), load_rows=dice.choice([1, 2, 3, 1000]))
    streams = 1 if store == "embedded" else dice.choice([1, 1, 2])
    return Case(table, store, dice.choice([1, 2, 4]), streams, dice.random() < 0.5, choices, tuple(_script(dice, table)))


def _script(dice: Random, table: Table) -> Iterator[Write | Create | Run]:
    waiting = [random_view(dice, table) for _ in range(dice.randint(1, 2))]
    keys = [tuple(dice.choice(table.pools[name]) for name in table.schema.key) for _ in range(dice.randint(3, 9))]
    for _ in range(dice.randint(2, 7)):
        if waiting and dice.random() < 0.6:
            yield Create(waiting.pop())
        yield Write(tuple(_operation(dice, table, keys) for _ in range(dice.randint(1, 8))))
        for _ in range(dice.choice([0, 1, 2, 8])):  # 8: nearly always enough for all views to be live
            yield _run(dice)
    for view in waiting:
        yield Create(view)


def _operation(dice: Random, table: Table, keys: list[Key]) -> tuple[Key, Key | None]:
    key = dice.choice(keys)
    if dice.random() < 0.25:
        return key, None
    named = dict(zip(table.schema.key, key, strict=True))
    return key, tuple(named[n] if n in named else dice.choice(table.pools[n]) for n in table.schema.names)


def _run(dice: Random) -> Run:
    tasks = dice.choice([1, 2])
    return Run(tasks) if dice.random() < 0.85 else Run(tasks, dice.choice([-1, 0, 1, 2, 3]), dice.random() < 0.5)


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that fails and none of whose simpler forms does, as far as the time allows."""
    deadline = time.monotonic() + _SHRINKING_SECONDS
    while time.monotonic() < deadline:
        smaller = next((c for c in _simpler(case) if time.monotonic() < deadline and fails(c)), None)
        if smaller is None:
            break
        case = smaller
    return case


def _simpler(case: Case) -> Iterator[Case]:
    for i in range(len(case.script)):
        yield replace(case, script=case.script[:i] + case.script[i + 1 :])
    for name, value in (("store", "memory"), ("slots", 1), ("streams", 1), ("before_images", True), ("settings", Settings())):
        if getattr(case, name) != value:
            yield replace(case, **{name: value})
    for i, action in enumerate(case.script):
        for other in _simpler_actions(action):
            yield replace(case, script=(*case.script[:i], other, *case.script[i + 1 :]))


def _simpler_actions(action: Write | Create | Run) -> Iterator[Write | Create | Run]:
    if isinstance(action, Write):
        for i in range(len(action.operations)):
            if len(action.operations) > 1:
                yield Write(action.operations[:i] + action.operations[i + 1 :])
    elif isinstance(action, Run) and action != Run(1):
        yield from {Run(1): 0, Run(action.tasks): 0, Run(1, action.dies_at, action.after): 0}.keys() - {action}
