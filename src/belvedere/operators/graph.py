"""The maintenance graph: operators, what feeds them, and in which level of an epoch each one runs.

    level(source) = 0
    level(n)      = max(level of inputs) + 1 if n needs an exchange, else max(level of inputs)

A stateful operator needs an exchange when its state key is not what its input is already partitioned by. The size of an
epoch's job is the depth of the graph, not the number of views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from belvedere.operators.aggregate import Aggregate, Argument
from belvedere.operators.results import Call
from belvedere.operators.select import Expression, Select
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.stores.base import TableId
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class Source:
    """Changes of a base table, partitioned by its key."""

    table: TableId
    types: tuple[SqlType, ...]


Operator = Source | Select | Aggregate | KeyedSink | BagSink


@dataclass(frozen=True, slots=True)
class Node:
    """`local`: the operator's state key is what its input is partitioned by, so nothing has to travel."""

    id: int
    operator: Operator
    inputs: tuple[int, ...] = ()
    local: bool = False

    @property
    def stateful(self) -> bool:
        return isinstance(self.operator, Aggregate | KeyedSink | BagSink)


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
            above = max((levels[i] for i in node.inputs), default=0)
            levels[node.id] = above + (1 if node.stateful and not node.local else 0)
            for i in node.inputs:
                consumers[i] += (node,)
        return cls(ordered, levels, consumers)

    @property
    def depth(self) -> int:
        return 1 + max(self.levels.values(), default=0)


def state_tables(node: Node) -> tuple[TableId, ...]:
    """All state tables that the node writes."""
    operator = node.operator
    if isinstance(operator, Aggregate):
        ordered = tuple(a.ordered for a in operator.arguments if a.ordered)
        return (operator.table, *ordered, operator.errors)
    if isinstance(operator, KeyedSink | BagSink):
        return (operator.table,)
    return (operator.errors,) if isinstance(operator, Select) and operator.errors else ()


_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (Source, Select, Expression, Aggregate, Argument, Call, KeyedSink, BagSink, Node, SqlType)
}


def to_json(value: Any) -> Any:
    """Plans are trees of frozen dataclasses; each is written with its class name."""
    if is_dataclass(value):
        return {"is": type(value).__name__, **{f.name: to_json(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    return value


def from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return _KINDS[value["is"]](**{k: from_json(v) for k, v in value.items() if k != "is"})
    if isinstance(value, list):
        return tuple(from_json(v) for v in value)
    return value
