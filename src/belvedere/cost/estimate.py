"""The cost of a plan: its nodes in order, each run over the samples of its inputs and scaled up.

Conditions on sums and counts (HAVING, a join with them) see those of the sample; all else follows
the rules of `rules`, `joins` and `sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from belvedere.catalog.definitions import TableDefinition
from belvedere.cost.joins import Meeting
from belvedere.cost.relation import Relation, union
from belvedere.cost.report import Cost, JoinCost, JoinSide, NodeCost, SampledTable
from belvedere.cost.rules import Fed, Result, emit
from belvedere.cost.sample import LIMIT, Sample, take_samples
from belvedere.cost.sizes import Kept, failures
from belvedere.cost.trial import Trial
from belvedere.explain import Texts, Users
from belvedere.graph import Graph, Node, error_table
from belvedere.operators.sides import LEFT, RIGHT, Side
from belvedere.sql.planned import PlannedView
from belvedere.stores.base import Store, TableId


def estimate(
    store: Store,
    name: str,
    planned: PlannedView,
    tables: Sequence[TableDefinition],
    users: Users,
    limit: int = LIMIT,
    places: Mapping[TableId, TableId] | None = None,
) -> Cost:
    """The cost of a plan whose nodes are bound; `users` says which other
    views keep a node already, `places` under which ids the rows of tables are, if not their own.
    """
    by_id = {t.id: t for t in tables}
    found = {table: (places or {}).get(table, table) for table in planned.sources}
    taken = take_samples(store, dict.fromkeys(found.values()), limit)
    samples = {table: taken[place] for table, place in found.items()}
    run = _Run(planned, by_id, samples, users, Trial(store.state.slots))
    for node in planned.nodes:
        run.add(node)
    return run.report(name)


@dataclass(slots=True)
class _Run:
    planned: PlannedView
    tables: Mapping[TableId, TableDefinition]
    samples: Mapping[TableId, Sample]
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
        fed = self._fed(node)
        result = emit(node.operator, self.trial, fed)
        self.relations[node.id] = result.relation
        if result.meeting is not None:
            self.joins.append(self._join_cost(node, result.meeting, result.pairs))
        self._note(node, result, fed)

    def _fed(self, node: Node) -> Fed:
        if node.source:
            ports = [self._base(node.operator.base_table)]
        else:
            ports = [union([self.relations[i] for i in port]) for port in node.inputs]
        words = (self.texts.table(node, table) for table in node.operator.tables())
        return Fed(tuple(ports), tuple(words), node.id)

    def report(self, name: str) -> Cost:
        new = [n for n in self.nodes if not n.shared]
        away = [n for n in self.planned.nodes if n.stateful and not n.local]
        sampled = (
            SampledTable(self.tables[t].name, s.rows, len(s.keys)) for t, s in self.samples.items()
        )
        return Cost(
            name,
            all(r.exact for r in self.relations.values()),
            tuple(sampled),
            self.graph.depth,
            len(away),
            sum(not self.users.get(n.id) for n in away),
            sum(n.records for n in new),
            sum(n.bytes for n in new),
            round(self.errors),
            tuple(reversed(self.nodes)),
            tuple(reversed(self.joins)),
        )

    def _base(self, number: TableId) -> Relation:
        """A base table, as far as it is in the sample."""
        table, sample = self.tables[number], self.samples[number]
        changes = sample.changes(table.schema)
        rows = (changes,) if changes.num_rows else ()
        return Relation(rows, sample.rows, sample.one_in == 1, 0.0, table.id, (table.name,))

    def _join_cost(self, node: Node, meeting: Meeting, pairs: float) -> JoinCost:
        return JoinCost(
            self.texts.describe(node),
            self._join_side(node, meeting, LEFT, pairs),
            self._join_side(node, meeting, RIGHT, pairs),
            round(pairs),
            meeting.seen,
            tuple(self.users.get(node.id, ())),
        )

    def _join_side(self, node: Node, meeting: Meeting, number: Side, pairs: float) -> JoinSide:
        side = meeting.sides[number]
        below = self.texts.by_id[node.inputs[number][0]]
        rows = side.relation.rows
        return JoinSide(
            side.relation.tables,
            self.texts.columns(below)[: side.arrange.key],
            round(rows),
            round(side.keys),
            pairs / rows if rows else 0.0,
            side.arrange.unique,
            meeting.heaviest(number),
        )

    def _note(self, node: Node, result: Result, fed: Fed) -> None:
        """Write down what the node keeps."""
        sizes = [kept.size for kept in result.state]
        if failed := self.trial.written.pop(error_table(node), []):
            errors, rows = failures(failed, self._error_scale(node, result.state, fed))
            self.errors += rows
            sizes.append(errors.size)
        if sizes:
            self.nodes.append(
                NodeCost(
                    type(node.operator).__name__,
                    self.texts.describe(node),
                    self.graph.levels[node.id],
                    node.stateful and not node.local,
                    tuple(self.users.get(node.id, ())),
                    tuple(sizes),
                )
            )

    def _error_scale(self, node: Node, state: Sequence[Kept], fed: Fed) -> float:
        """How many error records one of the sample stands for: as rows of the input do, or as the
        records of its result.
        """
        return state[0].scale if node.operator.errors_of == "result" else fed.first.scale
