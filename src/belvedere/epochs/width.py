"""Width: whether an epoch runs in one task or in several, by measured times.

    narrow      level 0 + rest
    repeated    level 0 + rest / tasks + exchanges behind level 1
                every task does level 0 (`EpochPlan.repeatable`)
    exchanged   (level 0 + rest) / tasks + all exchanges

What level 0 and the rest take per operation is known from the epochs before, smoothed; tasks that
run beside each other are a little slower. The shorter estimate wins. Results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from belvedere.epochs.manager import Ack
from belvedere.epochs.plan import EpochPlan

Fixed = Literal["narrow", "wide"]
_SMALL = 5_000  # operations; below, a second task is not worth thinking about, and times say little
_BESIDE = 1.2  # tasks beside each other share memory and caches
_TASK = 0.01  # seconds that another task takes to start
_EXCHANGE, _EXCHANGED = 0.06, 0.6e-6  # seconds per exchange, and per operation in it
_SMOOTH = 0.5


@dataclass(slots=True)
class _Times:
    """Seconds per operation on one core; to begin with, those of a few views."""

    first: float = 0.5e-6
    rest: float = 2e-6

    def learn(self, first: float, rest: float) -> None:
        self.first += _SMOOTH * (first - self.first)
        self.rest += _SMOOTH * (rest - self.rest)


@dataclass(slots=True)
class Width:
    tasks: int = 2
    fixed: Fixed | None = None  # for tests
    _times: dict[str, _Times] = field(default_factory=dict)  # by kind of epoch

    def of(self, plan: EpochPlan) -> int:
        """The number of tasks for an epoch."""
        tasks = min(plan.intent.slots, self.tasks)
        if self.fixed is not None:
            return tasks if self.fixed == "wide" else 1
        return (
            tasks if tasks > 1 and plan.intent.size >= _SMALL and self._faster(plan, tasks) else 1
        )

    def _faster(self, plan: EpochPlan, tasks: int) -> bool:
        times, size = self._times.setdefault(plan.intent.kind, _Times()), plan.intent.size
        first, rest = times.first * size, times.rest * size
        shared = 0.0 if plan.repeatable else first
        exchanges = plan.graph.depth - (2 if plan.repeatable else 1)
        wide = (
            _BESIDE * (first - shared + (shared + rest) / tasks)
            + _TASK
            + max(exchanges, 0) * (_EXCHANGE + _EXCHANGED * size)
        )
        return wide < first + rest

    def learn(self, plan: EpochPlan, tasks: int, acks: Sequence[Ack]) -> None:
        """Take note of what an epoch took in so many tasks."""
        if plan.intent.size < _SMALL:
            return
        first = sum(
            sum(a.seconds.values()) - a.seconds.get("write", 0.0) for a in acks if a.level == 0
        )
        rest = sum(sum(a.seconds.values()) for a in acks) - first
        if tasks > 1:
            first, rest = first / (tasks if plan.repeatable else 1) / _BESIDE, rest / _BESIDE
        self._times.setdefault(plan.intent.kind, _Times()).learn(
            first / plan.intent.size, rest / plan.intent.size
        )
