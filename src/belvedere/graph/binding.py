"""Binding: the nodes of a plan become nodes of the one graph.

Equal nodes over equal inputs are one node, whichever view asked for them: `shape` says what equal
means. A new node gets state tables of its own; one that reads its inputs' state gets to know their
tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from belvedere.graph.node import Inputs, Node
from belvedere.operators.base import Derived, NewId, Operator
from belvedere.stores.base import TableId

WANTED = 1  # in a plan: a state table that gets its id when the plan is bound

Places = dict[tuple[str, Inputs, bool], Node]  # nodes by what makes two of them the same


@lru_cache(maxsize=65536)
def shape(operator: Operator) -> str:
    """What two nodes over the same inputs must agree in to be one: everything but table ids and the
    users' words.
    """
    return json.dumps(_shape(operator.with_tables(lambda: WANTED)))


def _shape(value: Any) -> Any:
    if is_dataclass(value):
        kept = [f.name for f in fields(value) if not f.metadata.get("users_words")]
        return [type(value).__name__, *(_shape(getattr(value, name)) for name in kept)]
    return [_shape(v) for v in value] if isinstance(value, tuple) else value


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
            operator = _bind_operator(node.operator, below, new_id)
            known[place] = Node(new_id(), operator, inputs, node.local)
        made[node.id] = known[place]
    return tuple({n.id: n for n in made.values()}.values())


def _bind_operator(operator: Operator, inputs: Sequence[Operator], new_id: NewId) -> Operator:
    if isinstance(operator, Derived):
        return operator.with_inputs(inputs)
    given: list[TableId] = []

    def give() -> TableId:
        given.append(new_id())
        return given[-1]

    bound = operator.with_tables(give)
    _check_tables(bound, given)
    return bound


def _check_tables(operator: Operator, given: Sequence[TableId]) -> None:
    """A table that kept the id of a plan would be shared by all nodes that forgot theirs."""
    named = [table.id for table in operator.tables()]
    if sorted(named) != sorted(given):
        raise TypeError(
            f"{type(operator).__name__} names the state tables {named} but asked for {len(given)}:"
            " its tables() and with_tables() must speak of the same ones"
        )
