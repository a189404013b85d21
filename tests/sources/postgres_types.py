"""Types of PostgreSQL with literals at their edges, and the values that they are here."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_MOST = "9" * 36 + ".99"

EDGES: dict[str, list[tuple[str, Any]]] = {
    "boolean": [("true", True), ("false", False)],
    "smallint": [("-32768", -(2**15)), ("32767", 2**15 - 1)],
    "integer": [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1), ("0", 0)],
    "bigint": [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)],
    "double precision": [
        ("0.1", 0.1),
        ("'-Infinity'", float("-inf")),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("'-0'", -0.0),
        ("0", 0.0),
        ("'NaN'", float("nan")),
    ],
    "real": [("0.1", 0.10000000149011612), ("'3.4028235e38'", 3.4028234663852886e38)],
    "numeric(38, 2)": [(_MOST, Decimal(_MOST)), (f"-{_MOST}", Decimal(f"-{_MOST}"))],
    "numeric(5)": [("99999", Decimal(99999)), ("-1", Decimal(-1))],
    "numeric(2, 4)": [("0.0099", Decimal("0.0099"))],
    "numeric(3, -2)": [("99949", Decimal(99900))],
    "text": [
        ("''", ""),
        ("'a''b\\c\"d'", "a'b\\c\"d"),
        ("E'tab\\tline\\n'", "tab\tline\n"),
        ("'Zürich 🎉'", "Zürich 🎉"),
        ("repeat('long', 5000)", "long" * 5000),
    ],
    "varchar(5)": [("'abc  '", "abc  ")],
    "char(4)": [("'ab'", "ab  ")],
    "uuid": [("'C0FFEE00-0000-4000-8000-000000000001'", "c0ffee00-0000-4000-8000-000000000001")],
    "json": [("'{\"a\":  1}'", '{"a":  1}')],
    "jsonb": [("'{\"a\":  1}'", '{"a": 1}'), ("'null'", "null")],
    "bytea": [("''", b""), ("'\\x00ff275c'", b"\x00\xff'\\")],
    "date": [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))],
    "timestamp with time zone": [
        ("'2024-03-31 02:30:00.123456+02'", datetime(2024, 3, 31, 0, 30, 0, 123456, UTC)),
        ("'0001-01-01 00:00:00+00'", datetime(1, 1, 1, tzinfo=UTC)),
        ("'9999-12-31 23:59:59.999999+00'", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
    ],
    "timestamp": [
        ("'2024-03-31 02:30:00.1'", datetime(2024, 3, 31, 2, 30, 0, 100000, UTC)),
    ],
    "mood": [("'sad'", "sad"), ("'it''s ok'", "it's ok")],
    "percent": [("99.5", Decimal("99.5"))],
}
# Run before a table of them is made.
DECLARED = (
    "CREATE TYPE mood AS ENUM ('sad', 'it''s ok')",
    "CREATE DOMAIN percent AS numeric(4, 1) CHECK (VALUE <= 100)",
)
