"""A node of the maintenance graph: an operator, and what feeds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.operators.base import Operator, Origin
from belvedere.stores.base import TableId

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
    def source(self) -> bool:
        """It stands for a base table."""
        return bool(self.operator.base_table)

    @property
    def stateful(self) -> bool:
        return self.operator.stateful

    @property
    def derived(self) -> bool:
        """Keeps nothing itself: it reads what its arranged inputs keep."""
        return self.operator.derived

    @property
    def stateless(self) -> bool:
        """It passes on what its input emits, changed row by row."""
        return not self.stateful and not self.source

    @property
    def origin(self) -> Origin:
        """The operator, of a node whose rows can be read from state."""
        if not isinstance(self.operator, Origin):
            raise TypeError(f"nothing can be loaded from a {type(self.operator).__name__}")
        return self.operator

    @property
    def below(self) -> tuple[int, ...]:
        """All nodes that feed this one."""
        return tuple(dict.fromkeys(i for port in self.inputs for i in port))


def state_tables(node: Node) -> tuple[TableId, ...]:
    """All state tables that the node writes."""
    return tuple(table.id for table in node.operator.tables())


def error_table(node: Node) -> TableId:
    """Where the node keeps rows that it cannot evaluate (rule R9), or 0."""
    return node.operator.error_table()


def columns_used(nodes: Sequence[Node]) -> dict[TableId, frozenset[int] | None]:
    """Which columns of every base table somebody needs; None: all, or it is not known."""
    sources = {node.id: node.operator.base_table for node in nodes if node.source}
    used: dict[TableId, frozenset[int] | None] = dict.fromkeys(sources.values(), frozenset())
    for node in nodes:
        for table in (sources[below] for below in node.below if below in sources):
            known, read = used[table], node.operator.columns_read()
            used[table] = None if known is None or read is None else known | read
    return used
