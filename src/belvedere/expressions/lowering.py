"""From a parsed Spark expression to DuckDB text with the same meaning.

What has no rule is refused: the rules are the allow-list (see supported.py for what they cover).
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from belvedere.errors import SchemaError, SqlError, Unsupported
from belvedere.expressions import (
    arithmetic,
    case_mapping,
    conditionals,
    dates,
    literals,
    numbers,
    predicates,
    strings,
)
from belvedere.expressions.casts import cast_to, try_cast_to
from belvedere.expressions.dialect import called, written_of
from belvedere.expressions.literals import date_literal, timestamp_literal
from belvedere.expressions.rules import FUNCTIONS, NODES, Lower, lowers
from belvedere.expressions.typed import Resolver, Typed
from belvedere.types import BIGINT, DATE, INT, TIMESTAMP, SqlType, parse_type

# Imported for the rules they register.
_RULES = (arithmetic, case_mapping, conditionals, dates, literals, numbers, predicates, strings)

_VOLATILE = {
    "now",
    "uuid",
    "shuffle",
    "monotonically_increasing_id",
    "spark_partition_id",
    "input_file_name",
    "randn",
    "random",
    "randstr",
}
_VOLATILE_NODES = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentDate,
    exp.CurrentTimestamp,
    exp.CurrentTime,
    exp.CurrentUser,
    exp.CurrentDatabase,
)
_ROWS = (
    "compare column by column, as in (a = 1 AND b = 2) OR (a = 3 AND b = 4), or join with a table"
    " of such rows"
)
_TYPES = {
    "TEXT": "string",
    "VARCHAR": "string",
    "CHAR": "string",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
}


def lower(node: exp.Expr, resolve: Resolver) -> Typed:
    """DuckDB text for a scalar expression; columns are resolved by `resolve`."""
    # by id: a rule may ask twice, and so would each of the rules below it
    known: dict[int, tuple[exp.Expr, Typed]] = {}

    def step(inner: exp.Expr) -> Typed:
        if isinstance(inner, exp.Column):
            return resolve(inner)
        if id(inner) not in known:
            _refuse_foreign(inner)
            known[id(inner)] = (
                inner,
                (_call(inner, step) if isinstance(inner, exp.Anonymous) else _apply(inner, step)),
            )
        return known[id(inner)][1]

    return step(node)


def lower_condition(node: exp.Expr, resolve: Resolver) -> Typed:
    """As `lower`, for WHERE, HAVING and ON: the result is a boolean."""
    return predicates.condition(lower(node, resolve), "a condition")


def _refuse_foreign(node: exp.Expr) -> None:
    if (
        isinstance(node, (exp.Query, exp.Subquery, exp.Exists, exp.SubqueryPredicate))
        or node.args.get("query") is not None
    ):
        raise Unsupported("a subquery inside an expression", "join with the other table instead")
    if isinstance(node, exp.Window):
        raise Unsupported("a window function")
    if isinstance(node, exp.AggFunc):
        raise Unsupported(f"the aggregate {written_of(node)} inside a scalar expression")
    if isinstance(node, exp.Star):
        raise Unsupported("* inside an expression", "list the columns")
    if isinstance(node, exp.Tuple):
        raise Unsupported(f"the row {node.sql('spark')}", _ROWS)
    if is_volatile(node):
        raise unknown(node)


def is_volatile(node: exp.Expr) -> bool:
    """Whether a call is different at every evaluation."""
    return isinstance(node, _VOLATILE_NODES) or (
        isinstance(node, exp.Anonymous) and str(node.this).lower() in _VOLATILE
    )


def consumed_by_rule(kind: type[exp.Expr]) -> frozenset[str] | None:
    """The arguments that the rule for a kind of node looks at; None if there is no rule."""
    rule = NODES.get(kind)
    return rule[1] if rule is not None else None


def unknown(node: exp.Expr) -> Unsupported:
    """The refusal of a node that has no rule, or of one with arguments that its rule does not look
    at, in the user's words.
    """
    written = written_of(node)
    if is_volatile(node):
        return Unsupported(
            f"{written}, which is different at every evaluation",
            "write the value into a column of the base table",
        )
    if isinstance(node, exp.Connector | exp.Binary) or not isinstance(node, exp.Func):
        return Unsupported(written)
    known = type(node) in NODES
    return UnknownFunction(
        called(node), f"{written} in this form" if known else f"function {called(node)}"
    )


class UnknownFunction(Unsupported):
    """`name` is what the user calls the function."""

    def __init__(self, name: str, construct: str, instead: str = "") -> None:
        self.name = name
        super().__init__(construct, instead)


def _apply(node: exp.Expr, step: Lower) -> Typed:
    rule = NODES.get(type(node))
    if rule is None:
        raise unknown(node)
    build, known = rule
    if any(key not in known and value not in (None, [], False) for key, value in node.args.items()):
        raise unknown(node)
    return build(node, step)


def is_function(name: str) -> bool:
    """Whether there is a rule for a function that the parser knows only by its name."""
    return name.lower() in FUNCTIONS


def _call(node: exp.Anonymous, step: Lower) -> Typed:
    name = str(node.this).lower()
    if name not in FUNCTIONS:
        raise unknown(node)
    build, counts = FUNCTIONS[name]
    if len(node.expressions) not in counts:
        raise SqlError(f"{name} does not take {len(node.expressions)} arguments")
    return build(node, step)


@lowers(exp.Paren)
def parentheses(node: exp.Paren, step: Lower) -> Typed:
    return step(node.this)


@lowers(exp.Cast, exp.TryCast, args="this to safe _type")
def cast(node: exp.Cast, step: Lower) -> Typed:
    to = sql_type(node.to)
    inner = node.this
    if (
        type(node) is exp.Cast
        and isinstance(inner, exp.Literal)
        and inner.is_string
        and to in (DATE, TIMESTAMP)
    ):
        return date_literal(str(inner.this)) if to == DATE else timestamp_literal(str(inner.this))
    value = step(inner)
    if node.args.get("safe"):
        return try_cast_to(value, to)
    result = cast_to(value, to)
    return (
        _suffixed(value, result)
        if isinstance(inner, exp.Literal)
        else Typed(result.sql, result.type, result.raises, result.nullable)
    )


def _suffixed(value: Typed, result: Typed) -> Typed:
    """1L reaches us as CAST(1 AS BIGINT), 1.5D as CAST(1.5 AS DOUBLE)."""
    if result.type == BIGINT and value.type == BIGINT:
        raise Unsupported(
            "a cast or L on a literal that is a bigint already", "write only its digits"
        )
    literal = None if result.type == INT or isinstance(result.literal, str) else result.literal
    if isinstance(literal, Decimal) and result.kind != "double":
        literal = None
    return Typed(result.sql, result.type, result.raises, result.nullable, literal)


def sql_type(node: exp.DataType) -> SqlType:
    """The type that a parsed type name means."""
    name = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
    parameters = [str(p.this) for p in node.expressions]
    text = (
        f"decimal({','.join(parameters)})"
        if name == "DECIMAL" and parameters
        else _TYPES.get(name, name)
    )
    try:
        return parse_type(text)
    except SchemaError as error:
        raise Unsupported(f"type {node.sql('spark')}", str(error)) from error
