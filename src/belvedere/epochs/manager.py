"""A view manager: runs the operators of some slots for one attempt of an epoch.

    level 0   read the log, net per row, stateless operators, partial aggregates
    level k   operators whose inputs have arrived: combine, read as of e-1, write as of e, emit

The same code runs in a Spark task that owns some slots (a wide epoch, envelopes travel between
tasks) and in one task that owns all of them (a narrow epoch, everything stays in the process). What
it writes and emits is a function of the intent and of the state as of e-1; if it meets anything
from beyond its epoch it raises Stale, before it writes (rule R1).

Where the log has before-images, reading it takes no state, so every task may read for all slots and
keep what belongs to its own (`repeats`): that costs less than an exchange (docs/decisions/009).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from belvedere.changes.net import NetChanges
from belvedere.encoding import slot_of, slots_of
from belvedere.epochs import source
from belvedere.epochs.corrections import apply_corrections
from belvedere.epochs.intent import LOAD
from belvedere.epochs.plan import COMPLETE, EpochPlan
from belvedere.errors import Stale
from belvedere.libraries import np, pa, pc
from belvedere.operators.aggregate import GLOBAL, Aggregate
from belvedere.operators.base import ID, KEY, WEIGHT
from belvedere.operators.errors import COUNT, COUNTER, record_errors
from belvedere.operators.graph import Node, Source
from belvedere.operators.select import Select, apply_all
from belvedere.stores.base import Shard, Store, Write
from belvedere.types import Epoch

_BATCH, _BATCH_BYTES = 100_000, 32 << 20  # changes that are sent on together


@dataclass(frozen=True, slots=True)
class Envelope:
    """A part for an operator in a later level, addressed to the owner of a slot."""

    level: int
    slot: int
    node: int
    part: int
    table: pa.Table


@dataclass(slots=True)
class Ack:
    """What one manager did in one level: for the manifest, the metrics, and the ring's weights."""

    epoch: Epoch
    level: int
    slots: tuple[int, ...]
    operations: int = 0
    changes: int = 0
    written: dict[int, int] = field(default_factory=dict)  # by state table
    errors: dict[int, dict[int, int]] = field(default_factory=dict)  # by error table and slot
    seconds: dict[str, float] = field(default_factory=dict)
    last_time: float = 0.0

    def took(self, stage: str, since: float) -> float:
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - since
        return now


class Attempt:
    """One attempt of an epoch for some slots.

    One that `repeats` reads for all slots and keeps what is for its own.
    """

    def __init__(
        self, store: Store, plan: EpochPlan, slots: Sequence[int], repeats: bool = False
    ) -> None:
        self.store, self.plan, self.slots, self.repeats = store, plan, tuple(slots), repeats
        self._first = not repeats or 0 in self.slots  # counts what others do as well
        self.shards: dict[int, Shard] = {}
        self.written: dict[tuple[int, int], Write] = {}
        self._net: dict[int, NetChanges] = {}

    def run(self, level: int, incoming: Sequence[Envelope]) -> tuple[list[Envelope], Ack]:
        """Run one level; the caller commits afterwards."""
        self.ack = Ack(self.plan.intent.epoch, level, self.slots)
        self._level = level
        self._inbox: dict[int, dict[int, dict[int, list[pa.Table]]]] = {}
        self._failures: dict[int, list[pa.Table]] = {}
        self._outgoing: list[Envelope] = []
        for envelope in [*incoming, *self._first_rows(level)]:
            self._deliver(envelope)
        if level == 0 and self.plan.intent.repair is not None:
            for slot in self.slots:
                apply_corrections(self.store, self.plan.intent.repair, self.shard(slot))
        elif level == 0:
            self._maintain_deltas()
        for node in self.plan.graph.nodes:
            if self.plan.graph.levels[node.id] == level:
                self._run_node(node)
        for table, failures in self._failures.items():
            for slot, rows in self._by_slot(
                pa.concat_tables(failures), self.repeats and level == 0
            ):
                record_errors(self.shard(slot), table, rows)
        return self._outgoing, self.ack

    def commit(self) -> None:
        began = time.perf_counter()
        for slot, shard in self.shards.items():
            shard.commit()
            self.store.state.sync(slot)
            shard.close()
        self.ack.took("write", began)
        for (_, table), write in self.written.items():
            self.ack.written[table] = self.ack.written.get(table, 0) + len(write.keys)
        self.shards.clear()
        self.written.clear()

    def shard(self, slot: int) -> Shard:
        if slot not in self.shards:
            if slot not in self.slots:
                raise Stale(f"slot {slot} does not belong to this view manager")
            self.shards[slot] = _Recording(
                self.store.state.shard(slot, self.plan.intent.epoch), self
            )
        return self.shards[slot]

    def _run_node(self, node: Node) -> None:
        operator = node.operator
        began, computed = time.perf_counter(), self.ack.seconds.get("compute", 0.0)
        load = self.plan.intent.load
        if isinstance(operator, Select):
            return  # runs when its input is sent
        if isinstance(operator, Source):
            changes = self._source(operator) if load is None or load.origin == node.id else None
            began = self.ack.took("read", began)
            if changes is not None:
                self.ack.changes += changes.num_rows if self._first else 0
                self._send(node, [changes])
        else:
            self._send(
                node,
                (
                    b
                    for slot, parts in self._parts(node)
                    for b in operator.step(self.shard(slot), parts)
                ),
            )
            if load is not None and load.origin == node.id:
                self._send(node, self._loaded(node))
        # stateless operators count apart
        self.ack.took("maintain", began + self.ack.seconds.get("compute", 0.0) - computed)

    def _parts(self, node: Node) -> list[tuple[int, list[list[pa.Table]]]]:
        inbox = self._inbox.pop(node.id, {})
        return [
            (slot, [parts.get(i, []) for i in range(max(len(node.inputs), max(parts) + 1))])
            for slot, parts in sorted(inbox.items())
        ]

    def _loaded(self, node: Node) -> Iterable[pa.Table]:
        """The rows of an origin for the group that is being built from it."""
        load = self.plan.intent.load
        assert load is not None
        for slot in self.slots:
            for batch in node.operator.output(self.shard(slot), *load.range):  # type: ignore[union-attr]  # origins have it
                self.ack.changes += batch.num_rows
                yield batch

    def _send(self, node: Node, batches: Iterable[pa.Table]) -> None:
        """Pass on what a node emits, in batches: small ones are joined, so that operators are not
        called for a few rows.
        """
        waiting: list[pa.Table] = []
        rows = size = 0
        for batch in batches:
            if batch.num_rows:
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= _BATCH or size >= _BATCH_BYTES:
                self._send_one(node, pa.concat_tables(waiting))
                waiting, rows, size = [], 0, 0
        if waiting:
            self._send_one(node, pa.concat_tables(waiting))

    def _send_one(self, node: Node, changes: pa.Table) -> None:
        load, audience = self.plan.intent.load, self.plan.audience[node.id]
        if load is not None and load.origin == node.id:
            self._pass_on(_Emitted(node, changes), node, changes, load.group)
            return
        if audience == COMPLETE or not node.derived:
            self._pass_on(_Emitted(node, changes), node, changes, audience)
        for group, mark in self.plan.marks(node):
            seen = changes
            if mark is not None:  # rows beyond it are loaded later, as they are then (rule R7)
                seen = changes.filter(pc.less_equal(_Emitted(node, changes).keys, mark))
            if seen.num_rows:
                self._pass_on(_Emitted(node, seen), node, seen, group)

    def _pass_on(self, origin: _Emitted, node: Node, changes: pa.Table, audience: int) -> None:
        """Give changes to the consumers of an audience, through the stateless operators between."""
        consumers = self.plan.graph.consumers[node.id]
        selects = [
            (c, c.operator)
            for c in consumers
            if isinstance(c.operator, Select) and audience in self.plan.reached[c.id]
        ]
        results = apply_all([select for _, select in selects], changes)
        for consumer, select in selects:
            began = time.perf_counter()
            result, errors = next(results)
            self.ack.took("compute", began)
            if errors is not None and audience == self.plan.audience[consumer.id]:
                self._failures.setdefault(select.errors, []).append(origin.owned(errors))
            if result.num_rows:
                self._pass_on(origin, consumer, result, audience)
        for consumer in consumers:
            if isinstance(consumer.operator, Select):
                continue
            if audience == self.plan.audience[
                node.id if consumer.derived else consumer.id
            ] and self.plan.active(consumer):
                self._prepare(
                    node,
                    consumer,
                    changes,
                    self.repeats and isinstance(origin.node.operator, Source),
                )

    def _prepare(self, node: Node, consumer: Node, changes: pa.Table, repeated: bool) -> None:
        level = self.plan.graph.levels[consumer.id]
        for port, inputs in enumerate(consumer.inputs):
            if node.id not in inputs:
                continue
            first = port if len(consumer.inputs) > 1 else 0
            for part, table in enumerate(consumer.operator.prepare(port, changes), first):  # type: ignore[union-attr]  # a stateful one
                for slot, rows in self._by_slot(table, repeated):
                    self._deliver(Envelope(level, slot, consumer.id, part, rows))

    def _deliver(self, envelope: Envelope) -> None:
        if envelope.level > self._level:
            self._outgoing.append(envelope)
        else:
            self._inbox.setdefault(envelope.node, {}).setdefault(envelope.slot, {}).setdefault(
                envelope.part, []
            ).append(envelope.table)

    def _by_slot(self, table: pa.Table, repeated: bool) -> list[tuple[int, pa.Table]]:
        """The rows of each slot; of rows that every task has, only those of our slots."""
        keys = table.column(KEY).combine_chunks()
        if not len(keys):
            return []
        place = slots_of(keys, self.plan.intent.slots)
        found = np.unique(place).tolist()
        if len(found) > 1 or repeated:
            return [
                (slot, table.filter(pa.array(place == slot)))
                for slot in found
                if not repeated or slot in self.slots
            ]
        return [(found[0], table)]

    def _first_rows(self, level: int) -> list[Envelope]:
        """A global aggregate has its row from the beginning, also over an empty table."""
        load = self.plan.intent.load
        if (
            level
            or load is None
            or not load.first
            or (slot := slot_of(GLOBAL, self.plan.intent.slots)) not in self.slots
        ):
            return []
        return [
            Envelope(self.plan.graph.levels[n.id], slot, n.id, 0, n.operator.start())
            for n in self.plan.graph.nodes
            if isinstance(n.operator, Aggregate)
            and not n.operator.groups
            and self.plan.audience[n.id] == load.group
        ]

    def _maintain_deltas(self) -> None:
        """Bring every delta view up to date, used or not: its table has no other record of the rows
        before.
        """
        began = time.perf_counter()
        intent = self.plan.intent
        if intent.kind == LOAD:
            assert intent.load is not None
            origin = next(n.operator for n in self.plan.graph.nodes if n.id == intent.load.origin)
            if isinstance(origin, Source):
                table = self.plan.tables[origin.table]
                self._net = {
                    table.id: source.read_load(
                        self.store, table, intent, intent.load, self.slots, self.shard
                    )
                }
        else:
            slots = range(intent.slots) if self.repeats else self.slots
            found, self.ack.last_time = source.read_operations(self.store, intent, slots)
            self.ack.operations = intent.operations
            self._net = {
                t: source.with_before(
                    self.plan.tables[t], changes, self.slots, intent.slots, self.shard
                )
                for t, changes in sorted(found.items())
                if len(changes)
            }
        self.ack.took("read", began)

    def _source(self, operator: Source) -> pa.Table | None:
        found = self._net.get(operator.table)
        if found is None or not len(found):
            return None
        return source.as_changes(self.plan.tables[operator.table].schema, found)


@dataclass(frozen=True, slots=True)
class _Emitted:
    """What a node that is not stateless emitted, and by what it is partitioned."""

    node: Node
    changes: pa.Table

    @property
    def keys(self) -> pa.Array:
        if isinstance(self.node.operator, Source):
            return self.changes.column(ID).combine_chunks()
        return self.node.operator.state_key(self.changes)  # type: ignore[union-attr]  # sinks emit nothing

    def owned(self, errors: pa.Table) -> pa.Table:
        """Error rows of these changes with the key whose slot owns them: a row is found there again
        when it is retracted.
        """
        weights, ids = (
            self.changes.column(WEIGHT).to_numpy(),
            self.changes.column(ID).combine_chunks(),
        )
        signs = errors.column(WEIGHT).to_numpy()
        place = np.zeros(errors.num_rows, np.int64)
        for sign in (-1, 1):
            mine, theirs = np.flatnonzero(weights == sign), np.flatnonzero(signs == sign)
            found = pc.index_in(
                errors.column(ID).combine_chunks().take(pa.array(theirs)), ids.take(pa.array(mine))
            )
            place[theirs] = mine[found.to_numpy(zero_copy_only=False)] if len(theirs) else mine[:0]
        return errors.append_column(KEY, self.keys.take(pa.array(place)))


class _Recording:
    """A shard that keeps count of what is written, for the ack."""

    def __init__(self, shard: Shard, attempt: Attempt) -> None:
        self._shard, self._attempt = shard, attempt
        self.slot, self.epoch = shard.slot, shard.epoch
        self.get_many, self.scan = shard.get_many, shard.scan
        self.scan_batches, self.scan_prefixes = shard.scan_batches, shard.scan_prefixes
        self.commit, self.close = shard.commit, shard.close

    def write(self, write: Write) -> None:
        self._attempt.written[(self.slot, write.table)] = write
        if write.table in self._attempt.plan.error_tables and write.keys[0].as_py() == COUNTER:
            self._attempt.ack.errors.setdefault(write.table, {})[self.slot] = COUNT.unpack(
                write.values[0].as_py()
            )[0]
        self._shard.write(write)


def ack_to_json(ack: Ack) -> dict[str, Any]:
    data = {
        "epoch": ack.epoch,
        "level": ack.level,
        "slots": list(ack.slots),
        "operations": ack.operations,
        "changes": ack.changes,
    }
    return {
        **data,
        "written": ack.written,
        "errors": ack.errors,
        "seconds": ack.seconds,
        "last_time": ack.last_time,
    }
