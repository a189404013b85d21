"""The maintenance graph of a view as a tree, from the view down to its tables: data, to be drawn as
text or sent to a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from belvedere.graph import Graph, Node
from belvedere.operators.base import StateTable, Wording
from belvedere.sql.planned import PlannedView
from belvedere.stores.base import TableId
from belvedere.types import Schema

Users = Mapping[int, Sequence[str]]  # node -> other views that use it
Columns = tuple[str, ...]


class ExplainedTable(Protocol):
    """What is said about a base table; a table's definition has it all."""

    @property
    def id(self) -> TableId: ...
    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def delta(self) -> TableId: ...


@dataclass(frozen=True, slots=True)
class Explained:
    """One node: its operator, what it does, and what it keeps, in the words of the view's SQL.

    A node that stands in the tree already comes `again`, without what is below it.
    """

    operator: str
    what: str
    level: int
    exchange: bool
    state: tuple[str, ...]
    shared: tuple[str, ...]  # views that keep this state already
    inputs: tuple[Explained, ...] = ()
    again: bool = False


def explain_tree(
    planned: PlannedView, tables: Sequence[ExplainedTable], users: Users | None = None
) -> Explained:
    return _Tree(planned, tables, users or {}).explain(planned.nodes[-1])


class _Tree:
    def __init__(
        self, planned: PlannedView, tables: Sequence[ExplainedTable], users: Users
    ) -> None:
        self.graph, self.users = Graph.of(planned.nodes), users
        self.texts = Texts(planned, tables)
        self.drawn: set[int] = set()

    def explain(self, node: Node) -> Explained:
        again = node.id in self.drawn and bool(node.inputs)
        self.drawn.add(node.id)
        below = () if again else (self.texts.by_id[i] for port in node.inputs for i in port)
        state = self.texts.state(node)
        return Explained(
            type(node.operator).__name__,
            self.texts.describe(node),
            self.graph.levels[node.id],
            node.stateful and not node.local,
            state,
            tuple(self.users.get(node.id, ())) if state else (),
            tuple(self.explain(child) for child in below),
            again,
        )


class Texts:
    """Says what the nodes of one view do, in the words of its SQL."""

    def __init__(self, planned: PlannedView, tables: Sequence[ExplainedTable]) -> None:
        self.planned, self.sink = planned, planned.nodes[-1]
        self.tables = {t.id: t for t in tables}
        self.by_id = {node.id: node for node in planned.nodes}
        self._columns: dict[int, Columns] = {}

    def describe(self, node: Node) -> str:
        return node.operator.explain(self._wording(node))

    def columns(self, node: Node) -> Columns:
        """What the columns that a node emits hold."""
        if node.id not in self._columns:
            self._columns[node.id] = node.operator.columns(self._inputs(node))
        return self._columns[node.id]

    def state(self, node: Node) -> tuple[str, ...]:
        """The node's state tables by what is in them; their ids mean nothing to a reader."""
        if node.source:
            return ("delta view",) if self._table(node).delta else ()
        return tuple(self.table(node, table) for table in node.operator.tables())

    def table(self, node: Node, table: StateTable) -> str:
        """What is in one of the node's state tables."""
        if node.id == self.sink.id:
            return "the view's table"
        if not table.of:
            return table.what
        (below,) = self._inputs(node)
        return f"{table.what} of {', '.join(below[i] for i in table.of)}"

    def _wording(self, node: Node) -> Wording:
        inputs = self._inputs(node)
        if node.source:
            return Wording(inputs, table=self._source(node))
        below = self.by_id[node.inputs[0][0]].operator
        feeds_view = node.id in self.sink.below
        return Wording(
            inputs,
            below.condition_word,
            key=self.planned.schema.key if node.id == self.sink.id else (),
            names=self._names() if feeds_view else {},
        )

    def _source(self, node: Node) -> str:
        table = self._table(node)
        return f"{table.name}, rows before from the delta view" if table.delta else table.name

    def _names(self) -> dict[int, str]:
        """The view's name of each column of its table; the first, if it shows one twice."""
        names: dict[int, str] = {}
        for name, column in zip(self.planned.schema.names, self.planned.columns, strict=True):
            names.setdefault(column, name)
        return names

    def _inputs(self, node: Node) -> tuple[Columns, ...]:
        """The columns of each port; that of a source is its base table."""
        if node.source:
            return (self._table(node).schema.names,)
        return tuple(self.columns(self.by_id[port[0]]) for port in node.inputs)

    def _table(self, node: Node) -> ExplainedTable:
        return self.tables[node.operator.base_table]
