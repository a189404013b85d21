"""The plan of an epoch: an intent with the definitions that it names, and who may see what.

Nodes that are complete belong to audience 0; nodes that are being built belong to the audience of
their group. What an origin emits goes to audience 0, and to a group as far as that group is loaded
from it (rule R7):

    sees(group, row)  <=>  state key of the row <= mark of the origin in that group
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.epochs.intent import CHANGES, Intent
from belvedere.graph import Graph, Node, error_table

COMPLETE = 0  # the audience of everything that is loaded


@dataclass(frozen=True, slots=True)
class EpochPlan:
    intent: Intent
    tables: dict[int, TableDefinition]
    graph: Graph
    audience: dict[int, int]  # node -> COMPLETE or the group that is building it
    # node -> audiences of the stateful nodes that a stateless node's output gets to
    reached: dict[int, frozenset[int]]
    error_tables: frozenset[int]

    @classmethod
    def of(
        cls, intent: Intent, views: Iterable[ViewDefinition], tables: Iterable[TableDefinition]
    ) -> EpochPlan:
        nodes = {n.id: n for v in views for n in v.nodes}
        graph = Graph.of(nodes[i] for i in sorted(nodes))  # a node's inputs are older than itself
        audience = dict.fromkeys(nodes, COMPLETE)
        for group in intent.loading:
            audience.update(dict.fromkeys(group.nodes, group.group))
        named = {t.id: t for t in tables}
        faults = {fault for table in named.values() for fault in table.faults}
        errors = faults | set(filter(None, map(error_table, graph.nodes)))
        reached = _reached(graph, audience)
        return cls(intent, named, graph, audience, reached, frozenset(errors))

    @property
    def repeatable(self) -> bool:
        """Whether every task may read for all slots and go on with level 1: nothing else in level 0
        has rows for other tasks there.
        """
        return (
            self.intent.kind == CHANGES
            and not any(t.delta for t in self.tables.values())
            and not self._sends_from_level_0
        )

    def marks(self, node: Node) -> list[tuple[int, bytes | None]]:
        """Groups that are loaded from this node, and up to which key (None: all); a group that has
        not begun is not there.
        """
        found = [(g.group, g.marks[node.id]) for g in self.intent.loading if node.id in g.marks]
        return [(group, None if mark is None else bytes.fromhex(mark)) for group, mark in found]

    @property
    def _sends_from_level_0(self) -> bool:
        """Whether an operator with state in level 0 sends rows to another slot in level 1."""
        levels, consumers = self.graph.levels, self.graph.consumers
        sent = [
            c for n in self.graph.nodes if n.stateful and not levels[n.id] for c in consumers[n.id]
        ]
        while sent:
            node = sent.pop()
            if node.stateful and levels[node.id] == 1 and not node.local:
                return True
            if not node.stateful:
                sent += consumers[node.id]
        return False

    def active(self, node: Node) -> bool:
        """A derived node that is being built works only when it is loaded from: before, nobody
        wants what it emits.
        """
        return not node.derived or self.audience[node.id] == COMPLETE or bool(self.marks(node))


def _reached(graph: Graph, audience: dict[int, int]) -> dict[int, frozenset[int]]:
    reached: dict[int, frozenset[int]] = {}
    for node in reversed(graph.nodes):
        above: Sequence[Node] = graph.consumers[node.id]
        reached[node.id] = frozenset(
            a for c in above for a in (reached[c.id] if c.stateless else {audience[c.id]})
        )
    return reached
