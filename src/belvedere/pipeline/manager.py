"""A view manager: runs the operators of some slots for one attempt of an epoch.

    level 0   read the log, net per row, stateless operators, partial aggregates
    level k   operators whose inputs have arrived: combine, read as of e-1, write as of e, emit

The same code runs in a Spark task that owns some slots (a wide epoch, envelopes travel between tasks) and in one task that
owns all of them (a narrow epoch, everything stays in the process). What it writes and emits is a function of the intent
and of the state as of e-1; if it meets anything from beyond its epoch it raises Stale, before it writes (rule R1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.changes.net import NetChanges
from belvedere.encoding import slot_of, slots_of
from belvedere.errors import Stale
from belvedere.operators.aggregate import GLOBAL, Aggregate
from belvedere.operators.base import ID, KEY
from belvedere.operators.errors import COUNT, COUNTER, record_errors
from belvedere.operators.graph import Graph, Node, Source
from belvedere.operators.select import Select
from belvedere.pipeline import source
from belvedere.pipeline.corrections import apply_corrections
from belvedere.pipeline.intent import LOAD, Intent
from belvedere.stores.base import Shard, Store, Write
from belvedere.views.definitions import TableDefinition, ViewDefinition


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """An intent with the definitions that it names."""

    intent: Intent
    views: dict[int, ViewDefinition]
    tables: dict[int, TableDefinition]
    graph: Graph
    view_of: dict[int, int]  # node -> view
    error_tables: frozenset[int]

    @classmethod
    def of(cls, intent: Intent, views: Sequence[ViewDefinition], tables: Sequence[TableDefinition]) -> EpochPlan:
        nodes = [n for v in views for n in v.planned.nodes]
        owner = {n.id: v.id for v in views for n in v.planned.nodes}
        errors = frozenset(n.operator.errors for n in nodes if isinstance(n.operator, Select | Aggregate))
        return cls(intent, {v.id: v for v in views}, {t.id: t for t in tables}, Graph.of(nodes), owner, errors)


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
    """One attempt of an epoch for some slots."""

    def __init__(self, store: Store, plan: EpochPlan, slots: Sequence[int]) -> None:
        self.store, self.plan, self.slots = store, plan, tuple(slots)
        self.shards: dict[int, Shard] = {}
        self.written: dict[tuple[int, int], Write] = {}
        self._net: dict[int, NetChanges] | None = None
        self._changes: dict[tuple[int, str | None], pa.Table] = {}
        self._watermarks = {p.view: p.watermark for p in plan.intent.participants}

    def run(self, level: int, incoming: Sequence[Envelope]) -> tuple[list[Envelope], Ack]:
        """Run one level; the caller commits afterwards."""
        ack = Ack(level, self.slots)
        self.ack = ack
        inbox: dict[int, dict[int, dict[int, list[pa.Table]]]] = {}
        outgoing = [e for e in incoming if e.level > level]
        for e in incoming:
            if e.level == level:
                inbox.setdefault(e.node, {}).setdefault(e.slot, {}).setdefault(e.part, []).append(e.table)
        if level == 0 and self.plan.intent.repair is not None:
            for slot in self.slots:
                apply_corrections(self.store, self.plan.intent.repair, self.shard(slot))
        elif level == 0:
            self._maintain_deltas()
        values: dict[int, pa.Table] = {}
        for node in self.plan.graph.nodes:
            if self.plan.graph.levels[node.id] == level:
                value = self._run_node(node, values, inbox)
                if value is not None and value.num_rows:
                    values[node.id] = value
                    outgoing += self._emit(node, value, level)
        outgoing += self._first_rows(level)
        return outgoing, ack

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
            self.shards[slot] = _Recording(self.store.state.shard(slot, self.plan.intent.epoch), self)
        return self.shards[slot]

    def _run_node(self, node: Node, values: dict[int, pa.Table], inbox: dict[int, dict[int, dict[int, list[pa.Table]]]]) -> pa.Table | None:
        operator = node.operator
        began = time.perf_counter()
        if isinstance(operator, Source):
            value = self._source(node, operator)
            self.ack.took("read", began)
            return value
        if isinstance(operator, Select):
            if node.inputs[0] not in values:
                return None
            value, errors = operator.apply(values[node.inputs[0]])
            if errors is not None:
                for slot, rows in _by_slot(errors, ID, self.plan.intent.slots):
                    record_errors(self.shard(slot), operator.errors, rows)
            self.ack.took("compute", began)
            return value
        if node.local and node.inputs[0] in values:
            for part, table in enumerate(operator.prepare(0, values[node.inputs[0]])):
                for slot, rows in _by_slot(table, KEY, self.plan.intent.slots):
                    inbox.setdefault(node.id, {}).setdefault(slot, {}).setdefault(part, []).append(rows)
        outputs = []
        for slot, parts in sorted(inbox.get(node.id, {}).items()):
            result = operator.step(self.shard(slot), [parts.get(i, []) for i in range(max(parts) + 1)])
            if result is not None:
                outputs.append(result)
        self.ack.took("maintain", began)
        return pa.concat_tables(outputs) if outputs else None

    def _emit(self, node: Node, value: pa.Table, level: int) -> list[Envelope]:
        began = time.perf_counter()
        envelopes = []
        for consumer in self.plan.graph.consumers[node.id]:
            target = self.plan.graph.levels[consumer.id]
            if target > level:
                index = consumer.inputs.index(node.id)
                for part, table in enumerate(consumer.operator.prepare(index, value)):  # type: ignore[union-attr]  # a stateful one
                    for slot, rows in _by_slot(table, KEY, self.plan.intent.slots):
                        envelopes.append(Envelope(target, slot, consumer.id, part, rows))
        self.ack.took("prepare", began)
        return envelopes

    def _first_rows(self, level: int) -> list[Envelope]:
        """A global aggregate has its row from the beginning, also over an empty table."""
        load = self.plan.intent.load
        if level or load is None or load.low or (slot := slot_of(GLOBAL, self.plan.intent.slots)) not in self.slots:
            return []
        return [
            Envelope(self.plan.graph.levels[n.id], slot, n.id, 0, n.operator.start())
            for n in self.plan.graph.nodes
            if isinstance(n.operator, Aggregate) and not n.operator.groups and self.plan.view_of[n.id] in load.views
        ]

    def _maintain_deltas(self) -> None:
        """Bring every delta view up to date, used or not: its table has no other record of the rows before."""
        began = time.perf_counter()
        intent = self.plan.intent
        if intent.kind == LOAD:
            assert intent.load is not None
            table = self.plan.tables[intent.load.table]
            self._net = {table.id: source.read_load(self.store, table, intent, intent.load, self.slots, self.shard)}
        else:
            found, self.ack.last_time = source.read_operations(self.store, intent, self.slots)
            self.ack.operations = intent.operations
            self._net = {
                t: source.with_before(self.plan.tables[t], changes, self.slots, intent.slots, self.shard)
                for t, changes in sorted(found.items())
                if len(changes)
            }
        self.ack.took("read", began)

    def _source(self, node: Node, operator: Source) -> pa.Table | None:
        view = self.plan.view_of[node.id]
        intent = self.plan.intent
        if intent.load is not None and view not in intent.load.views:
            return None
        watermark = None if intent.load is not None else self._watermarks[view]
        key = (operator.table, watermark)
        if key not in self._changes:
            found = (self._net or {}).get(operator.table)
            if found is None or not len(found):
                return None
            if watermark is not None:  # rows beyond it are loaded later, as they are then (rule R7)
                found = found.filter(pc.less_equal(found.keys, bytes.fromhex(watermark)))
            self._changes[key] = source.as_changes(self.plan.tables[operator.table].schema, found)
            self.ack.changes += self._changes[key].num_rows
        return self._changes[key]


class _Recording:
    """A shard that keeps count of what is written, for the ack."""

    def __init__(self, shard: Shard, attempt: Attempt) -> None:
        self._shard, self._attempt = shard, attempt
        self.slot, self.epoch = shard.slot, shard.epoch
        self.get_many, self.scan, self.scan_batches = shard.get_many, shard.scan, shard.scan_batches
        self.commit, self.close = shard.commit, shard.close

    def write(self, write: Write) -> None:
        self._attempt.written[(self.slot, write.table)] = write
        if write.table in self._attempt.plan.error_tables and write.keys[0].as_py() == COUNTER:
            self._attempt.ack.errors.setdefault(write.table, {})[self.slot] = COUNT.unpack(write.values[0].as_py())[0]
        self._shard.write(write)


def _by_slot(table: pa.Table, column: str, count: int) -> list[tuple[int, pa.Table]]:
    keys = table.column(column).combine_chunks()
    if not len(keys):
        return []
    place = slots_of(keys, count)
    found = np.unique(place).tolist()
    if len(found) == 1:
        return [(found[0], table)]
    return [(slot, table.filter(pa.array(place == slot))) for slot in found]


def run_narrow(store: Store, plan: EpochPlan) -> list[Ack]:
    """All levels in one process: one read of the log, one transaction per slot."""
    attempt = Attempt(store, plan, range(plan.intent.slots))
    acks: list[Ack] = []
    envelopes: list[Envelope] = []
    for level in range(plan.graph.depth):
        envelopes, ack = attempt.run(level, envelopes)
        acks.append(ack)
    attempt.commit()
    return acks


def ack_to_json(ack: Ack) -> dict[str, Any]:
    data = {"level": ack.level, "slots": list(ack.slots), "operations": ack.operations, "changes": ack.changes}
    return {**data, "written": ack.written, "errors": ack.errors, "seconds": ack.seconds, "last_time": ack.last_time}
