"""Strings read as other types, with exactly the spellings that Spark accepts.

Spark cuts control characters, spaces and DEL from both ends first. A string that is not such a
spelling raises CAST_INVALID_INPUT. Spark has an answer for some more spellings, which raise here,
also below TRY_CAST: times without a date (they mean today), named time zones and zones with
seconds, hexadecimal doubles such as 0x1p3.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.expressions import decimals
from belvedere.expressions.typed import let, raise_sql
from belvedere.types import SqlType

_EDGE = r"[\x00-\x20\x7F]*"
_INTEGER = r"[+-]?[0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
# Java reads a suffix d or f, and a sign before NaN only in this spelling; Spark adds inf and nan in
# any case.
_DOUBLE = rf"(?i:[+-]?inf(?:inity)?|nan)|[+-]NaN|{_NUMBER}[dDfF]?"
_YEAR, _PAIR, _SIXTY = "[+-]?[0-9]{4,7}", "[0-9]{1,2}", "[0-5]?[0-9]"
_DATE = f"({_YEAR})(?:-({_PAIR})(?:-({_PAIR})(?:[ T](?s:.*))?)?)?"
_OFFSET = f"([+-])(?:(0?[0-9]|1[0-7])(?::({_SIXTY}))?|(0[0-9]|1[0-7])([0-5][0-9])|(18)(?::?00)?)"
_ZONE = f"(?:Z|(?:UTC|GMT|UT)?(?:{_OFFSET})?)"
_TIME = rf"([01]?[0-9]|2[0-3])(?::({_SIXTY})(?::({_SIXTY})(?:\.([0-9]*))? *{_ZONE})?)?"
_TIMESTAMP = f"({_YEAR})(?:-({_PAIR})(?:-({_PAIR})(?:[ T]{_TIME})?)?)?"
_UNREAD = {
    "double": r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?",
    "timestamp": (
        rf"(?:T?{_PAIR}:|{_YEAR}-{_PAIR}-{_PAIR}[ T]{_PAIR}:{_PAIR}:{_PAIR}(?:\.[0-9]*)?"
        r" *(?:[A-Za-z]|[+-][0-9:]{6,}))(?s:.*)"
    ),
}
_DATE_PARTS = "['y', 'm', 'd']"
_TIMESTAMP_PARTS = "['y', 'm', 'd', 'h', 'i', 's', 'f', 'sign', 'zh', 'zi', 'zh2', 'zi2', 'zh18']"
_TRUE = "('t', 'true', 'y', 'yes', '1')"
_FALSE = "('f', 'false', 'n', 'no', '0')"


class Reader:
    """Reads strings as `to`. What cannot be read raises, or is NULL if `safe`."""

    def __init__(self, to: SqlType, safe: bool) -> None:
        self._to, self._safe = to, safe
        self._cast = "TRY_CAST" if safe else "CAST"

    def read(self, sql: str) -> str:
        steps: dict[str, Callable[[str], str]] = {
            "boolean": self._boolean,
            "int": self._integer,
            "bigint": self._integer,
            "double": self._double,
            "decimal": self._decimal,
            "binary": lambda v: f"encode({v})",
            "date": self._date,
            "timestamp": self._timestamp,
        }
        return let(sql, steps[self._to.name])

    def _failed(self, text: str) -> str:
        raised = raise_sql("CAST_INVALID_INPUT", text, self._to.duckdb)
        if not self._safe:
            return raised
        unread = _UNREAD.get(self._to.name)
        return (
            f"CASE WHEN regexp_matches({text}, '{_whole(unread)}') THEN {raised} END"
            if unread
            else "NULL"
        )

    def _matched(self, text: str, pattern: str, value: str) -> str:
        """`value` where the whole text matches; NULL stays NULL."""
        return (
            f"CASE WHEN regexp_matches({text}, '{_whole(pattern)}') THEN {value} WHEN {text} IS NOT"
            f" NULL THEN {self._failed(text)} END"
        )

    def _integer(self, text: str) -> str:
        return self._matched(
            text, _INTEGER, f"{self._cast}({_trimmed(text, _INTEGER)} AS {self._to.duckdb})"
        )

    def _decimal(self, text: str) -> str:
        value = decimals.read(_trimmed(text, _NUMBER), self._to)
        return self._matched(
            text, _NUMBER, value.replace("CAST(", "TRY_CAST(") if self._safe else value
        )

    def _double(self, text: str) -> str:
        plain = (
            rf"regexp_replace(replace({_trimmed(text, _DOUBLE)}, '-NaN', 'NaN'), '([0-9.])[dDfF]$',"
            r" '\1')"
        )
        return self._matched(text, _DOUBLE, f"CAST({plain} AS DOUBLE)")

    def _boolean(self, text: str) -> str:
        def body(word: str) -> str:
            tests = f"WHEN {word} IN {_TRUE} THEN TRUE WHEN {word} IN {_FALSE} THEN FALSE"
            return f"CASE {tests} WHEN {text} IS NOT NULL THEN {self._failed(text)} END"

        return let(f"lower({_trimmed(text, '(?s:.*?)')})", body)

    def _date(self, text: str) -> str:
        return self._matched(text, _DATE, self._of_parts(text, _DATE, _DATE_PARTS, _day("p")))

    def _timestamp(self, text: str) -> str:
        return self._matched(
            text, _TIMESTAMP, self._of_parts(text, _TIMESTAMP, _TIMESTAMP_PARTS, _instant("p"))
        )

    def _of_parts(self, text: str, pattern: str, names: str, value: str) -> str:
        """`value` of the pattern's groups `p`, if they name a day of the calendar."""
        checked = f"CASE WHEN {_on_calendar('p')} THEN {value} ELSE {self._failed(text)} END"
        return (
            f"list_transform([regexp_extract({text}, '{_whole(pattern)}', {names})], lambda p:"
            f" {checked})[1]"
        )


def _whole(pattern: str) -> str:
    return rf"\A{_EDGE}(?:{pattern}){_EDGE}\z"


def _trimmed(text: str, pattern: str) -> str:
    return rf"regexp_extract({text}, '\A{_EDGE}({pattern}){_EDGE}\z', 1)"


def _part(struct: str, name: str, default: int) -> str:
    return f"CAST(CASE {struct}.{name} WHEN '' THEN '{default}' ELSE {struct}.{name} END AS BIGINT)"


def _on_calendar(struct: str) -> str:
    year, month, day = (_part(struct, name, 1) for name in ("y", "m", "d"))
    longest = f"day(last_day(make_date({year}, {month}, 1)))"
    return (
        f"CASE WHEN {month} BETWEEN 1 AND 12 AND {day} >= 1 AND abs({year}) < 290000 THEN {day} <="
        f" {longest} ELSE FALSE END"
    )


def _day(struct: str) -> str:
    return f"make_date({', '.join(_part(struct, name, 1) for name in ('y', 'm', 'd'))})"


def _instant(struct: str) -> str:
    """The time of the day is added to the day, and the offset of the zone is subtracted."""
    hours = (
        f"{_part(struct, 'h', 0)} * 3600 + {_part(struct, 'i', 0)} * 60 + {_part(struct, 's', 0)}"
    )
    offset = " + ".join(
        f"{_part(struct, name, 0)} * {unit}"
        for name, unit in (("zh", 3600), ("zi", 60), ("zh2", 3600), ("zi2", 60), ("zh18", 3600))
    )
    signed = f"({offset}) * CASE {struct}.sign WHEN '-' THEN -1 ELSE 1 END"
    fraction = f"CAST(rpad(left({struct}.f, 6), 6, '0') AS BIGINT)"
    return (
        f"make_timestamptz(epoch_us(CAST({_day(struct)} AS TIMESTAMP)) + ({hours} - {signed}) *"
        f" 1000000 + {fraction})"
    )


def read(sql: str, source: SqlType, to: SqlType) -> str:
    return Reader(to, safe=False).read(sql)


def try_read(sql: str, to: SqlType) -> str:
    return Reader(to, safe=True).read(sql)


def try_read_raises(to: SqlType) -> bool:
    return to.name in _UNREAD
