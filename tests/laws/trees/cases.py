"""Random cases of trees: several tables, views on views that come, are replaced and go while
changes of all tables run.

Two mixes: one or two views with deep queries, and several plainer ones that share parts and are
built step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from belvedere.epochs.settings import Settings
from tests.laws.cases import limit_of, memory_of, random_run
from tests.laws.domains import Table
from tests.laws.queries import View
from tests.laws.script import Action, Base, Case, Create, Drop, Settle, Write
from tests.laws.trees.scope import Query
from tests.laws.trees.selects import Trees
from tests.laws.trees.tables import Odds, random_odds, related_tables

_VIEW = re.compile(r"\bview\d+\b")
_NAMES_PER_VIEW = 1000
_ROWS = 12  # keys per table that are ever written
# characters of a query: longer ones take long and find nothing that shorter ones do not
_LONGEST = 600


@dataclass(frozen=True)
class Mix:
    """What the cases of one test are like: choices, each drawn from with equal chance, and chances
    in percent.
    """

    views: tuple[int, ...]
    depths: tuple[int, ...]
    shared: int  # that a subquery is one that was written before
    reads: int  # that later views may read a view
    moves: int  # that in a round a view goes or is replaced
    load_rows: tuple[int, ...]


DEEP = Mix(
    views=(1, 1, 2),
    depths=(1, 1, 1, 2, 2, 2, 3, 3, 4),
    shared=15,
    reads=60,
    moves=8,
    load_rows=(1, 2, 3, 1000, 1000, 1000),
)
SHARED = Mix(
    views=(2, 3, 3),
    depths=(1, 1, 1, 2),
    shared=75,
    reads=75,
    moves=25,
    load_rows=(1, 3, 1000, 1000),
)


def random_tree_case(seed: int, mix: Mix = DEEP) -> Case:
    dice = Random(seed)
    store = "embedded" if dice.random() < 0.02 else memory_of(seed)
    odds = random_odds(dice)
    tables = related_tables(dice, odds)
    bases = tuple(Base(f"t{i}", table, dice.random() < 0.6) for i, table in enumerate(tables))
    choices = Settings(
        max_rows=dice.choice([1, 4, 1000, 1000, 1000]), load_rows=dice.choice(mix.load_rows)
    )
    streams = 1 if store == "embedded" else dice.choice([1, 1, 3])
    script = tuple(_Script(dice, bases, odds, mix).actions())
    slots = dice.choice([1, 2, 3])
    longest_key = limit_of(seed)
    return Case("trees", bases, store, slots, streams, choices, script, longest_key)


def random_shared_case(seed: int) -> Case:
    return random_tree_case(seed, SHARED)


def random_trees(
    dice: Random, bases: tuple[Base, ...], odds: Odds, mix: Mix, count: int
) -> list[tuple[str, Query]]:
    """Views, each of which may read those before it; they share parts."""
    names: dict[str, Query | Table] = {b.name: b.table for b in bases}
    fragments: list[Query] = []
    found: list[tuple[str, Query]] = []
    for i in range(count):
        raising, query = dice.random() < 0.04, None
        while query is None or len(query.text) > _LONGEST:
            trees = Trees(
                dice,
                names,
                list(fragments),
                i * _NAMES_PER_VIEW,
                raising,
                tops=not odds.negative_zero,
                shared=mix.shared,
            )
            query = trees.view(dice.choice(mix.depths))
        fragments = trees.relations.fragments
        found.append((f"view{i}", query))
        if not (" avg(" in query.text or raising) and dice.randrange(100) < mix.reads:
            names[f"view{i}"] = query
    return found


class _Script:
    def __init__(self, dice: Random, bases: tuple[Base, ...], odds: Odds, mix: Mix) -> None:
        self.dice, self.bases, self.mix = dice, bases, mix
        self.waiting = [
            _view(dice, name, query)
            for name, query in random_trees(dice, bases, odds, mix, dice.choice(mix.views))
        ]
        self.spare = [
            _view(dice, name, query) for name, query in random_trees(dice, bases, odds, mix, 1)
        ]
        self.present: dict[str, View] = {}
        self.keys = [self._some_keys(b.table) for b in bases]

    def _some_keys(self, table: Table) -> list[tuple[Any, ...]]:
        found = [
            tuple(self.dice.choice(table.pools[name]) for name in table.schema.key)
            for _ in range(_ROWS)
        ]
        return list(dict.fromkeys(found))

    def actions(self) -> Iterator[Action]:
        if self.dice.random() < 0.7:
            for i in range(len(self.bases)):
                yield self._write(i, self.dice.randint(6, 14))
        for _ in range(self.dice.randint(1, 2)):
            yield from self._round([0, 1, 2, 5])
        if self.dice.random() < 0.7:
            while self.waiting and self.dice.random() < 0.8:
                yield self._create()
            yield Settle()
        for _ in range(self.dice.randint(2, 4)):
            yield from self._round([1, 1, 2])
        while self.waiting:
            yield self._create()

    def _round(self, runs: list[int]) -> Iterator[Action]:
        yield from self._views()
        for i in self.dice.sample(range(len(self.bases)), self.dice.randint(1, len(self.bases))):
            yield self._write(i, self.dice.randint(1, 6))
        for _ in range(self.dice.choice(runs)):
            yield random_run(self.dice)

    def _views(self) -> Iterator[Action]:
        """Views come, in their order because later ones read earlier ones; at times several at
        once, at times one is replaced or goes.
        """
        while self.waiting and self.dice.random() < 0.65:
            yield self._create()
        read = {
            n
            for v in [*self.present.values(), *(w for _, w in self.waiting)]
            for n in _VIEW.findall(v.select)
        }
        free = [n for n in self.present if n not in read]
        if not free or self.dice.randrange(100) >= self.mix.moves:
            return
        name = self.dice.choice(free)
        if self.spare and self.dice.random() < 0.4:
            self.present[name] = self.spare.pop()[1]
            yield Create(self.present[name], name, replace=True)
        elif len(self.present) > 1 or self.dice.random() < 0.3:
            if self.dice.random() < 0.5:
                # the same view comes back under another name
                self.waiting.append((f"{name}again", self.present[name]))
            del self.present[name]
            yield Drop(name)

    def _create(self) -> Create:
        name, view = self.waiting.pop(0)
        self.present[name] = view
        return Create(view, name)

    def _write(self, number: int, count: int) -> Write:
        table, keys = self.bases[number].table, self.keys[number]
        operations = [self._operation(table, self.dice.choice(keys)) for _ in range(count)]
        if self.dice.random() < 0.2:  # deleted and inserted again in one epoch
            key = self.dice.choice(keys)
            operations += [(key, None), (key, self._row(table, key))]
        return Write(tuple(operations), number)

    def _operation(
        self, table: Table, key: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
        return key, None if self.dice.random() < 0.14 else self._row(table, key)

    def _row(self, table: Table, key: tuple[Any, ...]) -> tuple[Any, ...]:
        named = dict(zip(table.schema.key, key, strict=True))
        return tuple(
            named[n] if n in named else self.dice.choice(table.pools[n]) for n in table.schema.names
        )


def _view(dice: Random, name: str, query: Query) -> tuple[str, View]:
    names = [f.name for f in query.fields]
    key = (
        tuple(dice.sample(names, dice.choice([1, 1, min(2, len(names))])))
        if dice.random() < 0.2
        else ()
    )
    return name, View(query.text, key, query.shape, query.types, query.shapes)
