"""Python values as the integers they are stored as, and back.

    boolean 0/1    date days since 1970-01-01    timestamp microseconds since 1970-01-01 UTC
    decimal(p,s)   value * 10**s                 int, bigint themselves

`to_integer(kind)` and `from_integer(kind)` are None where the value is already its own integer.
A value that does not fit its type raises one of `MISFIT`; the codecs turn that into a SchemaError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from belvedere.errors import SchemaError
from belvedere.types import SqlType

MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)

_EPOCH_DAY = date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = date.min.toordinal() - _EPOCH_DAY, date.max.toordinal() - _EPOCH_DAY
FIRST_MICROSECOND, LAST_MICROSECOND = (
    FIRST_DAY * 86_400_000_000,
    (LAST_DAY + 1) * 86_400_000_000 - 1,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_NAIVE = datetime(1970, 1, 1)


def to_integer(kind: SqlType) -> Callable[[Any], int] | None:
    if kind.name == "decimal":
        return _unscale(kind)
    return _TO_INTEGER.get(kind.name)


def from_integer(kind: SqlType) -> Callable[[int], Any] | None:
    if kind.name == "decimal":
        return _scale(kind)
    return _FROM_INTEGER.get(kind.name)


def misfit(values: Sequence[Any], kinds: Sequence[SqlType]) -> SchemaError:
    return SchemaError(
        f"{tuple(values)!r} does not fit ({', '.join(map(str, kinds))}): pass values of these"
        " types, in this order"
    )


def _days(value: date) -> int:
    if isinstance(value, datetime):
        raise TypeError("a date would forget the time of day")
    return value.toordinal() - _EPOCH_DAY


def _date(days: int) -> date:
    return date.fromordinal(days + _EPOCH_DAY)


def _microseconds(value: datetime) -> int:
    since = value - (_EPOCH_NAIVE if value.tzinfo is None else _EPOCH)
    found = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not FIRST_MICROSECOND <= found <= LAST_MICROSECOND:  # in UTC
        raise OverflowError("a timestamp is of the years 1 to 9999")
    return found


def _datetime(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _unscale(kind: SqlType) -> Callable[[Any], int]:
    # Inexact is trapped, so a value with more digits than the type has is refused, never rounded.
    exact = Context(prec=kind.precision, traps=[Inexact, InvalidOperation])
    unit, scale = Decimal((0, (1,), -kind.scale)), kind.scale

    def unscale(value: Any) -> int:
        return int(exact.scaleb(exact.quantize(value, unit), scale))

    return unscale


def _scale(kind: SqlType) -> Callable[[int], Decimal]:
    exact, shift = Context(prec=kind.precision), -kind.scale

    def scale(unscaled: int) -> Decimal:
        return exact.scaleb(Decimal(unscaled), shift)

    return scale


_TO_INTEGER: dict[str, Callable[[Any], int]] = {
    "boolean": {False: 0, True: 1}.__getitem__,
    "date": _days,
    "timestamp": _microseconds,
}
_FROM_INTEGER: dict[str, Callable[[int], Any]] = {
    "boolean": bool,
    "date": _date,
    "timestamp": _datetime,
}
