"""The cost of a plan: its nodes in order, each run over the samples of its inputs and scaled up.

Conditions on sums and counts (HAVING, a join with them) see those of the sample; all else follows
the rules of `joins` and `sizes`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from belvedere.catalog.definitions import TableDefinition
from belvedere.cost.distinct import Distinct, distinct, frequencies
from belvedere.cost.joins import LEFT, RIGHT, Meeting
from belvedere.cost.relation import Relation, union
from belvedere.cost.report import Cost, JoinCost, JoinSide, NodeCost, SampledTable
from belvedere.cost.sample import LIMIT, Sample, take_samples
from belvedere.cost.sets import compared
from belvedere.cost.sizes import Kept, failures, kept, sized
from belvedere.cost.trial import Trial, records
from belvedere.operators.aggregate import Aggregate
from belvedere.operators.graph import Graph, Node, Source, error_table, state_tables
from belvedere.operators.grouping import group
from belvedere.operators.join import Join
from belvedere.operators.select import Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.topk import TopK
from belvedere.sql.explain import Texts, Users
from belvedere.sql.planned import PlannedView
from belvedere.stores.base import Store


def estimate(
    store: Store,
    name: str,
    planned: PlannedView,
    tables: Sequence[TableDefinition],
    users: Users,
    limit: int = LIMIT,
) -> Cost:
    """The cost of a plan whose nodes are bound; `users` says which other
    views keep a node already.
    """
    by_id = {t.id: t for t in tables}
    samples = take_samples(store, dict.fromkeys(planned.sources), limit)
    run = _Run(planned, by_id, samples, users, Trial(store.state.slots))
    for node in planned.nodes:
        run.add(node)
    new = [n for n in run.nodes if not n.shared]
    away = [n for n in planned.nodes if n.stateful and not n.local]
    return Cost(
        name,
        all(r.exact for r in run.relations.values()),
        tuple(SampledTable(by_id[t].name, s.rows, len(s.keys)) for t, s in samples.items()),
        run.graph.depth,
        len(away),
        sum(not users.get(n.id) for n in away),
        sum(n.records for n in new),
        sum(n.bytes for n in new),
        round(run.errors),
        tuple(reversed(run.nodes)),
        tuple(reversed(run.joins)),
    )


@dataclass(slots=True)
class _Run:
    planned: PlannedView
    tables: Mapping[int, TableDefinition]
    samples: Mapping[int, Sample]
    users: Users
    trial: Trial
    relations: dict[int, Relation] = field(default_factory=dict)
    nodes: list[NodeCost] = field(default_factory=list)
    joins: list[JoinCost] = field(default_factory=list)
    errors: float = 0.0
    graph: Graph = field(init=False)
    texts: Texts = field(init=False)

    def __post_init__(self) -> None:
        self.graph = Graph.of(self.planned.nodes)
        self.texts = Texts(self.planned, list(self.tables.values()))

    def add(self, node: Node) -> None:
        operator = node.operator
        fed = [union([self.relations[i] for i in port]) for port in node.inputs]
        state: list[Kept] = []
        if isinstance(operator, Source):
            result = self._source(operator)
        elif isinstance(operator, Select):
            result = fed[0].share(self.trial.apply(operator, fed[0].sample))
            result = replace(result, origin=0) if operator.tag >= 0 else result
        elif isinstance(operator, Join):
            result = self._join(node, operator, fed[LEFT], fed[RIGHT])
        elif isinstance(operator, SetOperation):
            result, state = self._set_operation(node, operator, fed)
        else:
            emitted = tuple(self.trial.step(operator, [fed[0].sample]))
            state = self._state(node, fed[0])
            result = _emitted(operator, fed[0], emitted, state)
        self.relations[node.id] = result
        self._note(node, state, fed)

    def _source(self, operator: Source) -> Relation:
        table, sample = self.tables[operator.table], self.samples[operator.table]
        changes = sample.changes(table.schema)
        return Relation(
            (changes,) if changes.num_rows else (),
            sample.rows,
            sample.one_in == 1,
            0.0,
            table.id,
            (table.name,),
        )

    def _state(self, node: Node, fed: Relation) -> list[Kept]:
        """The node's state tables but that of errors."""
        tables = [
            (t, w)
            for t, w in zip(state_tables(node), self.texts.state(node), strict=True)
            if t != error_table(node)
        ]
        return [
            kept(what, node.operator, table, self.trial.written.pop(table, []), fed)
            for table, what in tables
        ]

    def _set_operation(
        self, node: Node, operator: SetOperation, fed: Sequence[Relation]
    ) -> tuple[Relation, list[Kept]]:
        emitted = tuple(self.trial.step(operator, [f.sample for f in fed]))
        keys, values = records(self.trial.written.pop(operator.table, []))
        found = compared(operator, fed, values, sum(t.num_rows for t in emitted))
        state = sized(self.texts.state(node)[0], keys, values, found.records)
        error = math.hypot(state.error, *(f.error for f in fed))
        return Relation(
            emitted, found.rows, all(f.exact for f in fed), error, 0, union(fed).tables
        ), [state]

    def _join(self, node: Node, join: Join, left: Relation, right: Relation) -> Relation:
        meeting = Meeting(join, left, right)
        pairs = meeting.pairs()
        alone = [
            side.relation.rows - meeting.matched(i, pairs) for i, side in enumerate(meeting.sides)
        ]
        preserved = {"left": (LEFT,), "full": (LEFT, RIGHT)}.get(join.kind, ())
        ports = meeting.thinned(
            node.id, [alone[i] if i in preserved else None for i in (LEFT, RIGHT)], pairs
        )
        emitted = tuple(self.trial.step(join, [port.sample for port in ports]))
        if join.condition is not None:
            inner = replace(join, kind="inner", identity="both")
            pairs = meeting.satisfying(
                pairs,
                Meeting(inner, *ports),
                self.trial.step(inner, [port.sample for port in ports]),
            )
            alone = [
                _without_any(side.relation.rows, a, pairs)
                for side, a in zip(meeting.sides, alone, strict=True)
            ]
        self.joins.append(self._join_cost(node, join, meeting, pairs))
        origin = {"left": left.origin, "right": right.origin}.get(join.identity, 0)
        tables = union([left, right]).tables
        if all(port.exact for port in ports):
            return Relation(
                emitted, float(sum(t.num_rows for t in emitted)), True, 0.0, origin, tables
            )
        matched = left.rows - alone[LEFT]
        rows = {"semi": matched, "anti": alone[LEFT]}.get(
            join.kind, pairs + sum(alone[i] for i in preserved)
        )
        return Relation(emitted, rows, False, meeting.error(rows, matched), origin, tables)

    def _join_cost(self, node: Node, join: Join, meeting: Meeting, pairs: float) -> JoinCost:
        sides = []
        for number, side in enumerate(meeting.sides):
            relation = side.relation
            columns = tuple(self.texts.columns(self._below(node, number))[: side.arrange.key])
            matches = pairs / relation.rows if relation.rows else 0.0
            heaviest = meeting.heaviest(number)
            sides.append(
                JoinSide(
                    relation.tables,
                    columns,
                    round(relation.rows),
                    round(side.keys),
                    matches,
                    side.arrange.unique,
                    heaviest,
                )
            )
        shared = tuple(self.users.get(node.id, ()))
        return JoinCost(
            self.texts.describe(node), sides[LEFT], sides[RIGHT], round(pairs), meeting.seen, shared
        )

    def _below(self, node: Node, port: int) -> Node:
        return self.texts.by_id[node.inputs[port][0]]

    def _note(self, node: Node, state: Sequence[Kept], fed: Sequence[Relation]) -> None:
        """Write down what the node keeps."""
        sizes = [s.size for s in state]
        if failed := self.trial.written.pop(error_table(node), []):
            # groups raise there, not rows
            scale = state[0].scale if isinstance(node.operator, Aggregate) else fed[0].scale
            errors, rows = failures(failed, scale)
            self.errors += rows
            sizes.append(errors.size)
        if sizes:
            shared = tuple(self.users.get(node.id, ()))
            away = node.stateful and not node.local
            what, level = self.texts.describe(node), self.graph.levels[node.id]
            self.nodes.append(
                NodeCost(type(node.operator).__name__, what, level, away, shared, tuple(sizes))
            )


def _without_any(rows: float, alone: float, pairs: float) -> float:
    """Rows without a pair that satisfies a condition: those without any pair, and of the others as
    many as get none by chance.
    """
    able = rows - alone
    return alone + able * math.exp(-pairs / able) if able else alone


def _emitted(
    operator: object, fed: Relation, emitted: tuple[pa.Table, ...], state: Sequence[Kept]
) -> Relation:
    """What a stateful operator with one input gives."""
    seen = sum(t.num_rows for t in emitted)
    if isinstance(operator, Aggregate):
        groups = state[0]
        return Relation(
            emitted,
            seen * groups.scale,
            fed.exact,
            math.hypot(fed.error, groups.error),
            0,
            fed.tables,
        )
    if isinstance(operator, TopK):
        rows, error = (float(seen), 0.0) if fed.exact else _first(operator, fed)
        return Relation(emitted, rows, fed.exact, error, fed.origin, fed.tables)
    # an arrangement; a sink emits nothing
    return replace(fed, sample=emitted, rows=fed.rows if emitted else 0.0)


def _first(operator: TopK, fed: Relation) -> tuple[float, float]:
    """The first rows of every group: as many as the group has, at most `limit`; groups that the
    sample missed have one at least.
    """
    counts = np.bincount(group(fed.keys)[1])
    groups = distinct(counts, fed.rows) if operator.rows.key else Distinct(1, 1, 1)
    each = np.minimum(frequencies(counts, fed.rows, groups.value), operator.limit)
    rows = min(fed.rows, float(each.sum()) + groups.value - len(counts))
    return rows, math.hypot(fed.error, groups.error)
