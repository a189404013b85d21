"""What the planner is told and what it answers: values that the catalog keeps, and that are read
without the planner.
"""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.graph import Node
from belvedere.operators.base import ViewTable
from belvedere.stores.base import TableId
from belvedere.types import Schema


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What the planner must know of a base table."""

    id: TableId
    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class ViewInfo:
    """What the planner must know of another view: its SELECT and the names of its columns."""

    name: str
    select: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedView:
    """`schema.key` is the record key: the columns that the user named (the first `named`), then
    what makes it unique.

    `unique` is False for a bag: rows are counted and the key is all columns. `nodes` have local ids
    in an order in which inputs come first, and 1 for every state table (`graph.bind` gives both
    their real ids); the last is the sink. `checked` is the SELECT by which another engine can
    recompute the view: orders that leave something open are made total. `reads` names the views
    that the SELECT refers to, in lower case. `columns` says which column of the sink each column of
    the view is.
    """

    schema: Schema
    named: int
    unique: bool
    nodes: tuple[Node, ...]
    checked: str
    reads: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def sink(self) -> ViewTable:
        operator = self.nodes[-1].operator
        assert isinstance(operator, ViewTable)  # the planner ends every graph with one
        return operator

    @property
    def sources(self) -> tuple[TableId, ...]:
        """The base tables whose changes the view follows."""
        return tuple(n.operator.base_table for n in self.nodes if n.source)
