"""Epochs in this process, without Spark: the same view managers, narrow or wide.

For stores that other processes cannot open, for tests of operators and protocol, and for the small
epochs of complete views: a Spark job takes several times as long as one transaction does (decision
36).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from belvedere.catalog.definitions import ViewDefinition
from belvedere.epochs.attempts import run_stage, stages
from belvedere.epochs.intent import CHANGES, Intent
from belvedere.epochs.intents import load_plan
from belvedere.epochs.manager import Ack, Envelope
from belvedere.epochs.plan import EpochPlan
from belvedere.stores.base import Store

NEAR_ROWS = 1_000  # operations of one transaction; more are worth a job


def is_near(intent: Intent, views: Iterable[ViewDefinition]) -> bool:
    """Whether an epoch is one of many small ones, because each transaction has its own."""
    is_small = intent.kind == CHANGES and intent.operations <= NEAR_ROWS
    return is_small and any(view.is_complete for view in views)


@dataclass(slots=True)
class LocalRunner:
    store: Store
    tasks: int = 1

    def run(self, intent: Intent) -> list[Ack]:
        return self.run_plan(load_plan(self.store, intent))

    def run_plan(self, plan: EpochPlan) -> list[Ack]:
        acks: list[Ack] = []
        envelopes: Sequence[Envelope] = []
        for levels in stages(plan) if self.tasks > 1 else [range(plan.graph.depth)]:
            emitted: list[Envelope] = []
            for task in range(self.tasks):
                mine = [e for e in envelopes if e.slot % self.tasks == task]
                out, done = run_stage(self.store, plan, levels, self.tasks, task, mine)
                emitted += out
                acks += done
            envelopes = emitted
        return acks
