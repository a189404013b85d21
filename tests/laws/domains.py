"""Small domains of every type, so that rows meet in groups, and random tables over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from belvedere.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Column, Schema, SqlType, decimal

LONG = "ß" * 300  # as part of a key, longer than a store allows
DECIMALS = (decimal(5, 2), decimal(10, 2), decimal(18, 4), decimal(28, 3), decimal(38, 10))
KINDS = (BOOLEAN, INT, INT, BIGINT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)

_VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [0, 1, 2, 3, -1, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, 2, 5, -1, 2**63 - 1, -(2**63)],
    "double": [0.0, -0.0, 1.5, -2.25, 0.1, math.nan, math.inf, -math.inf, 1e300, 5e-324],
    "string": ["a", "b", "", "7", "A", "é", "a\x00", "😀", " 1 ", LONG],
    "binary": [b"a", b"", b"\x00", b"\xff\x00", b"ab"],
    "date": [date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(2024, 3, 1)],
    "timestamp": [datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 1, tzinfo=UTC)],
}
_KEYS: dict[str, list[Any]] = {**_VALUES, "string": [v for v in _VALUES["string"] if v != LONG]}
_LITERALS = {
    "boolean": ["TRUE", "FALSE"],
    "int": ["0", "1", "2", "-1", "2147483647"],
    "bigint": ["0L", "5L", "3000000000"],
    "double": ["0.0D", "1.5D", "1e300"],
    "decimal": ["CAST(0 AS decimal(10,2))", "CAST(1.5 AS decimal(10,2))"],
    "string": ["'a'", "'b'", "''", "'7'", "'é'"],
    "binary": ["X'61'", "X''", "X'FF00'"],
    "date": ["DATE '2024-02-29'", "DATE '1970-01-01'"],
    "timestamp": ["TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '2024-01-01 10:00:00.5'"],
}


def values(kind: SqlType, key: bool = False) -> list[Any]:
    if kind.name != "decimal":
        return (_KEYS if key else _VALUES)[kind.name]
    unscaled = [0, 1, 150, -150, 10**kind.precision - 1, 1 - 10**kind.precision]
    return [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale)) for n in unscaled]


def literals(kind: str) -> list[str]:
    return _LITERALS[kind]


@dataclass(frozen=True)
class Table:
    """A table with the values that its columns take."""

    schema: Schema
    pools: dict[str, list[Any]]

    def columns(self, kind: str) -> list[str]:
        return [c.name for c in self.schema.columns if c.type.name == kind]

    @property
    def value_names(self) -> list[str]:
        return [c.name for c in self.schema.value_columns]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    keys = [Column(f"k{i}", draw(_kinds), False) for i in range(draw(st.sampled_from([1, 1, 2])))]
    count = draw(st.integers(2, 5))
    others = [Column(f"v{i}", draw(_kinds), draw(_mostly)) for i in range(count)]
    columns = draw(st.sampled_from([keys + others, others + keys]))
    pools = {c.name: _pool(draw, c, c in keys) for c in columns}
    return Table(Schema(tuple(columns), tuple(c.name for c in keys)), pools)


_kinds = st.sampled_from([*KINDS, *DECIMALS[:2], *DECIMALS])
_mostly = st.sampled_from([True, True, True, False])


def _pool(draw: st.DrawFn, column: Column, key: bool) -> list[Any]:
    domain = values(column.type, key)
    size = len(domain) if key else min(len(domain), draw(st.sampled_from([2, 3, 4, 99])))
    start = 0 if size == len(domain) else draw(st.integers(0, len(domain) - 1))
    found = (domain + domain)[start : start + size]
    return [*found, None] if column.nullable and not key else found
