"""Which Python values a column takes: those that it can give back.

A number is no text, true is no number, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Any, cast

from belvedere.errors import SchemaError
from belvedere.libraries import np
from belvedere.types import Column

_USUAL: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "bigint": (int,),
    "double": (float,),
    "decimal": (Decimal, int),
    "string": (str,),
    "binary": (bytes, bytearray),
    "date": (date,),
    "timestamp": (datetime,),
}
OWN: dict[str, type] = {kind: types[0] for kind, types in _USUAL.items()}
_NUMBERS = {"int", "bigint", "double", "decimal"}
_LARGEST_EXACT = 1 << 53  # whole numbers up to it are doubles, every one of them


def plain(value: Any, column: Column, row: int | None = None) -> Any:
    """The value as Python's own kind for the column, or an error.

    Whether it is too large is seen when it is encoded.
    """
    kind = column.type.name
    if type(value) in _USUAL[kind]:
        return value
    if isinstance(value, np.bool_) and kind == "boolean":
        return bool(value)
    if not isinstance(value, bool):
        if isinstance(value, Integral) and kind in _NUMBERS:
            if kind != "double":
                return int(value)
            if abs(int(value)) <= _LARGEST_EXACT:
                return float(int(value))
        elif isinstance(
            value, _USUAL[kind] if kind != "double" else float | np.floating
        ) and not _loses(value, kind):
            return float(cast(float, value)) if kind == "double" else value
    raise SchemaError(misfit(value, column, row))


def plain_key(values: Sequence[Any], columns: Sequence[Column]) -> tuple[Any, ...]:
    """The same of a key, or of the beginning of one; NULL is NULL, and what is too much stays."""
    known = (None if v is None else plain(v, c) for v, c in zip(values, columns, strict=False))
    return (*known, *values[len(columns) :])


def misfit(value: Any, column: Column, row: int | None = None) -> str:
    return (
        f"{'' if row is None else f'row {row}: '}{value!r} is not a {column.type} for column"
        f" {column.name}"
    )


def _loses(value: Any, kind: str) -> bool:
    """A time as a date, and a time of pandas with nanoseconds."""
    return isinstance(value, datetime) and (kind == "date" or bool(getattr(value, "nanosecond", 0)))
