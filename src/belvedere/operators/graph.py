"""The maintenance graph: operators, what feeds them, and in which level of an epoch each one runs.

    level(source) = 0
    level(n)      = max(level of inputs) + 1 if n needs an exchange, else max(level of inputs)

A stateful operator needs an exchange when its state key is not what its input is already
partitioned by. The size of an epoch's job is the depth of the graph, not the number of views. Equal
nodes over equal inputs are one node, whichever view asked for them: `shape` says what equal means,
and `bound` gives a new node its state tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

from belvedere.operators.aggregate import Aggregate, Argument
from belvedere.operators.arrange import Arrange
from belvedere.operators.join import Join
from belvedere.operators.results import Call
from belvedere.operators.select import Expression, Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.operators.topk import TopK
from belvedere.stores.base import TableId
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class Source:
    """Changes of a base table, partitioned by its key."""

    table: int  # the base table's id: not a state table
    types: tuple[SqlType, ...]


Operator = Source | Select | Aggregate | Arrange | Join | TopK | SetOperation | KeyedSink | BagSink
Inputs = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Node:
    """`inputs[p]` are the nodes that feed port p; several are a UNION ALL.

    `local`: the operator's state key is what its input is partitioned by, so nothing has to travel.
    """

    id: int
    operator: Operator
    inputs: Inputs = ()
    local: bool = False

    @property
    def stateful(self) -> bool:
        return not isinstance(self.operator, Source | Select)

    @property
    def derived(self) -> bool:
        """Keeps nothing itself: it reads what its arranged inputs keep."""
        return isinstance(self.operator, Join | TopK)

    @property
    def below(self) -> tuple[int, ...]:
        """All nodes that feed this one."""
        return tuple(dict.fromkeys(i for port in self.inputs for i in port))


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


def state_tables(node: Node) -> tuple[TableId, ...]:
    """All state tables that the node writes."""
    return () if node.derived else tuple(_tables(node.operator))


def error_table(node: Node) -> TableId:
    """Where the node keeps rows that it cannot evaluate (rule R9), or 0."""
    return node.operator.errors if isinstance(node.operator, Select | Aggregate) else 0


def _tables(value: Any) -> Iterable[TableId]:
    if isinstance(value, tuple):
        for item in value:
            yield from _tables(item)
    elif is_dataclass(value):
        for f in fields(value):
            inner = getattr(value, f.name)
            if f.type == "TableId":
                if inner:
                    yield inner
            else:
                yield from _tables(inner)


@lru_cache(maxsize=65536)
def shape(operator: Operator) -> str:
    """What two nodes over the same inputs must agree in to be one: everything but table ids and the
    users' words.
    """
    return json.dumps(_shape(operator))


def _shape(value: Any) -> Any:
    if is_dataclass(value):
        kept = [f for f in fields(value) if f.name != "text"]
        parts = [
            bool(getattr(value, f.name)) if f.type == "TableId" else _shape(getattr(value, f.name))
            for f in kept
        ]
        return [type(value).__name__, *parts]
    return [_shape(v) for v in value] if isinstance(value, tuple) else value


def bound(
    operator: Operator, inputs: Sequence[Operator], new_id: Callable[[], TableId]
) -> Operator:
    """The operator with state tables of its own; one that reads its inputs' state gets to know
    their tables.
    """
    if isinstance(operator, Join):
        left, right = inputs
        assert isinstance(left, Arrange) and isinstance(right, Arrange)  # noqa: PT018  # the planner arranges both sides
        return replace(operator, left=left, right=right)
    if isinstance(operator, TopK):
        (rows,) = inputs
        assert isinstance(rows, Arrange)
        return replace(operator, rows=rows)
    result: Operator = _filled(operator, new_id)
    return result


def _filled(value: Any, new_id: Callable[[], TableId]) -> Any:
    if isinstance(value, tuple):
        return tuple(_filled(v, new_id) for v in value)
    if not is_dataclass(value):
        return value
    changed = {
        f.name: (
            (new_id() if getattr(value, f.name) else 0)
            if f.type == "TableId"
            else _filled(getattr(value, f.name), new_id)
        )
        for f in fields(value)
    }
    return replace(value, **changed)  # type: ignore[type-var]  # a dataclass instance


Places = dict[tuple[str, Inputs, bool], Node]  # nodes by what makes two of them the same


def places(existing: Iterable[Node]) -> Places:
    return {(shape(n.operator), n.inputs, n.local): n for n in existing}


def bind(nodes: Sequence[Node], known: Places, new_id: Callable[[], int]) -> tuple[Node, ...]:
    """The nodes of a plan with real ids: those that exist already, where they are equal over equal
    inputs, and new ones.

    What is new is known afterwards, so that many views can be bound one after the other.
    """
    made: dict[int, Node] = {}
    for node in nodes:
        inputs = tuple(tuple(made[i].id for i in port) for port in node.inputs)
        place = shape(node.operator), inputs, node.local
        if place not in known:
            below = [made[port[0]].operator for port in node.inputs]
            operator = bound(node.operator, below, new_id)
            known[place] = Node(new_id(), operator, inputs, node.local)
        made[node.id] = known[place]
    return tuple({n.id: n for n in made.values()}.values())


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Source, Select, Expression, Aggregate, Argument, Call, Arrange, Join, TopK, SetOperation),
        *(KeyedSink, BagSink, Node, SqlType),
    )
}


def to_json(value: Any) -> Any:
    """Plans are trees of frozen dataclasses; each is written with its class name."""
    if is_dataclass(value):
        return {
            "is": type(value).__name__,
            **{f.name: to_json(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    return value


def from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return _KINDS[value["is"]](**{k: from_json(v) for k, v in value.items() if k != "is"})
    if isinstance(value, list):
        return tuple(from_json(v) for v in value)
    return value
