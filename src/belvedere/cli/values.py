"""Values as text: arguments, CSV cells and JSON become values of a column's type, and values become
JSON and cells of a table.

    boolean     true, false
    int         7, -7, +7: ASCII digits only, as in all numbers
    decimal     12.30 (a JSON string or number)
    binary      hexadecimal digits, 0x allowed
    timestamp   2026-01-31T12:00:00Z; without a zone, UTC
    NULL        the word NULL on the command line, null in JSON
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from belvedere.errors import SchemaError
from belvedere.types import Column, Row, Schema, SqlType

# values for ?, or by name for :name
Parameters = list[Any] | dict[str, Any]

NULL = "NULL"
_EXACT = Context(prec=1000)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")
_BYTES = re.compile(r"[xX]'((?:[0-9a-fA-F]{2})*)'")
_EXPONENT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_SHOWN = 80  # characters of a value in an error


def _boolean(text: str) -> bool:
    known = {
        "true": True,
        "t": True,
        "yes": True,
        "1": True,
        "false": False,
        "f": False,
        "no": False,
        "0": False,
    }
    return known[text.strip().lower()]


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text.strip()):
        raise ValueError
    return int(text)


def _number(text: str) -> str:
    """The text, if no reader but Python's would take it for something else: `1_000` and digits of
    other scripts are refused.
    """
    if "_" in text or not text.strip().isascii():
        raise ValueError
    return text


def _string(text: str) -> str:
    text.encode()  # bytes that are not UTF-8 are surrogates here
    return text


def _timestamp(text: str) -> datetime:
    value = datetime.fromisoformat(text.strip())
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_READ: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "int": _integer,
    "bigint": _integer,
    "double": lambda text: float(_number(text)),
    "decimal": lambda text: Decimal(_number(text)),
    "string": _string,
    "binary": lambda text: bytes.fromhex(text.strip().removeprefix("0x")),
    "date": lambda text: date.fromisoformat(text.strip()),
    "timestamp": _timestamp,
}
_NUMBER = (int, Decimal, str)
_JSON: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "bigint": (int,),
    "double": _NUMBER,
    "decimal": _NUMBER,
}
_LIMITS = {"int": 1 << 31, "bigint": 1 << 63}
_WRITTEN = {
    "boolean": "true or false",
    "string": "text, in UTF-8",
    "binary": "hexadecimal digits, two per byte, as in 00ff",
    "date": "as in 2026-01-31",
    "timestamp": "as in 2026-01-31T12:00:00Z",
}


def from_text(text: str, column: Column) -> Any:
    """A value of the column's type from its text."""
    try:
        value = _READ[column.type.name](text)
        _check_range(value, column.type)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        raise _unfit(text, column) from None
    return value


def _unfit(text: str, column: Column) -> SchemaError:
    written = f" ({_WRITTEN[column.type.name]})" if column.type.name in _WRITTEN else ""
    return SchemaError(f"{quoted(text)} is not a {column.type} for column {column.name}{written}")


def quoted(text: str) -> str:
    """A text inside an error: whatever a file had there, it stays one line of a length that can be
    read.
    """
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def given_twice(name: str) -> SchemaError:
    return SchemaError(f"column {quoted(name)} is given twice: names are compared without case")


def from_json(value: Any, column: Column) -> Any:
    """The same from a value that `parse_json` returned."""
    if value is None:
        return None
    name = column.type.name
    if isinstance(value, bool) != (name == "boolean") or not isinstance(
        value, _JSON.get(name, (str,))
    ):
        # 1e999999999 has a billion digits
        raise _unfit(str(value) if isinstance(value, Decimal) else to_text(value), column)
    return value if isinstance(value, bool) else from_text(str(value), column)


def _check_range(value: Any, kind: SqlType) -> None:
    limit = _LIMITS.get(kind.name)
    if limit is not None and not -limit <= value < limit:
        raise OverflowError
    if kind.name == "decimal" and not _fits(value, kind):
        raise OverflowError


def _fits(value: Decimal, kind: SqlType) -> bool:
    """No digit is lost: trailing zeros do not count."""
    if not value.is_finite():
        return False
    _, digits, exponent = value.normalize(_EXACT).as_tuple()
    assert isinstance(exponent, int)  # of a finite value
    return -exponent <= kind.scale and len(digits) + exponent <= kind.precision - kind.scale


def parse_json(text: str) -> Any:
    """JSON with exact decimals, and no name twice in an object."""
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"this is not valid JSON: {error.msg} at character {error.pos + 1}"
        ) from None
    except (ValueError, InvalidOperation):
        raise SchemaError(
            "a number in this JSON has too many digits: no column can hold it"
        ) from None
    except RecursionError:
        raise SchemaError("this JSON is nested too deeply: a row is one flat object") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: set[str] = set()
    for name, _ in pairs:
        if name.lower() in seen:
            raise given_twice(name)
        seen.add(name.lower())
    return dict(pairs)


def row_from_json(data: Any, schema: Schema) -> Row:
    """A JSON object as a row; names in any case, unknown ones are refused."""
    if not isinstance(data, Mapping):
        raise SchemaError(f"expected a JSON object with the columns {', '.join(schema.names)}")
    return {
        column.name: from_json(value, column)
        for column, value in ((_column(name, schema), v) for name, v in data.items())
    }


def row_from_pairs(pairs: Sequence[str], schema: Schema) -> Row:
    """`id=o1 amount=7` as a row."""
    row: Row = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise SchemaError(
                f"{quoted(pair)} is neither a JSON object nor name=value: write"
                f" {schema.names[0]}=..."
            )
        column = _column(name, schema)
        if column.name in row:
            raise given_twice(name)
        row[column.name] = None if text == NULL else from_text(text, column)
    return row


def key_from_texts(texts: Sequence[str], schema: Schema) -> tuple[Any, ...]:
    """The values of the first key columns, as many as there are texts."""
    columns = schema.key_columns
    if len(texts) > len(columns):
        raise SchemaError(
            f"the key is ({', '.join(schema.key)}): give at most {len(columns)} value(s), not"
            f" {len(texts)}"
        )
    return tuple(
        None if text == NULL else from_text(text, column)
        for text, column in zip(texts, columns, strict=False)
    )


def parameter_from_text(text: str) -> Any:
    """A value for a statement's parameter, which no column gives a type: read as SQL reads a
    literal, a string also without quotes.

    7 is a number, 1.5 a decimal, 1e3 a double, X'00ff' bytes, true and false, NULL; "7", in double
    quotes as in JSON, and anything else is text.
    """
    if text == NULL:
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        return Decimal(text)
    if _EXPONENT.fullmatch(text):
        return float(text)
    if match := _BYTES.fullmatch(text):
        return bytes.fromhex(match[1])
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _text_in_quotes(text)
    return _checked_text(text)


def _text_in_quotes(text: str) -> str:
    value = parse_json(text)
    assert isinstance(value, str)  # what begins with a quote is nothing else in JSON
    return value


def _checked_text(text: str) -> str:
    try:
        return _string(text)
    except UnicodeEncodeError:
        raise SchemaError(f"{quoted(text)} is not text in UTF-8") from None


def parameters_from_texts(texts: Sequence[str], named: bool) -> Parameters:
    """The values of `--param`, each `name=value` if the statement names its parameters."""
    if not named:
        return [parameter_from_text(text) for text in texts]
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.removeprefix(":")
        if not equals:
            raise SchemaError(f"{quoted(text)} has no name: write --param name=value")
        if name in found:
            raise SchemaError(f"parameter {quoted(name)} is given twice: give it once")
        found[name] = parameter_from_text(value)
    return found


def _column(name: str, schema: Schema) -> Column:
    for column in schema.columns:
        if column.name.lower() == name.lower():
            return column
    raise SchemaError(f"unknown column {quoted(name)}: the columns are {', '.join(schema.names)}")


def plain(value: Any) -> Any:
    """A value as JSON can say it: decimals as text (exact), times as ISO 8601, bytes as hexadecimal
    digits.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(plain(value), ensure_ascii=False, indent=indent)


def to_text(value: Any) -> str:
    """A value as a cell of a table."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = plain(value)
    return shown if isinstance(shown, str) else to_json(value)
