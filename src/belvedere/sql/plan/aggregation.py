"""GROUP BY and DISTINCT: aggregate calls typed, and given the state that they share.

MIN(x), MAX(x) and COUNT(DISTINCT x) share one pre-aggregation of x; SUM(x), AVG(x) and COUNT(x) one
sum and one count. Groups stand in the order of the query; arguments and calls are sorted, so that
queries that ask for the same in another order share one operator.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import aggregate_type
from belvedere.operators.aggregate import Aggregate, Argument, Call, Function, TotalKind
from belvedere.operators.select import IDENTITY
from belvedere.sql.binding import counts_rows, text_of
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.identity import of_columns
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.relation import Branch, Relation, Value, column
from belvedere.types import BIGINT, SqlType

_FUNCTIONS: dict[type[exp.Expr], Function] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_COUNTS = ("count_rows", "count", "count_distinct")
_EXACT_DIGITS = 28  # a 128-bit sum of so many digits holds ten thousand million rows
_MISSING = "must stand in GROUP BY or inside an aggregate function"


def aggregated(
    relation: Relation, groups: Sequence[exp.Expr], calls: Sequence[exp.Expr], context: Context
) -> Relation:
    """One row per group, or the one row of all; its values are the groups and the calls."""
    groups = list({text_of(group): group for group in groups}.values())
    by = [relation.value(group, context.words(group)) for group in groups]
    asked = [_Asked.of(call, relation, context) for call in calls]
    leaf = by + _sorted([part for a in asked for part in a.parts])
    for a in asked:
        a.place(leaf, len(by))
    arguments = _arguments(asked)
    made = {a.text: a.call(arguments, context) for a in asked}
    ordered = sorted(set(made.values()), key=lambda c: (c.argument, c.function))
    keys = [tuple(range(len(by)))] if by else []
    keys += [
        (*range(len(by)), *a.inputs, *([IDENTITY] if a.by_row else []))
        for a in arguments
        if a.ordered
    ]
    below = context.nodes.feed(relation, leaf, keys)
    operator = Aggregate(
        WANTED, tuple(g.type for g in by), tuple(arguments), tuple(ordered), WANTED
    )
    node = context.nodes.add(operator, (below,))
    values = {
        text_of(g): column(i, v.type, v.nullable)
        for i, (g, v) in enumerate(zip(groups, by, strict=True))
    }
    for text, call in made.items():
        values[text] = column(
            len(by) + ordered.index(call), call.type, call.function not in _COUNTS
        )
    identity = of_columns([(text_of(g), v.type) for g, v in zip(groups, by, strict=True)])
    return Relation((Branch(node, values),), identity, identity.parts, missing=_MISSING)


class _Asked:
    """One aggregate call: its function, its arguments, and the columns of the
    leaf that hold them.
    """

    def __init__(self, node: exp.Expr, function: Function, parts: list[Value]) -> None:
        self.node, self.text, self.function, self.parts = node, text_of(node), function, parts
        self.inputs: tuple[int, ...] = ()

    @classmethod
    def of(cls, node: exp.Expr, relation: Relation, context: Context) -> _Asked:
        function, parts = _function(node, context)
        for part in parts:
            if part.find(exp.AggFunc):
                raise SqlError(f"aggregates cannot be nested: {context.words(part)}")
        return cls(node, function, [relation.value(part, context.words(part)) for part in parts])

    def place(self, leaf: Sequence[Value], first: int) -> None:
        places = {value.place: first + i for i, value in enumerate(leaf[first:])}
        self.inputs = tuple(places[part.place] for part in self.parts)

    def call(self, arguments: Sequence[Argument], context: Context) -> Call:
        if self.function == "count_rows":
            return Call(self.function, -1, BIGINT)
        number = next(i for i, a in enumerate(arguments) if a.inputs == self.inputs)
        kind = self.parts[0].type
        result = BIGINT if self.function in _COUNTS else aggregate_type(self.function, kind)
        return Call(self.function, number, result, kind)


def _sorted(values: Sequence[Value]) -> list[Value]:
    """Each value once."""
    return sorted({value.place: value for value in values}.values(), key=lambda v: v.place)


def _arguments(asked: Sequence[_Asked]) -> list[Argument]:
    """What is kept of each argument list, for all calls with it."""
    functions: dict[tuple[int, ...], set[Function]] = {}
    types = {}
    for a in asked:
        if a.function != "count_rows":
            functions.setdefault(a.inputs, set()).add(a.function)
            types[a.inputs] = tuple(part.type for part in a.parts)
    found = []
    for inputs in sorted(functions):
        called = functions[inputs]
        total: TotalKind = _total(types[inputs][0]) if called & {"sum", "avg"} else ""
        ordered = WANTED if called & {"min", "max", "count_distinct"} else 0
        by_row = bool(ordered) and "count_distinct" not in called
        found.append(Argument(inputs, types[inputs], total, ordered, by_row))
    return found


def _total(kind: SqlType) -> TotalKind:
    if kind.name == "decimal" and kind.precision > _EXACT_DIGITS:
        return "wide"
    return "double" if kind.name == "double" else "int"


def _function(node: exp.Expr, context: Context) -> tuple[Function, list[exp.Expr]]:
    """The function's name and its arguments; FILTER (WHERE c) and count_if are
    CASE WHEN c inside.
    """
    if isinstance(node, exp.Filter):
        function, parts = _function(node.this, context)
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
        return ("count_rows", []) if counts_rows(parts) else ("count", parts)
    name = _FUNCTIONS.get(type(node))
    if name is None:
        maintained = "count, sum, avg, min, max and count(DISTINCT ...) are maintained"
        raise Unsupported(f"the aggregate {context.words(node)}", maintained)
    if distinct and name in ("sum", "avg"):
        raise Unsupported(f"{name}(DISTINCT ...)", "count(DISTINCT ...) is maintained")
    if len(parts) != 1:
        raise SqlError(f"{name} takes one argument: {context.words(node)}")
    return name, parts
