"""Epochs in this process, without Spark: the same view managers, narrow or wide. For tests of operators and protocol."""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.pipeline.intent import Intent
from belvedere.pipeline.ledger import load_plan
from belvedere.pipeline.manager import Ack, Attempt, Envelope, run_narrow
from belvedere.stores.base import Store


@dataclass(slots=True)
class LocalRunner:
    store: Store
    tasks: int = 1

    def run(self, intent: Intent) -> list[Ack]:
        plan = load_plan(self.store, intent)
        if self.tasks == 1:
            return run_narrow(self.store, plan)
        acks: list[Ack] = []
        envelopes: list[Envelope] = []
        for level in range(plan.graph.depth):
            emitted: list[Envelope] = []
            for task in range(self.tasks):
                slots = [s for s in range(intent.slots) if s % self.tasks == task]
                attempt = Attempt(self.store, plan, slots)
                out, ack = attempt.run(level, [e for e in envelopes if e.slot in slots])
                attempt.commit()
                emitted += out
                acks.append(ack)
            envelopes = emitted
        return acks
