"""One level of an attempt: its operators get what has arrived, and what they emit goes on.

    level 0   read the log, net per row, stateless operators, partial aggregates
    level k   operators whose inputs have arrived: combine, read as of e-1, write as of e, emit

A level is made anew for every number; only the shards, with what is written to them, belong to the
attempt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from belvedere.changes.net import NetChanges
from belvedere.encoding.arrays import BATCH, BATCH_BYTES
from belvedere.epochs import source
from belvedere.epochs.acks import Ack, Envelope
from belvedere.epochs.corrections import apply_corrections, mended_rows
from belvedere.epochs.intent import LOAD, MEND
from belvedere.epochs.plan import COMPLETE, EpochPlan
from belvedere.graph import Node, columns_used, error_table
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, KEY, WEIGHT, Stateful, Stateless, column_of
from belvedere.operators.delivery import Inbox, by_slot, prepare_parts
from belvedere.operators.errors import record_errors
from belvedere.stores.base import Shard, Store

ShardOf = Callable[[int], Shard]


@dataclass(frozen=True, slots=True)
class Task:
    """A view manager's part of an epoch: some slots.

    One that `repeats` reads for all slots and keeps what is for its own.
    """

    store: Store
    plan: EpochPlan
    slots: tuple[int, ...]
    repeats: bool

    @property
    def counts(self) -> bool:
        """It counts what other tasks do as well."""
        return not self.repeats or 0 in self.slots


class Level:
    def __init__(self, task: Task, shard: ShardOf, number: int) -> None:
        self.task, self.plan, self.shard, self.number = task, task.plan, shard, number
        self.ack = Ack(self.plan.intent.epoch, number, task.slots)
        self.outgoing: list[Envelope] = []
        self._inboxes: dict[int, Inbox] = {}  # by node
        self._failures: dict[int, list[pa.Table]] = {}  # by error table
        self._net: dict[int, NetChanges] = {}  # by base table

    def run(self, incoming: Sequence[Envelope]) -> None:
        for envelope in [*incoming, *self._first_rows()]:
            self._deliver(envelope)
        if self.number == 0:
            self._begin()
        for node in self.plan.graph.nodes:
            if self.plan.graph.levels[node.id] == self.number and not node.stateless:
                self._run_node(node)
        self._record_failures()

    # ------------------------------------------------------------ where changes come from

    def _begin(self) -> None:
        """Before the operators of level 0: what a repair writes, or what the log and the loading
        say.
        """
        intent = self.plan.intent
        if intent.repair is None:
            self._maintain_deltas()
        elif intent.kind == MEND:
            self._net = self._with_before(
                mended_rows(self.task.store, intent.repair, self.task.slots)
            )
        else:
            for slot in self.task.slots:
                apply_corrections(self.task.store, intent.repair, self.shard(slot))

    def _maintain_deltas(self) -> None:
        """Bring every delta view up to date, used or not: its table has no other record of the rows
        before.
        """
        began = time.perf_counter()
        self._net = self._loaded_rows() if self.plan.intent.kind == LOAD else self._logged_rows()
        self.ack.took("read", began)

    def _loaded_rows(self) -> dict[int, NetChanges]:
        """The rows of a loading step, if it is loaded from a base table."""
        intent, store = self.plan.intent, self.task.store
        assert intent.load is not None
        origin = next(n for n in self.plan.graph.nodes if n.id == intent.load.origin)
        if not origin.source:
            return {}
        table = self.plan.tables[origin.operator.base_table]
        rows = source.read_load(store, table, intent, intent.load, self.task.slots, self.shard)
        return {table.id: rows}

    def _logged_rows(self) -> dict[int, NetChanges]:
        intent = self.plan.intent
        slots = range(intent.slots) if self.task.repeats else self.task.slots
        found, self.ack.last_time = source.read_operations(self.task.store, intent, slots)
        self.ack.operations = intent.operations
        if self.task.store.history is None:
            return self._with_before(found)
        return self._with_history(found)

    def _with_history(self, found: Mapping[int, source.Changes]) -> dict[int, NetChanges]:
        """Of what passes the log itself tells the rows before. A table of an older format may have
        a delta view still, which is kept as it was.
        """
        store, intent, own = self.task.store, self.plan.intent, self.task.slots
        every = {
            table: changes for table, changes in found.items() if isinstance(changes, NetChanges)
        }
        passing = {table: changes for table, changes in every.items() if self._passes(table)}
        net = {table: changes for table, changes in every.items() if table not in passing}
        rows = source.with_history(store, intent, net)
        source.settle(store, intent, rows, own)
        followed = {table: rows[table] for table in rows if table in intent.tables}
        deltas = {table: net[table] for table in followed if self.plan.tables[table].delta}
        return {**followed, **passing, **self._with_before(deltas)}

    def _passes(self, table: int) -> bool:
        return table in self.plan.tables and self.plan.tables[table].passes

    def _with_before(self, found: Mapping[int, source.Changes]) -> dict[int, NetChanges]:
        own, count = self.task.slots, self.plan.intent.slots
        return {
            t: source.with_before(self.plan.tables[t], changes, own, count, self.shard)
            for t, changes in sorted(found.items())
            if len(changes)
        }

    def _first_rows(self) -> Iterator[Envelope]:
        """Some operators have a row from the beginning, also over an empty table."""
        load = self.plan.intent.load
        if self.number or load is None or not load.first:
            return
        for node in self.plan.graph.nodes:
            if self.plan.audience[node.id] != load.group:
                continue
            part = node.operator.first_part() if isinstance(node.operator, Stateful) else None
            if part is not None:
                yield from self._envelopes(node, 0, part, self.task.slots)

    # ------------------------------------------------------------ operators

    def _run_node(self, node: Node) -> None:
        began, computed = time.perf_counter(), self.ack.seconds.get("compute", 0.0)
        load = self.plan.intent.load
        loads = load is not None and load.origin == node.id
        if node.source:
            changes = self._changes_of(node) if load is None or loads else None
            began = self.ack.took("read", began)
            if changes is not None:
                self.ack.changes += changes.num_rows if self.task.counts else 0
                self._send(node, [changes])
        else:
            self._send(node, self._stepped(node))
            if loads:
                self._send(node, self._loaded(node))
        # stateless operators count apart
        self.ack.took("maintain", began + self.ack.seconds.get("compute", 0.0) - computed)

    def _changes_of(self, node: Node) -> pa.Table | None:
        table = node.operator.base_table
        found = self._net.get(table)
        if found is None or not len(found):
            return None
        used = columns_used(self.plan.graph.nodes)[table]
        return source.as_changes(self.plan.tables[table].schema, found, used)

    def _stepped(self, node: Node) -> Iterator[pa.Table]:
        inbox = self._inboxes.pop(node.id, None)
        if inbox is None or not isinstance(node.operator, Stateful):
            return
        for slot, parts in inbox.arrived(len(node.inputs)):
            yield from node.operator.step(self.shard(slot), parts)

    def _loaded(self, node: Node) -> Iterator[pa.Table]:
        """The rows of an origin for the group that is being built from it."""
        load = self.plan.intent.load
        assert load is not None
        for slot in self.task.slots:
            for batch in node.origin.output(self.shard(slot), *load.range):
                self.ack.changes += batch.num_rows
                yield batch

    # ------------------------------------------------------------ what they emit

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
            if rows >= BATCH or size >= BATCH_BYTES:
                self._send_one(node, pa.concat_tables(waiting))
                waiting, rows, size = [], 0, 0
        if waiting:
            self._send_one(node, pa.concat_tables(waiting))

    def _send_one(self, node: Node, changes: pa.Table) -> None:
        """To everybody who may see it: a loading step is for its group alone, other changes are for
        the node's own audience and, up to their marks, for groups that are loaded from it.
        """
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
        self._apply(origin, consumers, changes, audience)
        repeated = self.task.repeats and origin.node.source
        for consumer in consumers:
            if isinstance(consumer.operator, Stateful) and self._sees(consumer, node, audience):
                self._prepare(node, consumer, consumer.operator, changes, repeated)

    def _sees(self, consumer: Node, node: Node, audience: int) -> bool:
        """Whether a consumer with state takes what a node emits for an audience: a derived one
        belongs to that of its input.
        """
        own = self.plan.audience[node.id if consumer.derived else consumer.id]
        return audience == own and self.plan.active(consumer)

    def _apply(
        self, origin: _Emitted, consumers: Sequence[Node], changes: pa.Table, audience: int
    ) -> None:
        """Run the stateless consumers whose output this audience sees, those of a kind together."""
        kinds: dict[type[Stateless], list[tuple[Node, Stateless]]] = {}
        for node in consumers:
            if isinstance(node.operator, Stateless) and audience in self.plan.reached[node.id]:
                kinds.setdefault(type(node.operator), []).append((node, node.operator))
        for kind, chosen in kinds.items():
            results = kind.apply_all([operator for _, operator in chosen], changes)
            for node, _ in chosen:
                began = time.perf_counter()
                result, errors = next(results)
                self.ack.took("compute", began)
                if errors is not None and audience == self.plan.audience[node.id]:
                    self._failures.setdefault(error_table(node), []).append(origin.owned(errors))
                if result.num_rows:
                    self._pass_on(origin, node, result, audience)

    # ------------------------------------------------------------ delivery

    def _prepare(
        self, node: Node, consumer: Node, operator: Stateful, changes: pa.Table, repeated: bool
    ) -> None:
        own = self.task.slots if repeated else None
        ports = len(consumer.inputs)
        for port, inputs in enumerate(consumer.inputs):
            if node.id in inputs:
                for part, table in prepare_parts(operator, port, ports, changes):
                    for envelope in self._envelopes(consumer, part, table, own):
                        self._deliver(envelope)

    def _envelopes(
        self, node: Node, part: int, table: pa.Table, own: Collection[int] | None
    ) -> Iterator[Envelope]:
        level = self.plan.graph.levels[node.id]
        for slot, rows in by_slot(table, self.plan.intent.slots, own):
            yield Envelope(level, slot, node.id, part, rows)

    def _deliver(self, envelope: Envelope) -> None:
        if envelope.level > self.number:
            self.outgoing.append(envelope)
            return
        inbox = self._inboxes.setdefault(envelope.node, Inbox())
        inbox.add(envelope.slot, envelope.part, envelope.table)

    def _record_failures(self) -> None:
        own = self.task.slots if self.task.repeats and self.number == 0 else None
        for table, failures in self._failures.items():
            rows = pa.concat_tables(failures)
            for slot, mine in by_slot(rows, self.plan.intent.slots, own):
                record_errors(self.shard(slot), table, mine)


@dataclass(frozen=True, slots=True)
class _Emitted:
    """What a node that is not stateless emitted, and by what it is partitioned."""

    node: Node
    changes: pa.Table

    @property
    def keys(self) -> pa.Array:
        if self.node.source:
            return column_of(self.changes, ID)
        return self.node.origin.state_key(self.changes)

    def owned(self, errors: pa.Table) -> pa.Table:
        """Error rows of these changes with the key whose slot owns them: a row is found there again
        when it is retracted.
        """
        ids, weights = column_of(self.changes, ID), self.changes.column(WEIGHT).to_numpy()
        wrong, signs = column_of(errors, ID), errors.column(WEIGHT).to_numpy()
        row = np.zeros(errors.num_rows, np.int64)  # of the changes, for each error
        for sign in (-1, 1):
            mine, theirs = np.flatnonzero(weights == sign), np.flatnonzero(signs == sign)
            if len(theirs):
                found = pc.index_in(wrong.take(pa.array(theirs)), ids.take(pa.array(mine)))
                row[theirs] = mine[found.to_numpy(zero_copy_only=False)]
        return errors.append_column(KEY, self.keys.take(pa.array(row)))
