"""Functions of numbers.

Those whose last bit differs between Java and C (exp, ln, power, ...) are not here.
"""

from __future__ import annotations

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions.casts import cast_to, decimal_to_double
from belvedere.expressions.coercion import INTEGRAL, MAX_PRECISION, NUMERIC, common_type
from belvedere.expressions.decimals import smallest, wide
from belvedere.expressions.rules import Lower, literal_number, lowers
from belvedere.expressions.typed import Typed, let, strict
from belvedere.types import BIGINT, BOOLEAN, DOUBLE, SqlType, decimal

_WHOLE_DOUBLE = 2**52  # from here on every double is a whole number
_ROUND_DIGITS = 20


def _number(value: Typed, where: str) -> Typed:
    if value.is_null:
        return cast_to(value, DOUBLE)
    if value.kind not in NUMERIC:
        raise SqlError(f"{where} needs a number, not {value.type}: cast it explicitly")
    return value


def _kind(value: Typed) -> SqlType:
    assert value.type is not None
    return value.type


@lowers(exp.Abs)
def absolute(node: exp.Abs, lower: Lower) -> Typed:
    value = _number(lower(node.this), "abs")
    kind = _kind(value)
    return strict(
        [value], lambda v: f"CAST(abs({v}) AS {kind.duckdb})", kind, raises=kind.name in INTEGRAL
    )


@lowers(exp.Sign)
def sign(node: exp.Sign, lower: Lower) -> Typed:
    """NaN and both zeros are their own sign."""
    value = cast_to(_number(lower(node.this), "sign"), DOUBLE)

    def build(v: str) -> str:
        return let(
            v,
            lambda x: (
                f"CASE WHEN isnan({x}) THEN {x} WHEN {x} > 0 THEN 1::DOUBLE WHEN {x} < 0 THEN"
                f" -1::DOUBLE ELSE {x} END"
            ),
        )

    return strict([value], build, DOUBLE)


@lowers(exp.Ceil)
def ceil(node: exp.Ceil, lower: Lower) -> Typed:
    return _to_whole(_number(lower(node.this), "ceil"), "ceil")


@lowers(exp.Floor)
def floor(node: exp.Floor, lower: Lower) -> Typed:
    return _to_whole(_number(lower(node.this), "floor"), "floor")


def _to_whole(value: Typed, name: str) -> Typed:
    kind = _kind(value)
    if kind.name in INTEGRAL:
        return Typed(*_as(cast_to(value, BIGINT)))
    if kind == DOUBLE:
        # Java turns NaN into 0 here.
        return strict(
            [value],
            lambda v: let(
                v, lambda x: f"CASE WHEN isnan({x}) THEN 0 ELSE CAST({name}({x}) AS BIGINT) END"
            ),
            BIGINT,
            raises=True,
        )
    result = (
        kind if kind.scale == 0 else decimal(min(MAX_PRECISION, kind.precision - kind.scale + 1), 0)
    )
    return strict([value], lambda v: f"CAST({name}({v}) AS {result.duckdb})", result)


def _as(value: Typed) -> tuple[str, SqlType | None, bool, bool]:
    return value.sql, value.type, value.raises, value.nullable


@lowers(exp.Round, args="this decimals")
def round_half_up(node: exp.Round, lower: Lower) -> Typed:
    value = _number(lower(node.this), "round")
    digits_node = node.args.get("decimals")
    digits = (
        literal_number(lower(digits_node), "the number of digits of round")
        if digits_node is not None
        else 0
    )
    kind = _kind(value)
    if kind == DOUBLE:
        return _round_double(value, digits)
    return (
        _round_decimal(value, digits) if kind.name == "decimal" else _round_integer(value, digits)
    )


def _round_integer(value: Typed, digits: int) -> Typed:
    kind = _kind(value)
    if digits >= 0:
        return Typed(*_as(value))
    if digits < -19:
        raise Unsupported(f"round to {digits} digits", "the result is always 0")
    unit = 10**-digits

    def build(v: str) -> str:
        half = f"CASE WHEN {v} < 0 THEN -{unit // 2}::HUGEINT ELSE {unit // 2}::HUGEINT END"
        return (
            f"CAST((CAST({v} AS HUGEINT) + {half}) // {unit}::HUGEINT * {unit}::HUGEINT AS"
            f" {kind.duckdb})"
        )

    return strict([value], lambda v: let(v, build), kind, raises=True)


def _round_decimal(value: Typed, digits: int) -> Typed:
    kind = _kind(value)
    whole = kind.precision - kind.scale + 1
    if digits >= 0:
        scale = min(kind.scale, digits)
        result = decimal(min(MAX_PRECISION, whole + scale), scale)
        return strict(
            [value],
            lambda v: f"CAST({v} AS {result.duckdb})",
            result,
            raises=whole + scale > MAX_PRECISION,
        )
    result = decimal(min(MAX_PRECISION, max(whole, 1 - digits)), 0)
    if kind.precision - digits > MAX_PRECISION:
        raise Unsupported(f"round({kind}, {digits})", "cast to a decimal with fewer digits")
    unit = smallest(-digits)
    return strict(
        [value],
        lambda v: (
            f"CAST(CAST({wide(v, kind)} * {unit} AS DECIMAL(38,0)) * {10**-digits}::HUGEINT AS"
            f" {result.duckdb})"
        ),
        result,
        raises=True,
    )


def _round_double(value: Typed, digits: int) -> Typed:
    """Half up on the printed decimal digits, as Spark does; a large double is whole already."""
    if not 0 <= digits <= _ROUND_DIGITS:
        raise Unsupported(
            f"round(double, {digits})", f"use 0 to {_ROUND_DIGITS} digits, or cast to a decimal"
        )
    digits38 = decimal(MAX_PRECISION, digits)

    def build(x: str) -> str:
        rounded = decimal_to_double(
            f"CAST(CAST({x} AS VARCHAR) AS {digits38.duckdb})", digits38, DOUBLE
        )
        return f"CASE WHEN isfinite({x}) AND abs({x}) < {_WHOLE_DOUBLE} THEN {rounded} ELSE {x} END"

    return strict([value], lambda v: let(v, build), DOUBLE)


@lowers(exp.Sqrt)
def sqrt(node: exp.Sqrt, lower: Lower) -> Typed:
    return strict(
        [cast_to(_number(lower(node.this), "sqrt"), DOUBLE)], lambda v: f"sqrt({v})", DOUBLE
    )


@lowers(exp.IsNan)
def isnan(node: exp.IsNan, lower: Lower) -> Typed:
    value = cast_to(_number(lower(node.this), "isnan"), DOUBLE)
    return Typed(f"COALESCE(isnan({value.sql}), FALSE)", BOOLEAN, value.raises, nullable=False)


@lowers(exp.Nanvl, args="this expression")
def nanvl(node: exp.Nanvl, lower: Lower) -> Typed:
    a, b = (_number(lower(e), "nanvl") for e in (node.this, node.expression))
    common_type([a.type, b.type])
    x, y = cast_to(a, DOUBLE), cast_to(b, DOUBLE)
    return Typed(
        let(x.sql, lambda v: f"(CASE WHEN isnan({v}) THEN {y.sql} ELSE {v} END)"),
        DOUBLE,
        x.raises or y.raises,
    )
