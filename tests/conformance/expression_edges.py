"""The table that expressions are compared on: one column per type, or two, full of edge values; and
shapes to compose at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from belvedere.types import parse_type

COLUMNS = {
    "b": "boolean",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "k": "bigint",
    "d": "double",
    "e": "double",
    "m": "decimal(10,2)",
    "n": "decimal(5,3)",
    "w": "decimal(38,2)",
    "s": "string",
    "t": "string",
    "q": "string",
    "r": "string",
    "x": "binary",
    "dt": "date",
    "du": "date",
    "ts": "timestamp",
    "tu": "timestamp",
}
INTS = [None, 0, 1, -1, 2, 7, -7, 12, 255, 2147483647, -2147483648]
BIGINTS = [
    None,
    0,
    1,
    -1,
    3,
    -1000,
    1005,
    2147483648,
    9007199254740993,
    9223372036854775807,
    -9223372036854775808,
]
DOUBLES = [
    *(
        None,
        0.0,
        -0.0,
        1.5,
        -2.5,
        2.675,
        1.005,
        0.285,
        1e-5,
        -0.4,
        100.0,
        1e20,
        -1e300,
        5e-324,
        123456789.125,
        9.223372036854775807e18,
    ),
    *(float("nan"), float("inf"), float("-inf"), 2147483647.9, 4503599627370497.5, 0.1, 1e16),
]
DECIMALS = [
    None,
    "0",
    "0.01",
    "-0.01",
    "1.50",
    "-2.50",
    "12.34",
    "3",
    "99999999.99",
    "-99999999.99",
    "0.05",
    "2.55",
    "-7",
]
SMALL = [None, "0", "0.001", "-0.005", "1.500", "99.999", "-99.999", "3", "0.5"]
WIDE = [
    None,
    "0",
    "1.00",
    "-0.01",
    "999999999999999999999999999999999999.99",
    "-999999999999999999999999999999999999.99",
    "12345678901234567890.12",
    "0.55",
]
TEXTS = [
    *(
        None,
        "",
        "Hello",
        "héllo ß",
        "  x ",
        "a\0b",
        "İstanbul ŉ",
        "ΟΔΟΣ ΑΣ.",
        "aé😀z",
        "e\u0301x",
        "a_b",
        "a%b",
        "a\nb",
        "a,b,,c",
        "\t tab",
        "llll",
    ),
    *("ǅungla", "ﬁne", "HELLO wOrld", "7", "true", " YES", "a\\b", "o"),
]
SHORT = [None, "", "l", "o", "é", "ß", " ", "Hello", "b", "ll"]
NUMERIC_TEXTS = [
    *(
        None,
        "12",
        " -7 ",
        "+5",
        "1.5",
        "1e3",
        "",
        "abc",
        "2147483648",
        "9223372036854775808",
        "NaN",
        "-Infinity",
        "inf",
        "1.5d",
        ".5",
        "5.",
        "1_0",
    ),
    *(
        "\u00a01",
        "0x1",
        "12345.678",
        "-0.005",
        "1e-3",
        "99999999999999999999999999999999999999.5",
        "0",
        "\t3\n",
        "3\0",
        "-nan",
        "+INF",
        "1f",
        "1e400",
        "--1",
    ),
]
DATE_TEXTS = [
    *(
        None,
        "2024-02-29",
        "2024-1-5",
        "2024",
        "2024-5",
        "2023-02-29",
        "2024-13-01",
        "",
        "bad",
        " 2024-05-06 ",
        "2024-05-06T",
        "2024-05-06 xx",
    ),
    *(
        "2024-01-05 10:05:06.1234567",
        "2024-01-05T10:05:06Z",
        "2024-01-05 10:05:06+02:00",
        "2024-01-05 10:05:06 -03:30",
        "2024-01-05 24:00:00",
    ),
    *(
        "1960-01-01 00:00:00.5",
        "2024-01-05 10",
        "2024-01-05 10:5",
        "20240506",
        "2024-05-06x",
        "0001-01-01",
        "2024-01-05 10:05:06 UTC",
        "2024-01-05 10:05:60",
        "epoch",
        "now",
        "2024-01-05 10:05:06GMT+3",
        "2024-01-05 10:05:06+18:01",
        "2024-01-05 10:05+02:00",
    ),
]
DATES = [
    None,
    "1970-01-01",
    "1969-12-31",
    "2024-02-29",
    "2024-01-31",
    "1900-03-01",
    "0001-01-01",
    "9999-12-31",
    "2021-01-03",
    "2024-12-30",
    "1582-10-10",
]
TIMES = [
    *(
        None,
        "1970-01-01 00:00:00",
        "1969-12-31 23:59:59.5",
        "1969-12-31 23:59:59.999999",
        "2024-02-29 12:34:56.789012",
        "2024-12-31 23:59:59",
    ),
    *(
        "1900-01-01 00:00:00.000001",
        "0001-01-01 00:00:00",
        "9999-12-31 23:59:59.999999",
        "2024-03-10 02:30:00",
        "1960-06-15 10:11:12.345",
    ),
]
ROWS = 62


def decimals(texts: Sequence[str | None]) -> list[Decimal | None]:
    return [None if t is None else Decimal(t) for t in texts]


def instants(texts: Sequence[str | None]) -> list[datetime | None]:
    return [None if t is None else datetime.fromisoformat(t).replace(tzinfo=UTC) for t in texts]


EDGES: dict[str, Sequence[Any]] = {
    "b": [True, False, None],
    "i": INTS,
    "j": INTS,
    "l": BIGINTS,
    "k": BIGINTS,
    "d": DOUBLES,
    "e": DOUBLES,
    "m": decimals(DECIMALS),
    "n": decimals(SMALL),
    "w": decimals(WIDE),
    "s": TEXTS,
    "t": SHORT,
    "q": NUMERIC_TEXTS,
    "r": DATE_TEXTS,
    "x": [None, b"", b"A", b"\0\xff", b"abc"],
    "dt": [None if t is None else date.fromisoformat(t) for t in DATES],
    "du": [None if t is None else date.fromisoformat(t) for t in DATES],
    "ts": instants(TIMES),
    "tu": instants(TIMES),
}


def edge_table() -> pa.Table:
    """Column c of row r is edge value r of its list; the second column of a type is turned a little
    further on every lap.
    """
    columns: dict[str, list[Any]] = {"id": list(range(ROWS))}
    for name, values in EDGES.items():
        lap = 1 if name in ("j", "k", "e", "t", "du", "tu", "n") else 0
        columns[name] = [
            values[(row + lap * (row // len(values) * 3 + 1)) % len(values)] for row in range(ROWS)
        ]
    schema = pa.schema(
        [("id", pa.int64()), *((name, parse_type(kind).arrow) for name, kind in COLUMNS.items())]
    )
    return pa.table(columns, schema=schema)


# {x} is replaced by a random expression of that column's kind; a leaf is a column. Spark evaluates
# the first operand of NULLIF and BETWEEN below the whole query, outside of the try, so there it is
# a column.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "i": (
        ("i", "j"),
        (
            *(
                "({i} + {i})",
                "({i} - 3)",
                "({i} * {i})",
                "({i} % {i})",
                "-({i})",
                "abs({i})",
                "length({s})",
                "year({dt})",
                "CAST({l} AS int)",
                "CAST({d} AS int)",
            ),
            *(
                "if({b}, {i}, {i})",
                "coalesce({i}, {i})",
                "nullif(j, {i})",
                "greatest({i}, 5)",
                "instr({s}, {s})",
                "datediff({dt}, {dt})",
                "round({i}, -1)",
            ),
            *(
                "CAST({m} AS int)",
                "CASE {i} WHEN {i} THEN 1 WHEN 7 THEN {i} END",
                "CAST({q} AS int)",
                "try_cast({q} AS int)",
                "second({ts})",
            ),
        ),
    ),
    "l": (
        ("l", "k"),
        (
            "({l} + {i})",
            "({i} div {i})",
            "({l} div {l})",
            "ceil({d})",
            "({l} * {l})",
            "unix_timestamp({ts})",
            "CAST({q} AS bigint)",
            "({l} % {i})",
            "pmod({l}, 7)",
        ),
    ),
    "d": (
        ("d", "e"),
        (
            "({i} / {i})",
            "({d} / {d})",
            "({d} * {d})",
            "({d} + {l})",
            "sqrt({d})",
            "round({d}, 2)",
            "CAST({m} AS double)",
            "nanvl({d}, {d})",
            "sign({d})",
            "({d} % {d})",
        ),
    ),
    "m": (
        ("m", "n"),
        (
            *(
                "({m} + {m})",
                "({m} - {i})",
                "({m} * 3)",
                "({m} * {m})",
                "({m} / {m})",
                "({m} % {m})",
                "round({m}, 1)",
                "CAST({i} AS decimal(12,2))",
                "abs({m})",
            ),
            *(
                "coalesce({m}, {i})",
                "CAST({d} AS decimal(12,2))",
                "CAST({m} AS decimal(9,1))",
                "if({b}, {m}, {i})",
                "floor({m})",
                "({m} / 7)",
                "({i} / 2.5)",
            ),
        ),
    ),
    "s": (
        ("s", "t"),
        (
            *(
                "({s} || {s})",
                "upper({s})",
                "lower({s})",
                "substring({s}, {i}, {i})",
                "replace({s}, {s}, '+')",
                "concat_ws('-', {s}, {i})",
                "CAST({m} AS string)",
            ),
            *(
                "trim({s})",
                "left({s}, {i})",
                "CASE WHEN {b} THEN {s} ELSE 'no' END",
                "coalesce({s}, CAST({dt} AS string))",
                "lpad({s}, 4, {s})",
                "split_part({s}, {s}, {i})",
            ),
        ),
    ),
    "b": (
        ("b",),
        (
            *(
                "({i} < {l})",
                "({d} = {d})",
                "({m} >= {i})",
                "({s} < {s})",
                "({b} AND {b})",
                "({b} OR {b})",
                "(NOT {b})",
                "({i} IS NULL)",
                "({i} IN (1, {i}, 7))",
                "({dt} <= {ts})",
            ),
            *(
                "(i BETWEEN {i} AND 10)",
                "({s} LIKE '%l_%')",
                "({i} <=> {i})",
                "(10 / {i} > 1)",
                "isnan({d})",
                "({b} IS NOT TRUE)",
                "contains({s}, {s})",
                "({m} <> {d})",
            ),
        ),
    ),
    "dt": (
        ("dt", "du"),
        (
            "date_add({dt}, month({dt}))",
            "last_day({dt})",
            "CAST({ts} AS date)",
            "trunc({dt}, 'MM')",
            "({dt} - interval 1 month)",
            "if({b}, {dt}, {dt})",
            "CAST({r} AS date)",
        ),
    ),
    "ts": (
        ("ts", "tu"),
        (
            "date_trunc('hour', {ts})",
            "CAST({dt} AS timestamp)",
            "({ts} + interval 90 minutes)",
            "coalesce({ts}, {dt})",
            "least({ts}, {ts})",
        ),
    ),
    "q": (("q",), ()),
    "r": (("r",), ()),
}
