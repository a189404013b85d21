"""From a parsed Spark expression to DuckDB text with the same meaning.

What has no rule is refused: the rules are the allow-list (see supported.py for what they cover).
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from belvedere.errors import SchemaError, SqlError, Unsupported
from belvedere.sql.expressions import arithmetic, case_mapping, conditionals, dates, literals, numbers, predicates, strings
from belvedere.sql.expressions.casts import cast_to, try_cast_to
from belvedere.sql.expressions.literals import date_literal, timestamp_literal
from belvedere.sql.expressions.rules import FUNCTIONS, NODES, Lower, lowers
from belvedere.sql.expressions.typed import Resolver, Typed
from belvedere.types import BIGINT, DATE, INT, TIMESTAMP, SqlType, parse_type

# Imported for the rules they register.
_RULES = (arithmetic, case_mapping, conditionals, dates, literals, numbers, predicates, strings)

_VOLATILE = {"now", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name", "randn", "random", "randstr"}
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
_ROWS = "compare column by column, as in (a = 1 AND b = 2) OR (a = 3 AND b = 4), or join with a table of such rows"
_TYPES = {"TEXT": "string", "VARCHAR": "string", "CHAR": "string", "TIMESTAMPTZ": "timestamp", "TIMESTAMPLTZ": "timestamp"}


def lower(node: exp.Expr, resolve: Resolver) -> Typed:
    """DuckDB text for a scalar expression; columns are resolved by `resolve`."""

    def step(inner: exp.Expr) -> Typed:
        if isinstance(inner, exp.Column):
            return resolve(inner)
        _refuse_foreign(inner)
        return _call(inner, step) if isinstance(inner, exp.Anonymous) else _apply(inner, step)

    return step(node)


def lower_condition(node: exp.Expr, resolve: Resolver) -> Typed:
    """As `lower`, for WHERE, HAVING and ON: the result is a boolean."""
    return predicates.condition(lower(node, resolve), "a condition")


def _refuse_foreign(node: exp.Expr) -> None:
    if isinstance(node, (exp.Query, exp.Subquery, exp.Exists, exp.SubqueryPredicate)) or node.args.get("query") is not None:
        raise Unsupported("a subquery inside an expression", "join with the other table instead")
    if isinstance(node, exp.Window):
        raise Unsupported("a window function")
    if isinstance(node, exp.AggFunc):
        raise Unsupported(f"aggregate function {node.key} inside a scalar expression")
    if isinstance(node, exp.Star):
        raise Unsupported("* inside an expression", "list the columns")
    if isinstance(node, exp.Tuple):
        raise Unsupported(f"the row {node.sql('spark')}", _ROWS)
    if is_volatile(node):
        raise Unsupported(f"{node.sql('spark')}, which is different at every evaluation", "write the value into a column of the base table")


def is_volatile(node: exp.Expr) -> bool:
    """Whether a call is different at every evaluation."""
    return isinstance(node, _VOLATILE_NODES) or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _VOLATILE)


def _apply(node: exp.Expr, step: Lower) -> Typed:
    rule = NODES.get(type(node))
    name = node.sql_name().lower() if isinstance(node, exp.Func) else type(node).__name__
    if rule is None:
        raise Unsupported(f"{name} in {node.sql('spark')}")
    build, known = rule
    extra = sorted(key for key, value in node.args.items() if key not in known and value not in (None, [], False))
    if extra:
        raise Unsupported(f"{name} with {', '.join(extra)} in {node.sql('spark')}")
    return build(node, step)


def _call(node: exp.Anonymous, step: Lower) -> Typed:
    name = str(node.this).lower()
    if name not in FUNCTIONS:
        raise Unsupported(f"function {name}")
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
    if type(node) is exp.Cast and isinstance(inner, exp.Literal) and inner.is_string and to in (DATE, TIMESTAMP):
        return date_literal(str(inner.this)) if to == DATE else timestamp_literal(str(inner.this))
    value = step(inner)
    if node.args.get("safe"):
        return try_cast_to(value, to)
    result = cast_to(value, to)
    return _suffixed(value, result) if isinstance(inner, exp.Literal) else Typed(result.sql, result.type, result.raises, result.nullable)


def _suffixed(value: Typed, result: Typed) -> Typed:
    """1L reaches us as CAST(1 AS BIGINT), 1.5D as CAST(1.5 AS DOUBLE)."""
    if result.type == BIGINT and value.type == BIGINT:
        raise Unsupported("a cast or L on a literal that is a bigint already", "write only its digits")
    literal = None if result.type == INT or isinstance(result.literal, str) else result.literal
    if isinstance(literal, Decimal) and result.kind != "double":
        literal = None
    return Typed(result.sql, result.type, result.raises, result.nullable, literal)


def sql_type(node: exp.DataType) -> SqlType:
    """The type that a parsed type name means."""
    name = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
    parameters = [str(p.this) for p in node.expressions]
    text = f"decimal({','.join(parameters)})" if name == "DECIMAL" and parameters else _TYPES.get(name, name)
    try:
        return parse_type(text)
    except SchemaError as error:
        raise Unsupported(f"type {node.sql('spark')}", str(error)) from error
