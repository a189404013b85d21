"""Aggregate calls of a query: found, typed, and given the state that they share.

MIN(x), MAX(x) and COUNT(DISTINCT x) share one pre-aggregation of x; SUM(x), AVG(x) and COUNT(x) one sum and one count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.operators.aggregate import Aggregate, Argument
from belvedere.operators.results import Call
from belvedere.operators.select import IDENTITY, Expression
from belvedere.sql.dialect import sql_of
from belvedere.sql.expressions import aggregate_type
from belvedere.sql.relation import Field, Scope
from belvedere.types import BIGINT, SqlType

_FUNCTIONS: dict[type[exp.Expression], str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
_EXACT_DIGITS = 28  # a 128-bit sum of so many digits holds ten thousand million rows


@dataclass(slots=True)
class Calls:
    """The distinct aggregate calls of a query, by their text."""

    nodes: list[exp.Expression] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def replaced(self, node: exp.Expression, groups: Sequence[exp.Expression]) -> exp.Expression:
        """The expression over the aggregate's output: groups and calls become its columns."""
        wanted = {_canonical(g): i for i, g in enumerate(groups)}

        def swap(part: exp.Expression) -> exp.Expression:
            if (text := _canonical(part)) in wanted:
                return _output(f"g{wanted[text]}")
            if isinstance(part, exp.AggFunc | exp.Filter) and text in self.texts:
                return _output(f"a{self.texts.index(text)}")
            return part

        result = _swapped(node, swap)
        for column in result.find_all(exp.Column):
            if column.table != "_aggregate":
                raise SqlError(f"column {sql_of(column)} must stand in GROUP BY or inside an aggregate function")
        return result

    def scope(self, groups: Sequence[exp.Expression], types: Sequence[SqlType]) -> Scope:
        names = [f"g{i}" for i in range(len(groups))] + [f"a{i}" for i in range(len(self.nodes))]
        return Scope(tuple(Field("_aggregate", n, t, f'"c{i}"') for i, (n, t) in enumerate(zip(names, types, strict=True))))


@dataclass(frozen=True, slots=True)
class Leaf:
    """What the Select below the aggregate computes: groups, then arguments; `keys` are the record keys made of them."""

    outputs: tuple[Expression, ...]
    keys: tuple[tuple[int, ...], ...]


def collect(nodes: Sequence[exp.Expression]) -> Calls:
    calls = Calls()
    for node in nodes:
        for part in _outermost(node):
            if (text := _canonical(part)) not in calls.texts:
                calls.nodes.append(part)
                calls.texts.append(text)
    return calls


def reduce_groups(
    groups: Sequence[Expression], calls: Calls, lowered: Callable[[exp.Expression], Expression], new_id: Callable[[], int]
) -> tuple[Leaf, Aggregate]:
    outputs = list(groups)
    arguments: list[Argument] = []
    made: list[Call] = []
    for node in calls.nodes:
        function, parts = _function(node)
        inputs, types = _inputs(parts, outputs, lowered, len(groups))
        made.append(_call(function, inputs, types, arguments, node))
    kept = tuple(_with_table(a, new_id) for a in arguments)
    keys = [tuple(range(len(groups)))] if groups else []
    keys += [(*range(len(groups)), *a.inputs, *([IDENTITY] if a.by_row else [])) for a in kept if a.ordered]
    aggregate = Aggregate(new_id(), tuple(g.type for g in groups), kept, tuple(made), new_id())
    return Leaf(tuple(outputs), tuple(keys)), aggregate


def _function(node: exp.Expression) -> tuple[str, list[exp.Expression]]:
    """The function's name and its arguments; FILTER (WHERE c) and count_if are CASE WHEN c inside."""
    if isinstance(node, exp.Filter):
        function, parts = _function(node.this)
        condition = node.expression.this
        if function == "count_rows":
            return "count", [exp.case().when(condition.copy(), exp.Literal.number(1))]
        return function, [exp.case().when(condition.copy(), p.copy()) for p in parts]
    if isinstance(node, exp.CountIf):
        return "count", [exp.case().when(node.this.copy(), exp.Literal.number(1))]
    distinct = isinstance(node.this, exp.Distinct)
    parts = list(node.this.expressions) if distinct else [node.this, *node.expressions]
    if isinstance(node, exp.Count):
        if distinct:
            return "count_distinct", parts
        return ("count_rows", []) if all(isinstance(p, exp.Star | exp.Literal) for p in parts) else ("count", parts)
    name = _FUNCTIONS.get(type(node))
    if name is None:
        raise Unsupported(f"the aggregate {sql_of(node)}", "count, sum, avg, min, max and count(DISTINCT ...) are maintained")
    if distinct and name in ("sum", "avg"):
        raise Unsupported(f"{name}(DISTINCT ...)", "count(DISTINCT ...) is maintained")
    if len(parts) != 1:
        raise SqlError(f"{name} takes one argument: {sql_of(node)}")
    return name, parts


def _inputs(
    parts: Sequence[exp.Expression], outputs: list[Expression], lowered: Callable[[exp.Expression], Expression], first: int
) -> tuple[tuple[int, ...], tuple[SqlType, ...]]:
    """Columns of the leaf that hold the arguments; equal arguments share one."""
    places, types = [], []
    for part in parts:
        if part.find(exp.AggFunc):
            raise SqlError(f"aggregates cannot be nested: {sql_of(part)}")
        expression = lowered(part)
        found = next((i for i in range(first, len(outputs)) if outputs[i].sql == expression.sql), None)
        if found is None:
            found = len(outputs)
            outputs.append(expression)
        places.append(found)
        types.append(expression.type)
    return tuple(places), tuple(types)


def _call(function: str, inputs: tuple[int, ...], types: tuple[SqlType, ...], arguments: list[Argument], node: Any) -> Call:
    if function == "count_rows":
        return Call(function, -1, BIGINT)
    number = next((i for i, a in enumerate(arguments) if a.inputs == inputs), len(arguments))
    old = arguments[number] if number < len(arguments) else Argument(inputs, types)
    kind = types[0]
    total = old.total
    if function in ("sum", "avg"):
        if kind.name == "decimal" and kind.precision > _EXACT_DIGITS:
            narrower = f"decimal({_EXACT_DIGITS},{min(kind.scale, _EXACT_DIGITS)})"
            raise Unsupported(f"{sql_of(node)} over {kind}", f"cast the argument to {narrower}")
        total = "double" if kind.name == "double" else "int"
    ordered = 1 if function in ("min", "max", "count_distinct") or old.ordered else 0  # the table id follows
    by_row = bool(ordered) and function != "count_distinct" and (old.by_row or not old.ordered)
    arguments[number : number + 1] = [Argument(inputs, types, total, ordered, by_row)]
    result = BIGINT if function in ("count", "count_distinct") else aggregate_type(function, kind)
    return Call(function, number, result, kind)


def _with_table(argument: Argument, new_id: Callable[[], int]) -> Argument:
    return replace(argument, ordered=new_id() if argument.ordered else 0)


def _outermost(node: exp.Expression) -> list[exp.Expression]:
    if isinstance(node, exp.Filter | exp.AggFunc):
        return [node]
    return [found for child in node.iter_expressions() for found in _outermost(child)]


def _swapped(node: exp.Expression, swap: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    replaced = swap(node)
    if replaced is not node:
        return replaced
    copy = node.copy()
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            copy.set(key, _swapped(value, swap))
        elif isinstance(value, list):
            copy.set(key, [_swapped(v, swap) if isinstance(v, exp.Expression) else v for v in value])
    return copy


def _output(name: str) -> exp.Expression:
    return exp.column(name, table="_aggregate")


def _canonical(node: exp.Expression) -> str:
    """The text by which two spellings of one expression are recognised: names in lower case and without their table."""

    def plain(part: exp.Expression) -> exp.Expression:
        return exp.column(part.name.lower()) if isinstance(part, exp.Column) else part

    return sql_of(node.copy().transform(plain))
