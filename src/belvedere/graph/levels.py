"""In which level of an epoch each node runs.

    level(source) = 0
    level(n)      = max(level of inputs) + 1 if n needs an exchange, else max(level of inputs)

A stateful operator needs an exchange when its state key is not what its input is already
partitioned by. The size of an epoch's job is the depth of the graph, not the number of views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from belvedere.graph.node import Node


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which every input stands before its consumers."""

    nodes: tuple[Node, ...]
    levels: Mapping[int, int]
    consumers: Mapping[int, tuple[Node, ...]]

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Graph:
        ordered = tuple(nodes)
        levels: dict[int, int] = {}
        consumers: dict[int, tuple[Node, ...]] = {n.id: () for n in ordered}
        for node in ordered:
            above = max((levels[i] for i in node.below), default=0)
            levels[node.id] = above + (1 if node.stateful and not node.local else 0)
            for i in node.below:
                consumers[i] += (node,)
        return cls(ordered, levels, consumers)

    @property
    def depth(self) -> int:
        return 1 + max(self.levels.values(), default=0)
