"""Random columns and rows of every type, and the plain order of tuples that keys must keep."""

from __future__ import annotations

import functools
import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

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

Rows = list[tuple[Any, ...]]

KINDS = (
    BOOLEAN,
    INT,
    BIGINT,
    DOUBLE,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    decimal(5, 2),
    decimal(18, 0),
    decimal(19, 4),
    decimal(38, 10),
)

# Few letters, zero bytes and the escape byte among them, so that prefixes and escapes meet often.
_TEXT = st.one_of(
    st.text("\x00\x01aé\uffff😀", max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
_BYTES = st.one_of(
    st.text("\x00\x01aÿ", max_size=6).map(lambda t: t.encode("latin-1")), st.binary(max_size=20)
)
_DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, -5e-324]),
    st.floats(),
)


def values(kind: SqlType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), _VALUES[kind.name](kind))


def _integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.one_of(st.integers(-2, 2), st.sampled_from([low, high]), st.integers(low, high))


def _decimals(kind: SqlType) -> st.SearchStrategy[Decimal]:
    limit = 10**kind.precision - 1
    unscaled = st.one_of(
        st.integers(-2, 2), st.sampled_from([-limit, limit]), st.integers(-limit, limit)
    )
    return unscaled.map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale)))


_VALUES: dict[str, Any] = {
    "boolean": lambda _: st.booleans(),
    "int": lambda _: _integers(32),
    "bigint": lambda _: _integers(64),
    "double": lambda _: _DOUBLES,
    "string": lambda _: _TEXT,
    "binary": lambda _: _BYTES,
    "date": lambda _: st.dates(),
    "timestamp": lambda _: st.datetimes().map(lambda t: t.replace(tzinfo=UTC)),
    "decimal": _decimals,
}

kinds = st.sampled_from(KINDS)
schemas = st.lists(kinds, min_size=1, max_size=6).map(tuple)


def rows_of(types: tuple[SqlType, ...], max_size: int = 8) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(*map(values, types)), max_size=max_size)


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[SqlType, ...], Rows]:
    types = draw(schemas)
    return types, draw(rows_of(types))


def columns(types: tuple[SqlType, ...], rows: Rows) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], kind.arrow) for i, kind in enumerate(types)]


def bits(value: Any) -> Any:
    """A value such that == tells -0.0 from 0.0 and finds NaN equal to itself."""
    return (
        (value.hex(), math.copysign(1, value))
        if isinstance(value, float) and value == value
        else "NaN"
        if value != value
        else value
    )


def compare_values(one: Any, other: Any) -> int:
    """SQL order with NULL first and NaN last; -0.0 equals 0.0."""
    left, right = _rank(one), _rank(other)
    return (left > right) - (left < right)


def _rank(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (2, 0) if value != value else (1, value)


def compare(one: tuple[Any, ...], other: tuple[Any, ...]) -> int:
    return next((c for c in map(compare_values, one, other) if c), 0)


in_order = functools.cmp_to_key(compare)

_RISING: dict[str, list[Any]] = {
    "boolean": [None, False, True],
    "int": [None, -(2**31), -1, 0, 1, 2**31 - 1],
    "bigint": [None, -(2**63), -256, -1, 0, 1, 255, 256, 2**63 - 1],
    "double": [None, -math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf, math.nan],
    "string": [
        None,
        "",
        "\x00",
        "\x00\x00",
        "\x00a",
        "\x01",
        "a",
        "a\x00",
        "a\x00b",
        "ab",
        "é",
        "\uffff",
        "😀",
    ],
    "binary": [
        None,
        b"",
        b"\x00",
        b"\x00\x00",
        b"\x00\xff",
        b"\x01",
        b"a",
        b"a\x00",
        b"ab",
        b"\xff",
        b"\xff\xff",
    ],
    "date": [
        None,
        date(1, 1, 1),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2026, 2, 28),
        date(9999, 12, 31),
    ],
    "timestamp": [
        None,
        *(
            datetime(y, 6, 1, 12, 30, 1, m, tzinfo=UTC)
            for y, m in [(1, 0), (1969, 999_999), (1970, 0), (2026, 1), (9999, 2)]
        ),
    ],
}


def rising(kind: SqlType) -> list[Any]:
    """Values of the type in rising order."""
    if kind.name != "decimal":
        return _RISING[kind.name]
    limit = 10**kind.precision - 1
    return [
        None,
        *(
            Decimal(n).scaleb(-kind.scale, Context(prec=38))
            for n in (-limit, -256, -1, 0, 1, 255, 256, limit)
        ),
    ]
