"""Width follows measured times: a task more where state takes the time, one task where reading
does, or where little is to be done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from belvedere.epochs.manager import Ack
from belvedere.epochs.plan import EpochPlan
from belvedere.epochs.width import Width


@dataclass(frozen=True)
class Some:
    """As much of an intent, a graph and a plan as matters."""

    size: int
    slots: int = 4
    kind: str = "changes"
    depth: int = 2
    repeatable: bool = True

    @property
    def intent(self) -> Some:
        return self

    @property
    def graph(self) -> Some:
        return self


def some(size: int, **others: Any) -> EpochPlan:
    return cast("EpochPlan", Some(size, **others))


def taught(first: float, rest: float, plan: EpochPlan, tasks: int = 1) -> Width:
    """After some epochs in which level 0 and the rest took so many seconds in all."""
    width = Width(tasks=2)
    acks = [
        Ack(1, 0, (0,), seconds={"read": first}),
        Ack(1, 1, (0,), seconds={"maintain": rest / 2, "write": rest / 2}),
    ]
    for _ in range(12):
        width.learn(plan, tasks, acks)
    return width


def test_a_small_epoch_is_narrow() -> None:
    assert taught(0.001, 1.0, some(200_000)).of(some(1_000)) == 1


def test_an_epoch_that_writes_much_is_wide() -> None:
    assert taught(0.05, 0.4, some(200_000)).of(some(200_000)) == 2


def test_an_epoch_that_only_reads_is_narrow_where_every_task_would_read() -> None:
    assert taught(0.4, 0.02, some(200_000)).of(some(200_000)) == 1
    alone = some(1_000_000, repeatable=False)
    assert taught(2.0, 0.1, alone).of(alone) == 2


def test_exchanges_have_to_be_worth_it() -> None:
    assert taught(0.01, 0.15, some(50_000)).of(some(50_000, depth=2)) == 2
    assert taught(0.01, 0.15, some(50_000)).of(some(50_000, depth=5)) == 1


def test_what_was_learned_does_not_depend_on_the_width_it_was_learned_at() -> None:
    """Two tasks beside each other each do level 0, and half of the rest, a little slower."""
    plan = some(200_000)
    assert taught(2 * 1.2 * 0.4, 1.2 * 0.02, plan, tasks=2).of(plan) == 1
    assert taught(2 * 1.2 * 0.05, 1.2 * 0.4, plan, tasks=2).of(plan) == 2


def test_kinds_of_epochs_are_learned_apart() -> None:
    width = taught(0.4, 0.02, some(200_000))
    assert width.of(some(200_000, kind="load", repeatable=False)) == 2


@pytest.mark.parametrize(("tasks", "slots"), [(1, 4), (2, 1)])
def test_one_core_or_one_slot_leaves_no_choice(tasks: int, slots: int) -> None:
    assert Width(tasks=tasks).of(some(1_000_000, slots=slots)) == 1


def test_a_fixed_width_is_kept() -> None:
    assert Width(tasks=2, fixed="wide").of(some(1)) == 2
    assert Width(tasks=2, fixed="narrow").of(some(1_000_000)) == 1
