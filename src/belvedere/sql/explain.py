"""The maintenance graph of a view as text: operators, keys, state tables, exchanges and levels, from the view down to its table.

    revenue  keyed by region
    └─ KeyedSink         one record per region                     level 1              state: the view's table
       └─ Select         HAVING COUNT(*) > 1; region, total        level 1
          └─ Aggregate   by region: count(*), sum(amount)          level 1  ⇄ exchange  state: groups, errors
             └─ Select   WHERE status = 'paid'; region, amount     level 0              state: errors
                └─ Source   changes of orders, with before-images  level 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from belvedere.operators.aggregate import Aggregate, Argument
from belvedere.operators.graph import Graph, Node, Source
from belvedere.operators.results import Call
from belvedere.operators.select import Expression, Select
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.sql.planner import PlannedView
from belvedere.stores.base import TableId
from belvedere.types import Schema

_CALLS = {"count_rows": "count(*)", "count_distinct": "count(DISTINCT {})"}


class ExplainedTable(Protocol):
    """What is said about a base table; a table's definition has it all."""

    @property
    def id(self) -> TableId: ...
    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def before_images(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Line:
    operator: str
    what: str
    level: str
    exchange: str
    state: str


def explain(planned: PlannedView, name: str, tables: Sequence[ExplainedTable]) -> str:
    graph = Graph.of(planned.nodes)
    table = next(t for t in tables if t.id == planned.source)
    texts = _Texts(planned, table)
    lines = []
    for depth, node in enumerate(reversed(planned.nodes)):  # one table below, so the graph is a chain
        indent = "   " * depth + "└─ "
        lines.append(_line(indent, node, graph, texts))
    return "\n".join([f"{name}  {_heading(planned)}", *_aligned(lines)])


def _heading(planned: PlannedView) -> str:
    if not planned.unique:
        return f"equal rows are counted, in the order of {', '.join(planned.schema.key)}"
    return f"keyed by {', '.join(planned.schema.key)}" if planned.schema.key else "one row"


def _line(indent: str, node: Node, graph: Graph, texts: _Texts) -> _Line:
    exchange = "⇄ exchange" if node.stateful and not node.local else ""
    state = ", ".join(texts.state(node))
    operator = indent + type(node.operator).__name__
    return _Line(operator, texts.describe(node), f"level {graph.levels[node.id]}", exchange, f"state: {state}" if state else "")


def _aligned(lines: Sequence[_Line]) -> list[str]:
    rows = [(x.operator, x.what, x.level, x.exchange, x.state) for x in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width).rstrip() for row in rows]


class _Texts:
    """Says what the nodes of one view do, in the words of its SQL."""

    def __init__(self, planned: PlannedView, table: ExplainedTable) -> None:
        self.planned, self.table = planned, table
        self.by_id = {node.id: node for node in planned.nodes}

    def describe(self, node: Node) -> str:
        operator = node.operator
        if isinstance(operator, Source):
            before = "with before-images" if self.table.before_images else "rows before from the delta view"
            return f"changes of {self.table.name}, {before}"
        if isinstance(operator, Select):
            return self._select(node, operator)
        if isinstance(operator, Aggregate):
            return self._aggregate(node, operator)
        key = ", ".join(self.planned.schema.key)
        if isinstance(operator, KeyedSink):
            return f"one record per {key}" if key else "one record"
        return f"one counted record per {key}"

    def _select(self, node: Node, operator: Select) -> str:
        above = isinstance(self._input(node).operator, Aggregate)
        condition = f"{'HAVING' if above else 'WHERE'} {operator.condition.text}; " if operator.condition else ""
        return condition + (", ".join(self._outputs(node, operator)) or "nothing but the rows themselves")

    def _outputs(self, node: Node, operator: Select) -> list[str]:
        if node is not self.planned.nodes[-2]:
            return [e.text for e in operator.outputs]
        named = zip(operator.outputs, self.planned.schema.names, strict=True)
        return [name if _plain_name(e).lower() == name.lower() else f"{e.text} AS {name}" for e, name in named]

    def _aggregate(self, node: Node, operator: Aggregate) -> str:
        below = self._arguments(node)
        groups = ", ".join(below[: len(operator.groups)])
        calls = ", ".join(_call(call, operator.arguments, below) for call in operator.calls) or "the groups themselves"
        return f"by {groups}: {calls}" if groups else f"over all rows: {calls}"

    def _arguments(self, node: Node) -> list[str]:
        below = self._input(node).operator
        assert isinstance(below, Select)  # the planner puts one below every aggregate
        return [e.text for e in below.outputs]

    def _input(self, node: Node) -> Node:
        return self.by_id[node.inputs[0]]

    def state(self, node: Node) -> list[str]:
        """The node's state tables by what is in them; their ids mean nothing to a reader."""
        operator = node.operator
        if isinstance(operator, KeyedSink | BagSink):
            return ["the view's table"]
        if isinstance(operator, Select):
            return ["errors"] if operator.errors else []
        if isinstance(operator, Aggregate):
            below = self._arguments(node)
            ordered = [f"values of {_inputs(a, below)}" for a in operator.arguments if a.ordered]
            return ["groups", *ordered, "errors"]
        return [] if self.table.before_images else ["delta view"]


def _plain_name(expression: Expression) -> str:
    """The name of a column that is passed on, without its table; the text of anything else."""
    return expression.text.split(".")[-1].strip("`") if expression.column >= 0 else expression.text


def _call(call: Call, arguments: Sequence[Argument], below: Sequence[str]) -> str:
    text = _CALLS.get(call.function, call.function + "({})")
    return text.format(_inputs(arguments[call.argument], below)) if call.argument >= 0 else text


def _inputs(argument: Argument, below: Sequence[str]) -> str:
    return ", ".join(below[i] for i in argument.inputs)
