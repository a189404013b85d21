"""A view manager: runs the operators of some slots for one attempt of an epoch.

The same code runs in a Spark task that owns some slots (a wide epoch, envelopes travel between
tasks) and in one task that owns all of them (a narrow epoch, everything stays in the process). What
it writes and emits is a function of the intent and of the state as of e-1; if it meets anything
from beyond its epoch it raises Stale, before it writes (rule R1).

Where the log has before-images, reading it takes no state, so every task may read for all slots and
keep what belongs to its own (`repeats`): that costs less than an exchange (docs/decisions/009).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere.epochs.acks import Ack, Envelope, ack_to_json
from belvedere.epochs.level import Level, Task
from belvedere.epochs.plan import EpochPlan
from belvedere.errors import Stale
from belvedere.operators.errors import COUNT, COUNTER
from belvedere.stores.base import Shard, Store, Write

__all__ = ["Ack", "Attempt", "Envelope", "ack_to_json"]


class Attempt:
    """One attempt of an epoch for some slots: it keeps their shards from level to level, and what
    is written to them until it commits.
    """

    def __init__(
        self, store: Store, plan: EpochPlan, slots: Sequence[int], repeats: bool = False
    ) -> None:
        self.task = Task(store, plan, tuple(slots), repeats)
        self.store, self.plan = store, plan
        self.shards: dict[int, Shard] = {}
        self.written: dict[tuple[int, int], Write] = {}  # by slot and table: the last one

    def run(self, level: int, incoming: Sequence[Envelope]) -> tuple[list[Envelope], Ack]:
        """Run one level; the caller commits afterwards."""
        running = Level(self.task, self.shard, level)
        running.run(incoming)
        return running.outgoing, running.ack

    def commit(self, ack: Ack) -> None:
        """Write what all levels have written; `ack` is the last one's, and says so."""
        began = time.perf_counter()
        for slot, shard in self.shards.items():
            shard.commit()
            self.store.state.sync(slot)
            shard.close()
        ack.took("write", began)
        for (slot, table), write in self.written.items():
            ack.written[table] = ack.written.get(table, 0) + len(write.keys)
            if table in self.plan.error_tables and write.keys[0].as_py() == COUNTER:
                count = COUNT.unpack(write.values[0].as_py())[0]
                ack.errors.setdefault(table, {})[slot] = count
        self.shards.clear()
        self.written.clear()

    def shard(self, slot: int) -> Shard:
        if slot not in self.shards:
            if slot not in self.task.slots:
                raise Stale(f"slot {slot} does not belong to this view manager")
            shard = self.store.state.shard(slot, self.plan.intent.epoch)
            self.shards[slot] = _Recording(shard, self)
        return self.shards[slot]


class _Recording:
    """A shard that notes what is written, for the ack."""

    def __init__(self, shard: Shard, attempt: Attempt) -> None:
        self._shard, self._attempt = shard, attempt
        self.slot, self.epoch = shard.slot, shard.epoch
        self.get_many, self.scan = shard.get_many, shard.scan
        self.scan_batches, self.scan_prefixes = shard.scan_batches, shard.scan_prefixes
        self.commit, self.close = shard.commit, shard.close

    def write(self, write: Write) -> None:
        self._attempt.written[(self.slot, write.table)] = write
        self._shard.write(write)
