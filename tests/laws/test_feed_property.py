"""The law of feeds: the sum of a view's changes is the view, at every epoch, for random views,
operations and crashes; and what an epoch showed can be read again as long as it is kept.

Complete views have an entry for every transaction, in order.

A consumer reads now and then, so that it is some epochs behind; its name keeps what it needs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.history import state_as_of
from belvedere.catalog.state import CatalogState
from belvedere.errors import HistoryGone
from belvedere.feed import Changes, consumer_of
from belvedere.readers.cut import Cut
from tests.laws.cases import random_case
from tests.laws.law import cases, first_seed
from tests.laws.script import Action, Write
from tests.laws.trees.cases import random_tree_case
from tests.laws.world import World

Rows = Counter[str]  # by their text: NaN equals nothing, and -0.0 is not 0.0


def _texts(table: Any) -> list[str]:
    return [repr(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


@dataclass
class FedWorld(World):
    """A world in which every view has a consumer."""

    shown: dict[int, dict[int, Rows]] = field(default_factory=dict)  # by view and epoch
    fed: dict[int, Rows] = field(default_factory=dict)
    random: Random = field(default_factory=lambda: Random(5))

    def _check(self, view: ViewDefinition, state: CatalogState) -> None:
        super()._check(view, state)
        cut = Cut(self.store, state.head.epoch, state.head.vector, state)
        if not state.in_error(view):
            shown = self.shown.setdefault(view.id, {})
            shown[state.head.epoch] = Counter(_texts(cut.rows(view)))
            if view.id not in self.fed or self.random.random() < 0.4:
                self._feed(view)
        self._look_back(view)

    def _feed(self, view: ViewDefinition) -> None:
        """All changes since the last time; every epoch of them makes the view of that epoch."""
        consumer = consumer_of(self.store, view.name, f"c{view.id}", None)
        total, shown = self.fed.setdefault(view.id, Counter()), self.shown[view.id]
        with Changes(self.store, view.name, None, False, None, consumer) as changes:
            for table in changes:
                epoch = changes.epoch
                assert set(table.column("_epoch").to_pylist()) <= {epoch}
                weights = table.column("_weight").to_pylist()
                rows = _texts(table.drop_columns(["_epoch", "_weight"]))
                for row, weight in zip(rows, weights, strict=True):
                    assert weight != 0
                    total[row] += weight
                self._entry(view, changes.epoch)
                self.seen["fed"] += 1
                assert +total == shown[epoch], f"{view.select}, epoch {epoch}"
                assert min(total.values(), default=0) >= 0
            changes.acknowledge()
            assert +total == shown[changes.epoch]
        self.kept_from = changes.epoch

    def _entry(self, view: ViewDefinition, epoch: int) -> None:
        """A table of a feed was given."""

    def _look_back(self, view: ViewDefinition) -> None:
        for epoch, rows in list(self.shown.get(view.id, {}).items())[-3:]:
            try:
                state = self.store.catalog.read(lambda t, e=epoch: state_as_of(t, e, self.time))
            except HistoryGone:
                continue  # its consumer is beyond it
            self.seen["looked back"] += 1
            cut = Cut(self.store, epoch, state.head.vector, state)
            assert not state.in_error(view)
            assert Counter(_texts(cut.rows(view))) == rows, f"{view.select}, epoch {epoch}"


@dataclass
class CompleteWorld(FedWorld):
    """Every view is complete: each of its epochs has one transaction more than the one before."""

    level: str = "complete"
    transactions: list[tuple[str, int]] = field(default_factory=list)  # stream, end
    contained: dict[int, int] = field(default_factory=dict)  # transactions, by epoch
    told: dict[int, int] = field(default_factory=dict)  # entries of the feed of a view

    def _act(self, action: Action) -> None:
        before = self.store.base.end()
        super()._act(action)
        if isinstance(action, Write):
            ends = self.store.base.end().items()
            self.transactions += [(s, end) for s, end in ends if end > before.get(s, 0)]

    def _look(self) -> None:
        head = self._state().head
        covered = sum(end <= head.vector.get(s, 0) for s, end in self.transactions)
        self.contained[head.epoch] = covered
        super()._look()

    def _check(self, view: ViewDefinition, state: CatalogState) -> None:
        epoch = state.head.epoch
        was_live = view.id in self.last
        super()._check(view, state)
        if was_live:
            assert self.contained[epoch] - self.contained.get(epoch - 1, 0) in (0, 1)

    def _entry(self, view: ViewDefinition, epoch: int) -> None:
        before = self.told.get(view.id)
        if before is not None:
            readable = self.shown[view.id]
            took = [e for e in range(before + 1, epoch + 1) if e in readable]
            new = [e for e in took if self.contained[e] > self.contained[e - 1]]
            assert new == [epoch], f"{view.select}: transactions of {new} in the entry of {epoch}"
            self.seen["entries"] += 1
        self.told[view.id] = epoch


def run_cases(world: type[FedWorld], count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    seed = first_seed()
    for number in range(seed, seed + count):
        make = random_tree_case if number % 3 == 0 else random_case
        case = make(number)
        try:
            seen.update(world(case).run())
        except Exception as error:  # whatever it is, the seed that led to it is wanted
            raise AssertionError(f"seed {number}, {make.__name__}: {error}") from error
    return seen


def test_the_sum_of_a_feed_is_the_view_at_every_epoch() -> None:
    seen = run_cases(FedWorld, cases(40))
    assert seen["fed"] > cases(40)
    assert seen["looked back"] > cases(40)


def test_a_complete_feed_has_every_transaction_in_order() -> None:
    seen = run_cases(CompleteWorld, cases(40))
    assert seen["entries"] > cases(40)
    assert seen["crash"] > 5
