"""Types of MariaDB with literals at their edges, the types that they are here, and the values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_TOP = 2**64 - 1
_LONG = "x" * 70_000
# A column's type, the type that it becomes here, its values: as SQL, and as they are held.
TYPES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "TINYINT": ("int", [("-128", -128), ("127", 127)]),
    "BOOLEAN": ("int", [("FALSE", 0), ("TRUE", 1), ("7", 7)]),
    "TINYINT UNSIGNED": ("int", [("0", 0), ("255", 255)]),
    "SMALLINT": ("int", [("-32768", -32768), ("32767", 32767)]),
    "MEDIUMINT": ("int", [("-8388608", -(2**23)), ("8388607", 2**23 - 1)]),
    "MEDIUMINT UNSIGNED": ("int", [("16777215", 2**24 - 1)]),
    "INT": ("int", [("-2147483648", -(2**31)), ("2147483647", 2**31 - 1)]),
    "INT UNSIGNED": ("bigint", [("4294967295", 2**32 - 1)]),
    "BIGINT": ("bigint", [("-9223372036854775808", -(2**63)), ("9223372036854775807", 2**63 - 1)]),
    "BIGINT UNSIGNED": ("decimal(20,0)", [("0", Decimal(0)), (str(_TOP), Decimal(_TOP))]),
    "YEAR": ("int", [("0", 0), ("1901", 1901), ("2155", 2155)]),
    "BIT(1)": ("boolean", [("b'0'", False), ("b'1'", True)]),
    "FLOAT": ("double", [("0.1", 0.10000000149011612), ("-3.4e38", -3.3999999521443642e38)]),
    "DOUBLE": ("double", [("0.1", 0.1), ("1.7976931348623157e308", 1.7976931348623157e308)]),
    "DECIMAL(10,2)": ("decimal(10,2)", [("-99999999.99", Decimal("-99999999.99"))]),
    "DECIMAL(38,10)": (
        "decimal(38,10)",
        [(f"-{'9' * 28}.{'9' * 10}", Decimal(f"-{'9' * 28}.{'9' * 10}"))],
    ),
    "DECIMAL(38,38)": ("decimal(38,38)", [(f"0.{'7' * 38}", Decimal(f"0.{'7' * 38}"))]),
    "DECIMAL(9,0)": ("decimal(9,0)", [("-1", Decimal(-1)), ("0", Decimal(0))]),
    "CHAR(10)": ("string", [("''", ""), ("'a  '", "a"), ("'é😀'", "é😀")]),
    "VARCHAR(300)": ("string", [("''", ""), ("'a  '", "a  "), ("'é😀\\n\\0'", "é😀\n\0")]),
    "CHAR(200)": ("string", [("'é'", "é")]),
    "VARCHAR(20) CHARACTER SET latin1": ("string", [("'é€'", "é€"), ("X'81FF'", "\x81ÿ")]),
    "VARCHAR(20) CHARACTER SET ascii": ("string", [("'a'", "a")]),
    "VARCHAR(20) CHARACTER SET utf8mb3": ("string", [("'é'", "é")]),
    "VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci": ("string", [("'é😀'", "é😀")]),
    "TINYTEXT": ("string", [("'a'", "a")]),
    "TEXT": ("string", [("''", ""), (f"'{'x' * 60_000}'", "x" * 60_000)]),
    "MEDIUMTEXT": ("string", [(f"'{_LONG}'", _LONG)]),
    "LONGTEXT": ("string", [("'é'", "é")]),
    "JSON": ("string", [("'{\"a\": [1, 2]}'", '{"a": [1, 2]}')]),
    "ENUM('x','é','')": ("string", [("'x'", "x"), ("'é'", "é"), ("''", "")]),
    "BINARY(4)": ("binary", [("''", b"\0" * 4), ("X'00FF'", b"\0\xff\0\0"), ("'abcd'", b"abcd")]),
    "VARBINARY(300)": ("binary", [("''", b""), ("X'00FF00'", b"\0\xff\0")]),
    "TINYBLOB": ("binary", [("X'FF'", b"\xff")]),
    "LONGBLOB": ("binary", [("''", b""), (f"'{_LONG}'", _LONG.encode())]),
    "DATE": ("date", [("'1000-01-01'", date(1000, 1, 1)), ("'9999-12-31'", date(9999, 12, 31))]),
    "DATETIME": ("timestamp", [("'1000-01-01 00:00:00'", datetime(1000, 1, 1, tzinfo=UTC))]),
    "DATETIME(1)": (
        "timestamp",
        [("'2020-01-01 00:00:00.5'", datetime(2020, 1, 1, 0, 0, 0, 500000, UTC))],
    ),
    "DATETIME(6)": (
        "timestamp",
        [("'9999-12-31 23:59:59.999999'", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC))],
    ),
    "TIMESTAMP NULL": (
        "timestamp",
        [
            ("'1970-01-01 00:00:01'", datetime(1970, 1, 1, 0, 0, 1, 0, UTC)),
            ("'2038-01-19 03:14:07'", datetime(2038, 1, 19, 3, 14, 7, 0, UTC)),
        ],
    ),
    "TIMESTAMP(6) NULL": (
        "timestamp",
        [("'2020-02-29 12:00:00.000001'", datetime(2020, 2, 29, 12, 0, 0, 1, UTC))],
    ),
}
