"""The maintenance graph of a view as text, from the view down to its tables.

    paid  keyed by id
    └─ KeyedSink      one record per id                 level 2  ⇄ exchange  state: the view's table
       └─ Select      o.id, c.name                       level 1
          └─ Join     inner, o.customer = c.id           level 1
             ├─ Arrange      rows by o.customer: o.id    level 1  ⇄ exchange  state: rows
             │  └─ Source    changes of orders           level 0
             └─ Arrange      one row by c.id: c.name     level 0              state: rows  shared
                └─ ...

What other views keep already is marked as shared, and not drawn twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from belvedere.operators.aggregate import Aggregate, Argument
from belvedere.operators.arrange import Arrange
from belvedere.operators.graph import Graph, Node, Source
from belvedere.operators.join import Join
from belvedere.operators.results import Call
from belvedere.operators.select import Expression, Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.sinks import KeyedSink
from belvedere.operators.topk import TopK
from belvedere.sql.planned import PlannedView
from belvedere.stores.base import TableId
from belvedere.types import Schema

_CALLS = {"count_rows": "count(*)", "count_distinct": "count(DISTINCT {})"}
Users = Mapping[int, Sequence[str]]  # node -> other views that use it


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
    level: str = ""
    exchange: str = ""
    state: str = ""
    shared: str = ""


def explain(
    planned: PlannedView, name: str, tables: Sequence[ExplainedTable], users: Users | None = None
) -> str:
    drawing = _Drawing(planned, tables, users or {})
    lines = list(drawing.lines(planned.nodes[-1], "", "└─ ", "   "))
    return "\n".join([f"{name}  {_heading(planned)}", *_aligned(lines)])


def _heading(planned: PlannedView) -> str:
    if not planned.unique:
        return f"equal rows are counted, in the order of {', '.join(planned.schema.key)}"
    return f"keyed by {', '.join(planned.schema.key)}" if planned.schema.key else "one row"


def _aligned(lines: Sequence[_Line]) -> list[str]:
    rows = [(x.operator, x.what, x.level, x.exchange, x.state, x.shared) for x in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width
        ).rstrip()
        for row in rows
    ]


class _Drawing:
    """Draws the tree of one view; a node that stands in it already is only named again."""

    def __init__(
        self, planned: PlannedView, tables: Sequence[ExplainedTable], users: Users
    ) -> None:
        self.graph, self.users = Graph.of(planned.nodes), users
        self.texts = Texts(planned, tables)
        self.drawn: set[int] = set()

    def lines(self, node: Node, indent: str, mark: str, below: str) -> Iterator[_Line]:
        if node.id in self.drawn and node.inputs:
            yield _Line(
                indent + mark + type(node.operator).__name__,
                f"as above: {self.texts.describe(node)}",
            )
            return
        self.drawn.add(node.id)
        yield self._line(indent + mark, node)
        inputs = [self.texts.by_id[i] for port in node.inputs for i in port]
        for number, child in enumerate(inputs):
            last = number == len(inputs) - 1
            yield from self.lines(
                child, indent + below, "└─ " if last else "├─ ", "   " if last else "│  "
            )

    def _line(self, lead: str, node: Node) -> _Line:
        exchange = "⇄ exchange" if node.stateful and not node.local else ""
        state = ", ".join(self.texts.state(node))
        others = ", ".join(self.users.get(node.id, ())) if state else ""
        return _Line(
            lead + type(node.operator).__name__,
            self.texts.describe(node),
            f"level {self.graph.levels[node.id]}",
            exchange,
            f"state: {state}" if state else "",
            f"shared with {others}" if others else "",
        )


class Texts:
    """Says what the nodes of one view do, in the words of its SQL."""

    def __init__(self, planned: PlannedView, tables: Sequence[ExplainedTable]) -> None:
        self.planned = planned
        self.tables = {t.id: t for t in tables}
        self.by_id = {node.id: node for node in planned.nodes}

    def describe(self, node: Node) -> str:
        operator = node.operator
        if isinstance(operator, Source):
            table = self.tables[operator.table]
            before = (
                "with before-images" if table.before_images else "rows before from the delta view"
            )
            return f"changes of {table.name}, {before}"
        if isinstance(operator, Select):
            return self._select(node, operator)
        if isinstance(operator, Aggregate):
            return self._aggregate(node, operator)
        if isinstance(operator, Arrange):
            return self._arrange(node, operator)
        if isinstance(operator, Join):
            return self._join(node, operator)
        if isinstance(operator, TopK):
            return f"the first {operator.limit} row(s)" + (
                " of each group" if operator.rows.key else ""
            )
        if isinstance(operator, SetOperation):
            return (
                f"{operator.kind.upper()}{' ALL' if operator.all else ''} of"
                f" {', '.join(self.columns(self._input(node)))}"
            )
        key = ", ".join(self.planned.schema.key)
        if isinstance(operator, KeyedSink):
            return f"one record per {key}" if key else "one record"
        return f"one counted record per {key}"

    def columns(self, node: Node) -> list[str]:
        """What the columns that a node emits hold."""
        operator = node.operator
        if isinstance(operator, Source):
            return list(self.tables[operator.table].schema.names)
        if isinstance(operator, Select):
            return [e.text for e in operator.outputs]
        if isinstance(operator, Aggregate):
            below = self.columns(self._input(node))
            return [
                *below[: len(operator.groups)],
                *(_call(c, operator.arguments, below) for c in operator.calls),
            ]
        if isinstance(operator, Join):
            left, right = (self.columns(self._input(node, port)) for port in (0, 1))
            return (
                left if operator.kind in ("semi", "anti") else [*left, *right[operator.right.key :]]
            )
        if isinstance(operator, TopK):
            return [*self.columns(self._input(node)), *(["row_number()"] if operator.rank else [])]
        return self.columns(self._input(node))

    def _select(self, node: Node, operator: Select) -> str:
        word = "HAVING" if isinstance(self._input(node).operator, Aggregate) else "WHERE"
        condition = f"{word} {operator.condition.text}; " if operator.condition else ""
        return condition + (
            ", ".join(self._outputs(node, operator)) or "nothing but the rows themselves"
        )

    def _outputs(self, node: Node, operator: Select) -> list[str]:
        if node.id not in self.planned.nodes[-1].below:
            return [e.text for e in operator.outputs]
        called: dict[int, str] = {}
        for name, place in zip(self.planned.schema.names, self.planned.columns, strict=True):
            called.setdefault(place, name)
        named = ((e, called[i]) for i, e in enumerate(operator.outputs))
        return [
            name if _plain_name(e).lower() == name.lower() else f"{e.text} AS {name}"
            for e, name in named
        ]

    def _aggregate(self, node: Node, operator: Aggregate) -> str:
        below = self.columns(self._input(node))
        groups = ", ".join(below[: len(operator.groups)])
        calls = (
            ", ".join(_call(call, operator.arguments, below) for call in operator.calls)
            or "the groups themselves"
        )
        return f"by {groups}: {calls}" if groups else f"over all rows: {calls}"

    def _arrange(self, node: Node, operator: Arrange) -> str:
        below = self.columns(self._input(node))
        end = operator.key + len(operator.order)
        keys, order, rest = below[: operator.key], below[operator.key : end], below[end:]
        what = "one row" if operator.unique else "rows"
        what += f" by {', '.join(keys)}" if keys else " under one key"
        if order:
            what += " in order of " + ", ".join(
                f"{x} DESC" if down else x for x, down in zip(order, operator.order, strict=True)
            )
        return f"{what}: {', '.join(rest)}" if rest else what

    def _join(self, node: Node, operator: Join) -> str:
        left, right = (
            self.columns(self._input(node, port))[: operator.left.key] for port in (0, 1)
        )
        signs = ["<=>" if safe else "=" for safe in operator.null_safe]
        on = (
            " AND ".join(f"{a} {sign} {b}" for a, sign, b in zip(left, signs, right, strict=True))
            or "one row on the right"
        )
        return f"{operator.kind}, {on}" + (
            f", and {operator.condition.text}" if operator.condition else ""
        )

    def _input(self, node: Node, port: int = 0) -> Node:
        return self.by_id[node.inputs[port][0]]

    def state(self, node: Node) -> list[str]:
        """The node's state tables by what is in them; their ids mean nothing to a reader."""
        operator = node.operator
        if node.id == self.planned.nodes[-1].id:
            return ["the view's table"]
        if isinstance(operator, Select):
            return ["errors"] if operator.errors else []
        if isinstance(operator, Aggregate):
            below = self.columns(self._input(node))
            ordered = [f"values of {_inputs(a, below)}" for a in operator.arguments if a.ordered]
            return ["groups", *ordered, "errors"]
        if isinstance(operator, Arrange):
            return ["rows"]
        if isinstance(operator, SetOperation):
            return ["counts of both sides"]
        return (
            ["delta view"]
            if isinstance(operator, Source) and not self.tables[operator.table].before_images
            else []
        )


def _plain_name(expression: Expression) -> str:
    """The name of a column that is passed on, without its table; the text of anything else."""
    return expression.text.split(".")[-1].strip("`") if expression.column >= 0 else expression.text


def _call(call: Call, arguments: Sequence[Argument], below: Sequence[str]) -> str:
    text = _CALLS.get(call.function, call.function + "({})")
    return text.format(_inputs(arguments[call.argument], below)) if call.argument >= 0 else text


def _inputs(argument: Argument, below: Sequence[str]) -> str:
    return ", ".join(below[i] for i in argument.inputs)
