"""Spark's ANSI rules for the types of results: common types, decimal arithmetic, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from belvedere.errors import SqlError, Unsupported
from belvedere.types import BIGINT, DOUBLE, STRING, TIMESTAMP, SqlType, decimal

MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6
_INTEGRAL_DIGITS = {"int": 10, "bigint": 20}
INTEGRAL = ("int", "bigint")
NUMERIC = ("int", "bigint", "double", "decimal")


def as_decimal(kind: SqlType) -> SqlType:
    """The decimal that holds every value of an integral type."""
    return kind if kind.name == "decimal" else decimal(_INTEGRAL_DIGITS[kind.name], 0)


def common_type(types: Iterable[SqlType | None]) -> SqlType:
    """The least common type of CASE, COALESCE, IN, UNION and comparisons.

    Strings are folded in first, as in Spark.
    """
    known = [t for t in types if t is not None]
    if not known:
        raise Unsupported("NULL without a type", "write CAST(NULL AS a type)")
    result, *rest = sorted(known, key=lambda t: t != STRING)
    for kind in rest:
        result = _wider(result, kind)
    return result


def tightest_type(types: Iterable[SqlType | None]) -> SqlType:
    """As `common_type`, but strings do not mix with other types (GREATEST, LEAST)."""
    known = [t for t in types if t is not None]
    if STRING in known and any(t != STRING for t in known):
        raise SqlError(
            f"the types {', '.join(map(str, known))} have no common type: cast the strings"
            " explicitly"
        )
    return common_type(known)


def _wider(a: SqlType, b: SqlType) -> SqlType:
    if a == b:
        return a
    names = {a.name, b.name}
    if names <= {"int", "bigint"}:
        return BIGINT
    if names <= set(NUMERIC):
        return DOUBLE if "double" in names else _wider_decimal(as_decimal(a), as_decimal(b))
    if names == {"date", "timestamp"}:
        return TIMESTAMP
    if STRING in (a, b):
        return _promoted(b if a == STRING else a)
    raise SqlError(f"{a} and {b} have no common type: cast one of them explicitly")


def _promoted(other: SqlType) -> SqlType:
    """What a string becomes beside a value of another type."""
    if other.name in INTEGRAL:
        return BIGINT
    return DOUBLE if other.name in ("decimal", "double") else other


def _wider_decimal(a: SqlType, b: SqlType) -> SqlType:
    """Digits before the point are kept first when 38 are not enough."""
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    excess = max(0, precision - MAX_PRECISION)
    return decimal(min(precision, MAX_PRECISION), max(0, scale - excess))


def adjusted(precision: int, scale: int) -> SqlType:
    """Spark's `adjustPrecisionScale`: give up fraction digits, down to six, to keep integral
    digits.
    """
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integral = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integral, min(scale, _MIN_ADJUSTED_SCALE)))


def sum_digits(a: SqlType, b: SqlType) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale


def product_digits(a: SqlType, b: SqlType) -> tuple[int, int]:
    return a.precision + b.precision + 1, a.scale + b.scale


def quotient_digits(a: SqlType, b: SqlType) -> tuple[int, int]:
    scale = max(_MIN_ADJUSTED_SCALE, a.scale + b.precision + 1)
    return a.precision - a.scale + b.scale + scale, scale


def remainder_digits(a: SqlType, b: SqlType) -> tuple[int, int]:
    scale = max(a.scale, b.scale)
    return min(a.precision - a.scale, b.precision - b.scale) + scale, scale


def aggregate_type(function: str, argument: SqlType | None) -> SqlType:
    """The result type of count, sum, avg, min and max; a count has an argument
    of any type or none.
    """
    rule = _AGGREGATES.get(function.lower())
    if rule is None:
        raise Unsupported(f"aggregate function {function}", "use count, sum, avg, min or max")
    return rule(argument)


def _sum_type(argument: SqlType | None) -> SqlType:
    kind = _numeric("sum", argument)
    if kind.name == "decimal":
        return decimal(min(MAX_PRECISION, kind.precision + 10), kind.scale)
    return DOUBLE if kind == DOUBLE else BIGINT


def _avg_type(argument: SqlType | None) -> SqlType:
    kind = _numeric("avg", argument)
    if kind.name != "decimal":
        return DOUBLE
    return decimal(min(MAX_PRECISION, kind.precision + 4), min(MAX_PRECISION, kind.scale + 4))


def _numeric(function: str, argument: SqlType | None) -> SqlType:
    if argument is None or argument.name not in NUMERIC:
        raise SqlError(
            f"{function} needs a number, not {argument or 'NULL'}: cast the argument explicitly"
        )
    return argument


def _same_type(argument: SqlType | None) -> SqlType:
    return common_type([argument])


_AGGREGATES: dict[str, Callable[[SqlType | None], SqlType]] = {
    "count": lambda argument: BIGINT,
    "sum": _sum_type,
    "avg": _avg_type,
    "mean": _avg_type,
    "min": _same_type,
    "max": _same_type,
}
