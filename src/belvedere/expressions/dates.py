"""Dates and timestamps. A timestamp is an instant; its fields are those of UTC."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions.casts import cast_to, floor_seconds
from belvedere.expressions.dialect import called
from belvedere.expressions.rules import Lower, function, literal_text, lowers, typed_as
from belvedere.expressions.typed import Typed, strict
from belvedere.types import BIGINT, DATE, INT, TIMESTAMP, SqlType, decimal

_MONTHS = {"YEAR": 12, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_MICROS = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_YEAR, _QUARTER, _MONTH = ("YEAR", "YYYY", "YY"), ("QUARTER",), ("MONTH", "MM", "MON")
_DATE_UNITS = {
    word: name
    for name, words in (
        ("year", _YEAR),
        ("quarter", _QUARTER),
        ("month", _MONTH),
        ("week", ("WEEK",)),
    )
    for word in words
}
_TIME_UNITS = _DATE_UNITS | {"DAY": "day", "DD": "day"} | {u: u.lower() for u in _MICROS}


def as_date(value: Typed, where: str) -> Typed:
    if value.is_null or value.kind in ("date", "timestamp", "string"):
        return cast_to(value, DATE)
    raise SqlError(f"{where} needs a date, not {value.type}")


def as_timestamp(value: Typed, where: str) -> Typed:
    if value.is_null or value.kind in ("date", "timestamp", "string"):
        return cast_to(value, TIMESTAMP)
    raise SqlError(f"{where} needs a timestamp, not {value.type}")


def local(sql: str) -> str:
    """The fields of an instant in UTC, as a TIMESTAMP without zone."""
    return f"make_timestamp(epoch_us({sql}))"


_DATE_FIELDS: dict[type[exp.Expr], str] = {
    exp.Year: "year({})",
    exp.Quarter: "quarter({})",
    exp.Month: "month({})",
    exp.Day: "day({})",
    exp.DayOfMonth: "day({})",
    exp.DayOfWeek: "(dayofweek({}) + 1)",
    exp.DayOfYear: "dayofyear({})",
    exp.WeekOfYear: "week({})",
}
_TIME_FIELDS: dict[type[exp.Expr], str] = {
    exp.Hour: "hour({})",
    exp.Minute: "minute({})",
    exp.Second: "second({})",
}
_EXTRACTED = {
    "YEAR": "year({})",
    "QUARTER": "quarter({})",
    "MONTH": "month({})",
    "WEEK": "week({})",
    "DAY": "day({})",
    "DAYOFWEEK": "(dayofweek({}) + 1)",
    "DAYOFWEEK_ISO": "isodow({})",
    "DOW_ISO": "isodow({})",
    "DAYOFYEAR": "dayofyear({})",
    "DOY": "dayofyear({})",
    "DOW": "(dayofweek({}) + 1)",
    "YEAROFWEEK": "isoyear({})",
    "HOUR": "hour({})",
    "MINUTE": "minute({})",
}


def _inner(node: exp.Expr) -> exp.Expr:
    """sqlglot wraps the arguments of some functions in a conversion to date, which ours do
    themselves.
    """
    return node.this if isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe") else node


@lowers(*_DATE_FIELDS)
def date_field(node: exp.Func, lower: Lower) -> Typed:
    value = as_date(lower(_inner(node.this)), node.key)
    return strict([value], lambda v: f"CAST({_DATE_FIELDS[type(node)].format(v)} AS INTEGER)", INT)


@lowers(*_TIME_FIELDS)
def time_field(node: exp.Func, lower: Lower) -> Typed:
    value = as_timestamp(lower(node.this), node.key)
    return strict(
        [value], lambda v: f"CAST({_TIME_FIELDS[type(node)].format(local(v))} AS INTEGER)", INT
    )


@function("weekday", 1)
def weekday(node: exp.Anonymous, lower: Lower) -> Typed:
    return strict(
        [as_date(lower(node.expressions[0]), "weekday")],
        lambda v: f"CAST(isodow({v}) - 1 AS INTEGER)",
        INT,
    )


@lowers(exp.Extract, args="this expression")
def extract(node: exp.Extract, lower: Lower) -> Typed:
    unit, value = str(node.this.name).upper(), lower(node.expression)
    if not isinstance(node.this, exp.Var):
        raise SqlError(f"EXTRACT needs a word before FROM: {', '.join(_EXTRACTED)}")
    if value.kind not in ("date", "timestamp"):
        raise SqlError(f"EXTRACT needs a date or timestamp, not {value.type or 'NULL'}")
    if unit == "SECOND" and value.type == TIMESTAMP:
        return strict(
            [value],
            lambda v: (
                f"CAST(CAST(epoch_us({v}) - epoch_us(date_trunc('minute', {local(v)})) AS"
                " DECIMAL(20,0)) * 0.000001 AS DECIMAL(8,6))"
            ),
            decimal(8, 6),
        )
    if unit not in _EXTRACTED or (unit in ("HOUR", "MINUTE") and value.type == DATE):
        raise Unsupported(
            f"EXTRACT({unit} FROM {value.type})", f"use one of {', '.join(_EXTRACTED)}"
        )
    fields = local(value.sql) if value.type == TIMESTAMP else value.sql
    return strict([value], lambda v: f"CAST({_EXTRACTED[unit].format(fields)} AS INTEGER)", INT)


@lowers(exp.TsOrDsToDate, args="this safe")
def to_date(node: exp.TsOrDsToDate, lower: Lower) -> Typed:
    return as_date(lower(node.this), "to_date")


@lowers(exp.TsOrDsAdd, args="this expression unit")
def date_add(node: exp.TsOrDsAdd, lower: Lower) -> Typed:
    return add_days(
        as_date(lower(node.this), "date_add"),
        typed_as(lower(node.expression), INT, "the number of days"),
        "+",
    )


@function("date_sub", 2)
def date_sub(node: exp.Anonymous, lower: Lower) -> Typed:
    day, count = node.expressions
    return add_days(
        as_date(lower(day), "date_sub"), typed_as(lower(count), INT, "the number of days"), "-"
    )


def add_days(day: Typed, count: Typed, sign: str) -> Typed:
    return strict([day, count], lambda d, n: f"({d} {sign} {n})", DATE, raises=True)


@lowers(exp.DateDiff, args="this expression")
def datediff(node: exp.DateDiff, lower: Lower) -> Typed:
    end, start = (as_date(lower(_inner(e)), "datediff") for e in (node.this, node.expression))
    return strict([end, start], lambda e, s: f"CAST({e} - {s} AS INTEGER)", INT)


@lowers(exp.AddMonths, args="this expression")
def add_months(node: exp.AddMonths, lower: Lower) -> Typed:
    day, count = (
        as_date(lower(node.this), "add_months"),
        typed_as(lower(node.expression), INT, "the number of months"),
    )
    return strict(
        [day, count], lambda d, n: f"CAST({d} + to_months({n}) AS DATE)", DATE, raises=True
    )


@lowers(exp.LastDay)
def last_day(node: exp.LastDay, lower: Lower) -> Typed:
    return strict([as_date(lower(node.this), "last_day")], lambda d: f"last_day({d})", DATE)


@function("trunc", 2)
def trunc(node: exp.Anonymous, lower: Lower) -> Typed:
    day, unit = node.expressions
    name = _unit(unit, _DATE_UNITS, "trunc", lower)
    return strict(
        [as_date(lower(day), "trunc")], lambda d: f"CAST(date_trunc('{name}', {d}) AS DATE)", DATE
    )


@function("date_trunc", 2)
def date_trunc(node: exp.Anonymous, lower: Lower) -> Typed:
    unit, instant = node.expressions
    name = _unit(unit, _TIME_UNITS, "date_trunc", lower)
    value = as_timestamp(lower(instant), "date_trunc")
    return strict(
        [value],
        lambda v: f"make_timestamptz(epoch_us(date_trunc('{name}', {local(v)})))",
        TIMESTAMP,
    )


def _unit(node: exp.Expr, known: dict[str, str], where: str, lower: Lower) -> str:
    """Spark answers NULL for a unit it does not know; here that is a mistake."""
    if isinstance(node, exp.Column):
        raise SqlError(f"the unit of {where} must be a string literal")
    word = literal_text(lower(node), f"the unit of {where}")
    if word.upper() not in known:
        raise Unsupported(f"{where} to {word!r}", f"use one of {', '.join(known)}")
    return known[word.upper()]


@lowers(exp.StrToUnix, args="this format")
def unix_timestamp(node: exp.StrToUnix, lower: Lower) -> Typed:
    """Whole seconds, cut towards zero as Spark does here (unix_seconds rounds down)."""
    value = lower(node.this)
    if value.kind not in ("date", "timestamp"):
        raise Unsupported(f"{called(node)} of a string", "cast it to timestamp first")
    return strict([cast_to(value, TIMESTAMP)], lambda v: f"(epoch_us({v}) // 1000000)", BIGINT)


def _of_timestamp(build: Callable[[str], str]) -> Callable[[exp.Expr, Lower], Typed]:
    def rule(node: exp.Expr, lower: Lower) -> Typed:
        value = typed_as(lower(node.this or node.expressions[0]), TIMESTAMP, node.name or node.key)
        return strict([value], build, BIGINT)

    return rule


lowers(exp.UnixSeconds)(_of_timestamp(lambda v: floor_seconds(f"epoch_us({v})")))
lowers(exp.UnixMicros)(_of_timestamp(lambda v: f"epoch_us({v})"))


@function("timestamp_seconds", 1)
def timestamp_seconds(node: exp.Anonymous, lower: Lower) -> Typed:
    return _from_epoch(lower(node.expressions[0]), 1_000_000, "timestamp_seconds")


@function("timestamp_millis", 1)
def timestamp_millis(node: exp.Anonymous, lower: Lower) -> Typed:
    return _from_epoch(lower(node.expressions[0]), 1_000, "timestamp_millis")


def _from_epoch(value: Typed, unit: int, where: str) -> Typed:
    if not value.is_null and value.kind not in ("int", "bigint"):
        raise Unsupported(f"{where} of {value.type}", "cast it to bigint")
    return strict(
        [cast_to(value, BIGINT)],
        lambda v: f"make_timestamptz({v} * {unit}::BIGINT)",
        TIMESTAMP,
        raises=True,
    )


@function("make_date", 3)
def make_date(node: exp.Anonymous, lower: Lower) -> Typed:
    parts = [typed_as(lower(e), INT, "make_date") for e in node.expressions]
    return strict(
        parts, lambda y, m, d: f"make_date(CAST({y} AS BIGINT), {m}, {d})", DATE, raises=True
    )


@lowers(exp.UnixDate)
def unix_date(node: exp.UnixDate, lower: Lower) -> Typed:
    return strict(
        [typed_as(lower(node.this), DATE, "unix_date")],
        lambda d: f"CAST({d} - DATE '1970-01-01' AS INTEGER)",
        INT,
    )


@lowers(exp.DateFromUnixDate)
def date_from_unix_date(node: exp.DateFromUnixDate, lower: Lower) -> Typed:
    return strict(
        [typed_as(lower(node.this), INT, "date_from_unix_date")],
        lambda n: f"(DATE '1970-01-01' + {n})",
        DATE,
        raises=True,
    )


def shift(node: exp.Binary, lower: Lower) -> Typed | None:
    """date or timestamp + interval, date + int; None for ordinary numbers."""
    sign = "-" if isinstance(node, exp.Sub) else "+"
    left, right = node.this, node.expression
    if isinstance(left, exp.Interval) and sign == "+":
        left, right = right, left
    if isinstance(right, exp.Interval):
        return _shift_by(lower(left), right, sign)
    a, b = lower(left), lower(right)
    if b.type == DATE and sign == "+":
        a, b = b, a
    if {a.type, b.type} <= {DATE, TIMESTAMP}:
        raise Unsupported(
            f"{a.type} {sign} {b.type}", "use datediff(end, start), or unix_micros of both"
        )
    if a.type != DATE:
        return None
    if b.type != INT:
        raise SqlError(f"{a.type} {sign} {b.type or 'NULL'}: add an int or an interval")
    return add_days(a, b, sign)


def _shift_by(value: Typed, interval: exp.Interval, sign: str) -> Typed:
    if value.type not in (DATE, TIMESTAMP):
        raise SqlError(
            f"an interval can be added to a date or timestamp, not to {value.type or 'NULL'}"
        )
    count, unit = _count(interval)
    count = -count if sign == "-" else count
    if unit in _MONTHS:
        return _shift_months(value, count * _MONTHS[unit])
    if value.type == DATE and unit in _DAYS:
        return strict(
            [value], lambda d: f"({d} + CAST({count * _DAYS[unit]} AS INTEGER))", DATE, raises=True
        )
    micros = count * (_DAYS[unit] * 86_400_000_000 if unit in _DAYS else _MICROS[unit])
    return strict(
        [cast_to(value, TIMESTAMP)],
        lambda v: f"make_timestamptz(epoch_us({v}) + CAST({micros} AS BIGINT))",
        TIMESTAMP,
        raises=True,
    )


def _shift_months(value: Typed, months: int) -> Typed:
    kind: SqlType = value.type or DATE
    if kind == DATE:
        return strict(
            [value], lambda d: f"CAST({d} + to_months({months}) AS DATE)", DATE, raises=True
        )
    return strict(
        [value],
        lambda v: f"make_timestamptz(epoch_us({local(v)} + to_months({months})))",
        TIMESTAMP,
        raises=True,
    )


def _count(interval: exp.Interval) -> tuple[int, str]:
    unit = interval.args.get("unit")
    word = str(unit.name).upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    amount = interval.this
    sign = -1 if isinstance(amount, exp.Neg) else 1
    digits = str((amount.this if isinstance(amount, exp.Neg) else amount).name)
    if (
        word not in {**_MONTHS, **_DAYS, **_MICROS}
        or not digits.lstrip("-").isdecimal()
        or len(digits) > 9
    ):
        raise Unsupported(
            interval.sql("spark"), "write INTERVAL <whole number> <unit>, one unit at a time"
        )
    return sign * int(digits), word
