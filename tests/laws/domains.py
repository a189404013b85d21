"""Small domains of every type, so that rows meet in groups, and random tables over them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    SqlType,
    decimal,
)

BUCKET = "v0"  # a column with so few values that rows meet in groups by it
LIMIT = 503  # bytes of a key, in cases whose store has a limit
# Beyond that limit, and alike up to it, or much farther.
LONG = (
    "ß" * 300,
    *("k" * 503, "k" * 503 + "a", "k" * 503 + "b", "k" * 1000 + "\x00", "k" * 1000 + "é"),
    *("k" * 4999 + "x", "k" * 4999 + "y"),
)
HUGE = ("h" * 100_000, "h" * 99_999 + "i")
DECIMALS = (decimal(5, 2), decimal(10, 2), decimal(18, 4), decimal(28, 3), decimal(38, 10))
_KEY_KINDS = (STRING, BIGINT, INT, DOUBLE, BINARY, TIMESTAMP, DATE, DECIMALS[1], DECIMALS[4])
_VALUE_KINDS = (
    BOOLEAN,
    INT,
    INT,
    BIGINT,
    BIGINT,
    DOUBLE,
    DOUBLE,
    STRING,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    *DECIMALS[:2],
    *DECIMALS,
)

_VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [0, 1, 2, 3, -1, 2**31 - 1, -(2**31)],
    "bigint": [0, 1, 2, 5, -1, 2**63 - 1, -(2**63)],
    "double": [0.0, -0.0, 1.5, -2.25, 0.1, math.nan, math.inf, -math.inf, 1e300, 5e-324],
    "string": ["a", "b", "", "7", "A", "é", "a\x00", "😀", " 1 "],
    "binary": [b"a", b"", b"\x00", b"\xff\x00", b"ab"],
    "date": [date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(2024, 3, 1)],
    "timestamp": [
        datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 1, tzinfo=UTC),
    ],
}
_KEYS: dict[str, list[Any]] = {
    **_VALUES,
    "date": [date(2024, 2, day) for day in range(20, 29)],
    "timestamp": [datetime(2024, 2, day, day, tzinfo=UTC) for day in range(10, 20)],
}
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


def long_values(dice: Random, kind: SqlType, huge: bool = False) -> list[Any]:
    """Texts of every length, in any order, so that a few that stand together may be alike."""
    texts = [*LONG, *(HUGE if huge else ()), "a", "", "7"]
    dice.shuffle(texts)
    return [text.encode() for text in texts] if kind == BINARY else texts


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


def is_long(value: Any) -> bool:
    return isinstance(value, str | bytes) and len(value) >= min(map(len, LONG))


def random_table(dice: Random, long_keys: bool) -> Table:
    """With texts of any length in some cases, also in the table's own key if `long_keys`."""
    luck = dice.random()
    long, huge = luck < 0.3, luck < 0.05
    keys = [Column(f"k{i}", dice.choice(_KEY_KINDS), False) for i in range(dice.choice([1, 1, 2]))]
    others = [
        Column(f"v{i}", dice.choice(_VALUE_KINDS), dice.random() < 0.75)
        for i in range(dice.randint(2, 5))
    ]
    if long:
        number = dice.choice([0, 0, 1])  # often the bucket
        others[number] = replace(others[number], type=dice.choice([STRING, STRING, BINARY]))
    columns = dice.choice([keys + others, others + keys])
    domains = {c: values(c.type, c in keys) for c in columns}
    for c in columns if long else ():
        if c.type in (STRING, BINARY) and (c not in keys or long_keys):
            domains[c] = long_values(dice, c.type, huge and c not in keys)
    pools = {c.name: _pool(dice, c, c in keys, domains[c]) for c in columns}
    return Table(Schema(tuple(columns), tuple(c.name for c in keys)), pools)


def _pool(dice: Random, column: Column, key: bool, domain: list[Any]) -> list[Any]:
    size = (
        len(domain)
        if key
        else min(len(domain), 2 if column.name == BUCKET else dice.choice([2, 3, 4, 99]))
    )
    start = 0 if size == len(domain) else dice.randrange(len(domain))
    found = (domain + domain)[start : start + size]
    return [*found, None] if column.nullable and not key else found
