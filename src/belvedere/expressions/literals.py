"""Literals with Spark's types: 1 is an int, 3000000000 a bigint, 1.5
a decimal(2,1), 1e3 a double.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions.rules import Lower, lowers
from belvedere.expressions.typed import NULL, Typed, text_sql
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal,
)

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})["
    r" T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?(Z|([+-])(\d{2}):(\d{2}))?"
)
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HUGE = 2**63


@lowers(exp.Literal, args="this is_string")
def literal(node: exp.Literal, lower: Lower) -> Typed:
    return text(str(node.this)) if node.is_string else number(str(node.this))


@lowers(exp.RawString)
def raw_string(node: exp.RawString, lower: Lower) -> Typed:
    return text(str(node.this))


def text(value: str) -> Typed:
    return Typed(text_sql(value), STRING, nullable=False, literal=value, constant=value)


def number(digits: str) -> Typed:
    """`digits` may carry a minus sign: in Spark it belongs to the literal, so -2147483648 is an
    int.
    """
    if not _NUMBER.fullmatch(digits):
        raise SqlError(
            f"{digits} is not a number: write digits, a point and perhaps an exponent, as in 1.5E3"
        )
    if "e" in digits.lower():
        return _double(digits)
    if "." in digits:
        return decimal_literal(digits)
    value = int(digits)
    kind = INT if -(2**31) <= value < 2**31 else BIGINT if -_HUGE <= value < _HUGE else None
    if kind is None:
        return decimal_literal(digits)
    sql = f"CAST({value} AS {kind.duckdb})"
    return Typed(sql, kind, nullable=False, literal=value, constant=value)


def _double(digits: str) -> Typed:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise SqlError(f"the number {digits} is beyond the range of a double")
    literal = Decimal(repr(value))
    sql = f"CAST('{digits}' AS DOUBLE)"
    return Typed(sql, DOUBLE, nullable=False, literal=literal, constant=value)


def decimal_literal(digits: str) -> Typed:
    value = Decimal(digits)
    kind = decimal_of(value)
    sql = f"CAST('{value:f}' AS {kind.duckdb})"
    return Typed(sql, kind, nullable=False, literal=value, constant=value)


def decimal_of(value: Decimal) -> SqlType:
    """The smallest decimal type of a literal; trailing zeros after the point count."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len("".join(map(str, digits)).lstrip("0")) + max(0, exponent), scale, 1)
    if precision > 38:
        raise SqlError(f"the number {value:f} has more than 38 digits")
    return decimal(precision, scale)


@lowers(exp.Boolean)
def boolean(node: exp.Boolean, lower: Lower) -> Typed:
    value = bool(node.this)
    return Typed("TRUE" if value else "FALSE", BOOLEAN, nullable=False, constant=value)


@lowers(exp.Null, args="")
def null(node: exp.Null, lower: Lower) -> Typed:
    return NULL


@lowers(exp.HexString)
def binary(node: exp.HexString, lower: Lower) -> Typed:
    digits = str(node.this)
    even = digits if len(digits) % 2 == 0 else f"0{digits}"
    return Typed(f"unhex('{even}')", BINARY, nullable=False, constant=bytes.fromhex(even))


def date_literal(value: str) -> Typed:
    match = _DATE.fullmatch(value.strip())
    try:
        day = date(int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
    except ValueError:
        day = None
    if day is None:
        raise _unread("date", value, "yyyy-mm-dd")
    return Typed(f"DATE '{day.isoformat()}'", DATE, nullable=False, constant=day)


def timestamp_literal(value: str) -> Typed:
    try:
        instant = _instant(value.strip())
    except ValueError:
        instant = None
    if instant is None:
        raise _unread("timestamp", value, "yyyy-mm-dd hh:mm:ss[.ffffff][+hh:mm]")
    micros = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    sql = f"make_timestamptz(CAST({micros} AS BIGINT))"
    return Typed(sql, TIMESTAMP, nullable=False, constant=instant)


def _instant(value: str) -> datetime | None:
    match, day = _TIME.fullmatch(value), _DATE.fullmatch(value)
    if day:
        return datetime(int(day[1]), int(day[2] or 1), int(day[3] or 1), tzinfo=UTC)
    if not match:
        return None
    fields = [int(match[i] or 0) for i in range(1, 7)]
    micros = int((match[7] or "").ljust(6, "0"))
    return datetime(*fields[:6], micros, tzinfo=_zone(match))  # type: ignore[misc,arg-type]  # six fields, checked by the pattern


def _zone(match: re.Match[str]) -> timezone:
    if not match[9]:
        return UTC
    offset = timedelta(hours=int(match[10]), minutes=int(match[11]))
    return timezone(-offset if match[9] == "-" else offset)


def _unread(kind: str, value: str, form: str) -> Unsupported:
    return Unsupported(f"the {kind} literal {value!r}", f"write it as {form}")
