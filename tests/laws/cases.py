"""Random cases of views over one table, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from belvedere.epochs.settings import Settings
from tests.laws.domains import LIMIT, Table, random_table
from tests.laws.queries import random_view
from tests.laws.script import Action, Base, Case, Create, Run, Write

Key = tuple[Any, ...]


def random_case(seed: int) -> Case:
    dice = Random(seed)
    store = "embedded" if dice.random() < 0.05 else memory_of(seed)
    longest_key = limit_of(seed)
    table = random_table(dice, longest_key is None)
    choices = Settings(max_rows=dice.choice([1, 4, 1000]), load_rows=dice.choice([1, 2, 3, 1000]))
    streams = 1 if store == "embedded" else dice.choice([1, 1, 3])
    slots, before_images = dice.choice([1, 2, 4]), dice.random() < 0.5
    return Case(
        "single",
        (Base("base", table, before_images),),
        store,
        slots,
        streams,
        choices,
        tuple(_script(dice, table)),
        longest_key,
    )


def memory_of(seed: int) -> str:
    """Which of the specifications in memory a case runs on: of slots or of rows."""
    return "rows" if seed % 3 == 0 else "memory"


def limit_of(seed: int) -> int | None:
    """What the store takes as a key; mostly any."""
    return LIMIT if seed % 4 == 0 else None


def _script(dice: Random, table: Table) -> Iterator[Action]:
    waiting = [Create(random_view(dice, table), f"view{i}") for i in range(dice.randint(1, 2))]
    keys = [
        tuple(dice.choice(table.pools[name]) for name in table.schema.key)
        for _ in range(dice.randint(3, 9))
    ]
    for _ in range(dice.randint(2, 7)):
        if waiting and dice.random() < 0.6:
            yield waiting.pop()
        yield Write(tuple(_operation(dice, table, keys) for _ in range(dice.randint(1, 8))))
        # 8: nearly always enough for all views to be live
        for _ in range(dice.choice([0, 1, 2, 8])):
            yield random_run(dice)
    yield from waiting


def _operation(dice: Random, table: Table, keys: list[Key]) -> tuple[Key, Key | None]:
    key = dice.choice(keys)
    if dice.random() < 0.25:
        return key, None
    named = dict(zip(table.schema.key, key, strict=True))
    return key, tuple(
        named[n] if n in named else dice.choice(table.pools[n]) for n in table.schema.names
    )


def random_run(dice: Random) -> Run:
    tasks = dice.choice([1, 2])
    return (
        Run(tasks)
        if dice.random() < 0.85
        else Run(tasks, dice.choice([-1, 0, 0, 1, 1, 2]), dice.random() < 0.5)
    )
