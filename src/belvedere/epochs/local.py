"""Epochs in this process, without Spark: the same view managers, narrow or wide.

For tests of operators and protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.epochs.attempts import run_stage, stages
from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import load_plan
from belvedere.epochs.manager import Ack, Envelope
from belvedere.stores.base import Store


@dataclass(slots=True)
class LocalRunner:
    store: Store
    tasks: int = 1

    def run(self, intent: Intent) -> list[Ack]:
        plan = load_plan(self.store, intent)
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
