"""Casts as in Spark's ANSI mode: what does not fit raises, digits after the point are cut, strings
are read strictly.

A cast that cannot be made equal to Spark's is refused: double to string (Java's digits), binary to
string (Spark keeps bytes that are not UTF-8), and the saturating ones to timestamp.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import reading
from belvedere.expressions.coercion import as_decimal
from belvedere.expressions.decimals import read
from belvedere.expressions.typed import Typed, let, null_of, raise_sql, strict
from belvedere.types import DOUBLE, STRING, SqlType, decimal

_Cast = Callable[[str, SqlType, SqlType], str]
_EXACT_DIGITS = 15  # a decimal of up to 15 digits is an exact double over an exact power of ten


def cast_to(typed: Typed, to: SqlType) -> Typed:
    """`typed` as a value of `to`; raises for the rows where Spark's ANSI cast raises."""
    if typed.type is None:
        return null_of(to)
    if typed.type == to:
        return typed
    build = _cast(typed.type, to)
    kind, raises = typed.type, _may_raise(typed.type, to)
    nullable = typed.nullable or (kind == DOUBLE and to.name == "decimal")
    result = strict([typed], lambda v: build(v, kind, to), to, raises=raises, nullable=nullable)
    return result if typed.literal is None else _keep_literal(typed, result)


def try_cast_to(typed: Typed, to: SqlType) -> Typed:
    """As `cast_to`, but NULL where the cast itself raises; an error inside `typed` still raises."""
    cast = cast_to(typed, to)
    if not cast.raises or typed.type is None:
        return cast
    build, kind = _cast(typed.type, to), typed.type
    if kind == STRING:
        return strict(
            [typed],
            lambda v: reading.try_read(v, to),
            to,
            raises=reading.try_read_raises(to),
            nullable=True,
        )
    if kind == DOUBLE and to.name == "decimal" and to.precision - to.scale > _EXACT_DIGITS:
        raise Unsupported(
            f"TRY_CAST from double to {to}",
            f"use a decimal with up to {_EXACT_DIGITS} digits before the point",
        )
    if not typed.raises:
        return Typed(f"TRY({build(typed.sql, kind, to)})", to)
    return Typed(
        f"list_transform([{typed.sql}], lambda v: TRY({build('v', kind, to)}))[1]", to, raises=True
    )


def _keep_literal(typed: Typed, result: Typed) -> Typed:
    """A number that is only widened stays a known one, so that a division by it needs no check."""
    widened = not result.raises and result.kind in ("bigint", "double", "decimal")
    if isinstance(typed.literal, str) or not widened:
        return result
    return Typed(result.sql, result.type, result.raises, result.nullable, typed.literal)


def _cast(source: SqlType, to: SqlType) -> _Cast:
    rule = _RULES.get((source.name, to.name))
    if rule is not None:
        return rule
    refused = _REFUSED.get((source.name, to.name))
    if refused is not None:
        raise Unsupported(f"CAST from {source} to {to}", refused)
    raise SqlError(f"cannot cast {source} to {to}")


def _may_raise(source: SqlType, to: SqlType) -> bool:
    pair = (source.name, to.name)
    if pair == ("string", "binary"):
        return False
    if source.name == "string" or pair in _NARROWING:
        return True
    if to.name != "decimal" or source.name == "double":
        return to.name == "decimal"
    inner = decimal(1, 0) if source.name == "boolean" else as_decimal(source)
    rounded = 1 if inner.scale > to.scale else 0
    return inner.precision - inner.scale + rounded > to.precision - to.scale


def _plain(sql: str, source: SqlType, to: SqlType) -> str:
    return f"CAST({sql} AS {to.duckdb})"


def _truncated(sql: str, source: SqlType, to: SqlType) -> str:
    return f"CAST(trunc({sql}) AS {to.duckdb})"


def _double_to_bigint(sql: str, source: SqlType, to: SqlType) -> str:
    """Java's comparison lets 2^63 itself pass and then saturates."""
    return let(
        sql,
        lambda v: (
            f"CASE WHEN {v} = 9223372036854775808::DOUBLE THEN 9223372036854775807 ELSE"
            f" CAST(trunc({v}) AS BIGINT) END"
        ),
    )


def double_to_decimal(sql: str, source: SqlType, to: SqlType) -> str:
    """Spark rounds the decimal digits that Java prints, half up; NaN and infinities become NULL.

    From 2^53 on these digits depend on the Java version, so such a value raises.
    """

    def body(v: str) -> str:
        value = read(f"CAST({v} AS VARCHAR)", to)
        if to.precision - to.scale > _EXACT_DIGITS:
            large = raise_sql("NUMERIC_VALUE_OUT_OF_RANGE", v, to.duckdb)
            value = f"CASE WHEN abs({v}) < {2**53} THEN {value} ELSE {large} END"
        return f"CASE WHEN isfinite({v}) THEN {value} END"

    return let(sql, body)


def decimal_to_double(sql: str, source: SqlType, to: SqlType) -> str:
    if source.precision <= _EXACT_DIGITS:
        return f"CAST({sql} AS DOUBLE)"
    return f"CAST(CAST({sql} AS VARCHAR) AS DOUBLE)"


def _decimal_to_string(sql: str, source: SqlType, to: SqlType) -> str:
    if source.precision > source.scale:
        return f"CAST({sql} AS VARCHAR)"
    # Without a digit before the point DuckDB prints .5 where Spark prints 0.5.
    return f"regexp_replace(CAST({sql} AS VARCHAR), '^(-?)\\.', '\\10.')"


def _nonzero(sql: str, source: SqlType, to: SqlType) -> str:
    return f"({sql} <> 0)"


def _boolean_to_decimal(sql: str, source: SqlType, to: SqlType) -> str:
    return f"CAST(CAST({sql} AS INTEGER) AS {to.duckdb})"


def _date_to_string(sql: str, source: SqlType, to: SqlType) -> str:
    return _with_year(sql, "strftime({v}, '-%m-%d')")


def _timestamp_to_string(sql: str, source: SqlType, to: SqlType) -> str:
    fraction = "regexp_replace(strftime({v}, '-%m-%d %H:%M:%S.%f'), '[.]?0*$', '')"
    return _with_year(
        f"make_timestamp(epoch_us({sql}))",
        f"left(strftime({{v}}, '-%m-%d %H:%M:%S'), 15) || substring({fraction}, 16)",
    )


def _with_year(sql: str, rest: str) -> str:
    """Years of four digits are DuckDB's own text; a longer one has a plus sign, one before 1 a
    minus sign or is 0000.
    """

    def body(v: str) -> str:
        sign = f"CASE WHEN year({v}) > 9999 THEN '+' WHEN year({v}) < 0 THEN '-' ELSE '' END"
        other = f"{sign} || format('{{:04d}}', abs(year({v}))) || {rest.format(v=v)}"
        return (
            f"CASE WHEN year({v}) BETWEEN 1 AND 9999 THEN CAST({v} AS VARCHAR) WHEN {v} IS NOT NULL"
            f" THEN {other} END"
        )

    return let(sql, body)


def _timestamp_to_date(sql: str, source: SqlType, to: SqlType) -> str:
    return f"CAST(make_timestamp(epoch_us({sql})) AS DATE)"


def _date_to_timestamp(sql: str, source: SqlType, to: SqlType) -> str:
    return f"make_timestamptz(epoch_us(CAST({sql} AS TIMESTAMP)))"


def _timestamp_to_integer(sql: str, source: SqlType, to: SqlType) -> str:
    return f"CAST({floor_seconds(f'epoch_us({sql})')} AS {to.duckdb})"


def floor_seconds(micros: str) -> str:
    return let(micros, lambda us: f"({us} // 1000000 - CAST({us} % 1000000 < 0 AS INTEGER))")


def _timestamp_to_double(sql: str, source: SqlType, to: SqlType) -> str:
    return f"(CAST(epoch_us({sql}) AS DOUBLE) / 1000000::DOUBLE)"


def _int_to_timestamp(sql: str, source: SqlType, to: SqlType) -> str:
    return f"make_timestamptz(CAST({sql} AS BIGINT) * 1000000)"


_SECONDS = "use timestamp_seconds, which raises instead of saturating"
_REFUSED = {
    (
        "double",
        "string",
    ): "cast to a decimal first: the digits of a double depend on the Java version",
    ("binary", "string"): "use hex: bytes that are not UTF-8 have no string",
    ("bigint", "timestamp"): _SECONDS,
    ("decimal", "timestamp"): _SECONDS,
    ("double", "timestamp"): _SECONDS,
    ("timestamp", "decimal"): "cast to double or bigint, or use unix_micros",
}
_NARROWING = {
    ("bigint", "int"),
    ("double", "int"),
    ("double", "bigint"),
    ("decimal", "int"),
    ("decimal", "bigint"),
    ("timestamp", "int"),
    ("date", "timestamp"),
}
_RULES: dict[tuple[str, str], _Cast] = {
    ("boolean", "int"): _plain,
    ("boolean", "bigint"): _plain,
    ("boolean", "double"): _plain,
    ("boolean", "decimal"): _boolean_to_decimal,
    ("boolean", "string"): _plain,
    ("int", "boolean"): _nonzero,
    ("int", "bigint"): _plain,
    ("int", "double"): _plain,
    ("int", "decimal"): _plain,
    ("int", "string"): _plain,
    ("int", "timestamp"): _int_to_timestamp,
    ("bigint", "boolean"): _nonzero,
    ("bigint", "int"): _plain,
    ("bigint", "double"): _plain,
    ("bigint", "decimal"): _plain,
    ("bigint", "string"): _plain,
    ("double", "boolean"): _nonzero,
    ("double", "int"): _truncated,
    ("double", "bigint"): _double_to_bigint,
    ("double", "decimal"): double_to_decimal,
    ("decimal", "boolean"): _nonzero,
    ("decimal", "int"): _truncated,
    ("decimal", "bigint"): _truncated,
    ("decimal", "double"): decimal_to_double,
    ("decimal", "decimal"): _plain,
    ("decimal", "string"): _decimal_to_string,
    ("string", "boolean"): reading.read,
    ("string", "int"): reading.read,
    ("string", "bigint"): reading.read,
    ("string", "double"): reading.read,
    ("string", "decimal"): reading.read,
    ("string", "binary"): reading.read,
    ("string", "date"): reading.read,
    ("string", "timestamp"): reading.read,
    ("date", "string"): _date_to_string,
    ("date", "timestamp"): _date_to_timestamp,
    ("timestamp", "string"): _timestamp_to_string,
    ("timestamp", "date"): _timestamp_to_date,
    ("timestamp", "int"): _timestamp_to_integer,
    ("timestamp", "bigint"): _timestamp_to_integer,
    ("timestamp", "double"): _timestamp_to_double,
}
