"""GROUP BY and DISTINCT: aggregate calls typed, and given the state that they share.

MIN(x), MAX(x) and COUNT(DISTINCT x) share one pre-aggregation of x; SUM(x), AVG(x) and COUNT(x) one
sum and one count. Groups stand in the order of the query; arguments and calls are sorted, so that
queries that ask for the same in another order share one operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from belvedere.errors import Unsupported
from belvedere.expressions import Typed, aggregate_type
from belvedere.operators.aggregate import Aggregate, Argument, Call, Function, TotalKind
from belvedere.operators.select import IDENTITY
from belvedere.sql.front.binding import text_of
from belvedere.sql.front.calls import aggregate_call
from belvedere.sql.plan.context import Context
from belvedere.sql.plan.nodes import WANTED
from belvedere.sql.plan.refusal import VIEW
from belvedere.sql.plan.relation import Branch, Relation, Value, column, sort_values
from belvedere.types import BIGINT, SqlType

_COUNTS = ("count_rows", "count", "count_distinct")
_EXACT_DIGITS = 28  # a 128-bit sum of so many digits holds ten thousand million rows
_MISSING = "must stand in GROUP BY or inside an aggregate function"


def plan_groups(
    relation: Relation, groups: Sequence[exp.Expr], calls: Sequence[exp.Expr], context: Context
) -> Relation:
    """One row per group, or the one row of all; its values are the groups and the calls."""
    by = {text_of(group): relation.value(group, context.words(group)) for group in groups}
    asked = [_Asked.of(call, relation, context) for call in calls]
    leaf = [*by.values(), *sort_values(part for a in asked for part in a.parts)]
    for a in asked:
        a.place(leaf, len(by))
    arguments = _arguments(asked)
    made = {a.text: a.call(arguments) for a in asked}
    results = _sorted_calls(made.values())
    types = tuple(value.type for value in by.values())
    below = context.nodes.feed(relation, leaf, _record_keys(len(by), arguments))
    operator = Aggregate(WANTED, types, tuple(arguments), tuple(results), WANTED)
    branch = Branch(context.nodes.add(operator, (below,)), _outputs(by, made, results))
    identity = context.nodes.identity(list(zip(by, types, strict=True)))
    return Relation((branch,), identity, identity.parts, missing=_MISSING)


def _sorted_calls(calls: Iterable[Call]) -> list[Call]:
    """Each call once, in an order that does not depend on the query."""
    return sorted(set(calls), key=lambda call: (call.argument, call.function))


def _outputs(
    by: Mapping[str, Value], made: Mapping[str, Call], results: Sequence[Call]
) -> dict[str, Typed]:
    """The columns of the result: the groups, then the calls; of no rows a count is 0, and all else
    NULL.
    """
    values = {text: column(i, v.type, v.nullable) for i, (text, v) in enumerate(by.items())}
    for text, call in made.items():
        number = len(by) + results.index(call)
        values[text] = column(number, call.type, call.function not in _COUNTS)
    return values


def _record_keys(groups: int, arguments: Sequence[Argument]) -> list[tuple[int, ...]]:
    """The keys of the records that are kept: the group, and with it the values of an argument that
    are kept in order, each with its row where rows are told apart.
    """
    group = tuple(range(groups))
    keys = [group] if group else []
    for argument in arguments:
        if argument.ordered:
            keys.append((*group, *argument.inputs, *([IDENTITY] if argument.by_row else [])))
    return keys


class _Asked:
    """One aggregate call: its function, its arguments, and the columns of the
    leaf that hold them.
    """

    def __init__(self, node: exp.Expr, function: Function, parts: list[Value]) -> None:
        self.node, self.text, self.function, self.parts = node, text_of(node), function, parts
        self.inputs: tuple[int, ...] = ()

    @classmethod
    def of(cls, node: exp.Expr, relation: Relation, context: Context) -> _Asked:
        function, parts = _function(node)
        return cls(node, function, [relation.value(part, context.words(part)) for part in parts])

    def place(self, leaf: Sequence[Value], first: int) -> None:
        places = {value.place: first + i for i, value in enumerate(leaf[first:])}
        self.inputs = tuple(places[part.place] for part in self.parts)

    def call(self, arguments: Sequence[Argument]) -> Call:
        if self.function == "count_rows":
            return Call(self.function, -1, BIGINT)
        number = next(i for i, a in enumerate(arguments) if a.inputs == self.inputs)
        kind = self.parts[0].type
        result = BIGINT if self.function in _COUNTS else aggregate_type(self.function, kind)
        return Call(self.function, number, result, kind)


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


def _function(node: exp.Expr) -> tuple[Function, tuple[exp.Expr, ...]]:
    """The function that is maintained, and its arguments.

    count is three: of all rows, of values, of different values.
    """
    call = aggregate_call(node, VIEW)
    if call.function == "count":
        if call.distinct:
            return "count_distinct", call.arguments
        return ("count" if call.arguments else "count_rows"), call.arguments
    if call.distinct:
        raise Unsupported(f"{call.function}(DISTINCT ...)", "count(DISTINCT ...) is maintained")
    return call.function, call.arguments
