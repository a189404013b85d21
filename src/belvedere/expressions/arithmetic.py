"""+ - * / % div with Spark's result types. Overflow and division by zero raise.

Integers overflow natively in DuckDB; decimals are computed exactly in 38 digits and then rounded
half up to Spark's result type. Where Spark would need more than 38 digits on the way, the
expression is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import dates
from belvedere.expressions.casts import cast_to
from belvedere.expressions.coercion import (
    INTEGRAL,
    MAX_PRECISION,
    NUMERIC,
    adjusted,
    as_decimal,
    common_type,
    product_digits,
    quotient_digits,
    remainder_digits,
    sum_digits,
)
from belvedere.expressions.decimals import rescaled, unscaled, wide
from belvedere.expressions.literals import decimal_literal, number
from belvedere.expressions.rules import Lower, function, lowers
from belvedere.expressions.typed import Typed, let, raise_sql, strict
from belvedere.types import BIGINT, DOUBLE, SqlType

_SMALLER = "cast the operands to decimals with fewer digits"
_Digits = Callable[[SqlType, SqlType], tuple[int, int]]


def operands(node: exp.Binary, lower: Lower) -> tuple[Typed, Typed]:
    return lower(node.this), lower(node.expression)


def numbers(a: Typed, b: Typed, where: str) -> tuple[Typed, Typed]:
    """Both operands of the type that the operation is done in: int,
    bigint, double or two decimals.
    """
    if a.is_null and b.is_null:
        a = b = cast_to(a, DOUBLE)
    for side in (a, b):
        if not side.is_null and side.kind not in (*NUMERIC, "string"):
            raise SqlError(f"{where} needs numbers, not {side.type}")
    if a.kind == b.kind == "string":
        raise SqlError(f"{where} needs numbers, not strings: cast them explicitly")
    kinds = {a.kind, b.kind}
    if "decimal" in kinds and kinds <= {"decimal", *INTEGRAL}:
        return _decimal_operand(a), _decimal_operand(b)
    kind = common_type([a.type, b.type])
    return cast_to(a, kind), cast_to(b, kind)


def _decimal_operand(value: Typed) -> Typed:
    """A whole number literal beside a decimal takes only the digits it has."""
    kind = _kind(value)
    if kind.name not in INTEGRAL or not isinstance(value.literal, int):
        return cast_to(value, as_decimal(kind))
    if kind == BIGINT and abs(value.literal) < 2**31:
        # sqlglot reads 2L as CAST(2 AS BIGINT); Spark gives the two different digits beside a
        # decimal.
        raise Unsupported(
            "a bigint literal beside a decimal", "leave out the L, or cast it to a decimal"
        )
    return decimal_literal(str(value.literal))


def _kind(a: Typed) -> SqlType:
    assert a.type is not None
    return a.type


def _additive(a: Typed, b: Typed, sign: str) -> Typed:
    a, b = numbers(a, b, sign)
    if a.kind != "decimal":
        return _native(a, b, sign)
    precision, scale = sum_digits(_kind(a), _kind(b))
    result = adjusted(precision, scale)
    if result.scale < scale:
        raise Unsupported(f"{a.type} {sign} {b.type}", _SMALLER)
    to = result.duckdb
    return strict(
        [a, b],
        lambda x, y: f"CAST(CAST({x} AS {to}) {sign} CAST({y} AS {to}) AS {to})",
        result,
        raises=precision > MAX_PRECISION,
    )


def _native(a: Typed, b: Typed, sign: str) -> Typed:
    """DuckDB raises on integer overflow; doubles never raise."""
    kind = _kind(a)
    return strict(
        [a, b],
        lambda x, y: f"CAST({x} {sign} {y} AS {kind.duckdb})",
        kind,
        raises=kind.name in INTEGRAL,
    )


@lowers(exp.Add, args="this expression")
def add(node: exp.Add, lower: Lower) -> Typed:
    shifted = dates.shift(node, lower)
    return shifted if shifted is not None else _additive(*operands(node, lower), "+")


@lowers(exp.Sub, args="this expression")
def subtract(node: exp.Sub, lower: Lower) -> Typed:
    shifted = dates.shift(node, lower)
    return shifted if shifted is not None else _additive(*operands(node, lower), "-")


@lowers(exp.Mul, args="this expression")
def multiply(node: exp.Mul, lower: Lower) -> Typed:
    a, b = numbers(*operands(node, lower), "*")
    if a.kind != "decimal":
        return _native(a, b, "*")
    precision, scale = product_digits(_kind(a), _kind(b))
    result = adjusted(precision, scale)
    if result.scale < scale or scale > MAX_PRECISION:
        raise Unsupported(f"{a.type} * {b.type}", _SMALLER)
    left = _kind(a)
    return strict(
        [a, b],
        lambda x, y: f"CAST({wide(x, left)} * {y} AS {result.duckdb})",
        result,
        raises=precision > MAX_PRECISION,
    )


@lowers(exp.Div, args="this expression typed safe")
def divide(node: exp.Div, lower: Lower) -> Typed:
    a, b = numbers(*operands(node, lower), "/")
    if a.kind == "decimal":
        return _decimal_quotient(a, b)
    a, b = cast_to(a, DOUBLE), cast_to(b, DOUBLE)
    return _checked(a, b, lambda x, y: f"{x} / {y}", DOUBLE, "DIVIDE_BY_ZERO")


def _checked(
    a: Typed,
    b: Typed,
    build: Callable[[str, str], str],
    kind: SqlType,
    code: str,
    *,
    raises: bool = False,
) -> Typed:
    """`build(a, b)`, raising where b is zero and a is not NULL.
    Spark evaluates the divisor first.
    """
    if b.literal is not None and b.literal != 0:
        return strict([a, b], lambda x, y: f"({build(x, y)})", kind, raises=raises, order=(1, 0))

    def body(x: str, y: str) -> str:
        failed = raise_sql(code, f"CAST({x} AS VARCHAR)", kind.duckdb)
        return (
            f"CASE WHEN {y} = 0 THEN (CASE WHEN {x} IS NOT NULL THEN {failed} END) ELSE"
            f" {build(x, y)} END"
        )

    return strict(
        [a, b],
        lambda x, y: let(x, lambda p: let(y, lambda q: body(p, q))),
        kind,
        raises=True,
        order=(1, 0),
    )


def _decimal_quotient(a: Typed, b: Typed) -> Typed:
    """Whole-number division of the digits, then half up: in 128 bits this is exact."""
    left, right = _kind(a), _kind(b)
    precision, scale = quotient_digits(left, right)
    result = adjusted(precision, scale)
    shift = result.scale - left.scale + right.scale
    if left.precision + shift > MAX_PRECISION or shift < 0:
        raise Unsupported(f"{left} / {right}", _SMALLER)

    def build(x: str, y: str) -> str:
        numerator, divisor = f"({unscaled(x, left)} * {10**shift}::HUGEINT)", unscaled(y, right)
        return rescaled(_half_up(numerator, divisor), result)

    return _checked(a, b, build, result, "DIVIDE_BY_ZERO", raises=precision > MAX_PRECISION)


def _half_up(numerator: str, divisor: str) -> str:
    def body(n: str, d: str) -> str:
        away = f"CASE WHEN ({n} < 0) = ({d} < 0) THEN 1 ELSE -1 END"
        return (
            f"({n} // {d} + CASE WHEN abs({n} % {d}) >= abs({d}) - abs({n} % {d}) THEN {away} ELSE"
            " 0 END)"
        )

    return let(numerator, lambda n: let(divisor, lambda d: body(n, d)))


@lowers(exp.IntDiv, args="this expression")
def whole_quotient(node: exp.IntDiv, lower: Lower) -> Typed:
    a, b = numbers(*operands(node, lower), "div")
    if a.kind == "double":
        raise SqlError("div needs whole numbers or decimals, not double")
    if a.kind == "decimal":
        x, y, scale = *_aligned(a, b, "div"), max(_kind(a).scale, _kind(b).scale)
        both = SqlType("decimal", MAX_PRECISION, scale)
        return _checked(
            x,
            y,
            lambda p, q: f"CAST({unscaled(p, both)} // {unscaled(q, both)} AS BIGINT)",
            BIGINT,
            "DIVIDE_BY_ZERO",
            raises=True,
        )
    a, b = cast_to(a, BIGINT), cast_to(b, BIGINT)
    return _checked(
        a, b, lambda x, y: f"{x} // {y}", BIGINT, "DIVIDE_BY_ZERO", raises=b.literal in (None, -1)
    )


def _aligned(a: Typed, b: Typed, sign: str) -> tuple[Typed, Typed]:
    """Both decimals at the larger scale."""
    left, right = _kind(a), _kind(b)
    scale = max(left.scale, right.scale)
    if max(left.precision - left.scale, right.precision - right.scale) + scale > MAX_PRECISION:
        raise Unsupported(f"{left} {sign} {right}", _SMALLER)
    both = SqlType("decimal", MAX_PRECISION, scale)
    return cast_to(a, both), cast_to(b, both)


@lowers(exp.Mod, args="this expression")
def remainder(node: exp.Mod, lower: Lower) -> Typed:
    return _remainder(*numbers(*operands(node, lower), "%"), "%", lambda x, y: f"{x} % {y}")


@function("pmod", 2)
def positive_remainder(node: exp.Anonymous, lower: Lower) -> Typed:
    first, second = node.expressions
    a, b = numbers(lower(first), lower(second), "pmod")
    literal = b.literal
    if literal is None or literal <= 0:  # type: ignore[operator]  # numbers() leaves only numeric literals
        raise Unsupported(
            "pmod by anything but a positive literal",
            "write CASE WHEN a % n < 0 THEN (a % n + n) % n ELSE a % n END",
        )

    def build(x: str, y: str) -> str:
        return let(
            f"({x} % {y})", lambda r: f"(CASE WHEN {r} < 0 THEN ({r} + {y}) % {y} ELSE {r} END)"
        )

    return _remainder(a, b, "pmod", build)


def _remainder(a: Typed, b: Typed, sign: str, build: Callable[[str, str], str]) -> Typed:
    if a.kind == "decimal":
        left, right = _kind(a), _kind(b)
        result = adjusted(*remainder_digits(left, right))
        x, y = _aligned(a, b, sign)
        return _checked(
            x,
            y,
            lambda p, q: f"CAST({build(p, q)} AS {result.duckdb})",
            result,
            "REMAINDER_BY_ZERO",
        )
    kind = _kind(a)

    def whole(x: str, y: str) -> str:
        # The smallest integer % -1 is 0 in Java and an overflow in DuckDB.
        return f"CAST(CASE WHEN {y} = -1 THEN {x} - {x} ELSE {build(x, y)} END AS {kind.duckdb})"

    plain = kind == DOUBLE or (b.literal is not None and b.literal != -1)
    return _checked(
        a,
        b,
        (lambda x, y: f"CAST({build(x, y)} AS {kind.duckdb})") if plain else whole,
        kind,
        "REMAINDER_BY_ZERO",
    )


@lowers(exp.Neg)
def negate(node: exp.Neg, lower: Lower) -> Typed:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return number(f"-{inner.this}")
    value = lower(inner)
    if value.is_null:
        return cast_to(value, DOUBLE)
    if value.kind not in NUMERIC:
        raise SqlError(f"unary minus needs a number, not {value.type}: cast it explicitly")
    kind = _kind(value)
    return strict(
        [value], lambda v: f"CAST(-({v}) AS {kind.duckdb})", kind, raises=kind.name in INTEGRAL
    )


@function("positive", 1)
def positive(node: exp.Anonymous, lower: Lower) -> Typed:
    value = lower(node.expressions[0])
    if value.kind not in NUMERIC:
        raise SqlError(f"unary plus needs a number, not {value.type or 'NULL'}: cast it explicitly")
    return Typed(value.sql, value.type, value.raises, value.nullable)
