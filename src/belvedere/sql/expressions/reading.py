"""Strings read as other types, with exactly the spellings that Spark accepts.

Spark cuts control characters, spaces and DEL from both ends first. A string that is not such a spelling
raises CAST_INVALID_INPUT. Not read here, so raising although Spark has an answer: the words epoch, now, today,
tomorrow and yesterday, times without a date (they mean today), named time zones, hexadecimal doubles.
"""

from __future__ import annotations

from belvedere.sql.expressions import decimals
from belvedere.sql.expressions.typed import let, raise_sql
from belvedere.types import SqlType

_EDGE = r"[\x00-\x20\x7F]*"
_INTEGER = r"[+-]?[0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DATE = r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](?s:.*))?)?)?"
_ZONE = r"Z|UTC|GMT|(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{1,2}))?"
_TIME = rf"([01]?[0-9]|2[0-3])(?::([0-5]?[0-9])(?::([0-5]?[0-9])(?:\.([0-9]*))?)?)? ?(?:{_ZONE})?"
_TIMESTAMP = rf"([+-]?[0-9]{{4,6}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_TIME})?)?)?"
_TRUE = "('t', 'true', 'y', 'yes', '1')"
_FALSE = "('f', 'false', 'n', 'no', '0')"


def trimmed(sql: str) -> str:
    return rf"regexp_replace({sql}, '^{_EDGE}((?s:.*?)){_EDGE}$', '\1')"


def _matched(sql: str, pattern: str, value: str, to: SqlType) -> str:
    """`value` of the trimmed text, written with {v}, where the text matches as a whole; NULL stays NULL."""

    def body(v: str) -> str:
        failed = raise_sql("CAST_INVALID_INPUT", v, to.duckdb)
        return f"CASE WHEN regexp_full_match({v}, '{pattern}') THEN {value.format(v=v)} WHEN {v} IS NOT NULL THEN {failed} END"

    return let(trimmed(sql), body)


def integer(sql: str, source: SqlType, to: SqlType) -> str:
    return _matched(sql, _INTEGER, f"CAST({{v}} AS {to.duckdb})", to)


def decimal(sql: str, source: SqlType, to: SqlType) -> str:
    return _matched(sql, _NUMBER, decimals.read("{v}", to), to)


def double(sql: str, source: SqlType, to: SqlType) -> str:
    """Java reads a suffix d or f, and a sign before NaN only in this spelling; Spark adds inf and nan in any case."""
    words = "(?i:[+-]?inf(?:inity)?|nan)|[+-]NaN"
    value = r"CAST(regexp_replace(replace({v}, '-NaN', 'NaN'), '([0-9.])[dDfF]$', '\1') AS DOUBLE)"
    return _matched(sql, f"(?:{words}|{_NUMBER}[dDfF]?)", value, to)


def boolean(sql: str, source: SqlType, to: SqlType) -> str:
    def body(v: str) -> str:
        failed = raise_sql("CAST_INVALID_INPUT", v, "BOOLEAN")
        return f"CASE WHEN {v} IN {_TRUE} THEN TRUE WHEN {v} IN {_FALSE} THEN FALSE WHEN {v} IS NOT NULL THEN {failed} END"

    return let(f"lower({trimmed(sql)})", body)


def binary(sql: str, source: SqlType, to: SqlType) -> str:
    return f"encode({sql})"


def date(sql: str, source: SqlType, to: SqlType) -> str:
    parts = f"list_transform([regexp_extract({{v}}, '^{_escaped(_DATE)}$', ['y', 'm', 'd'])], lambda p: {_day('p')})[1]"
    return _matched(sql, _DATE, parts, to)


def timestamp(sql: str, source: SqlType, to: SqlType) -> str:
    names = "['y', 'm', 'd', 'h', 'i', 's', 'f', 'sign', 'zh', 'zi']"
    parts = f"list_transform([regexp_extract({{v}}, '^{_escaped(_TIMESTAMP)}$', {names})], lambda p: {_instant('p')})[1]"
    return _matched(sql, _TIMESTAMP, parts, to)


def _escaped(pattern: str) -> str:
    return pattern.replace("{", "{{").replace("}", "}}")


def _part(struct: str, name: str, default: int) -> str:
    return f"CAST(CASE {struct}.{name} WHEN '' THEN '{default}' ELSE {struct}.{name} END AS BIGINT)"


def _day(struct: str) -> str:
    return f"make_date({_part(struct, 'y', 1)}, {_part(struct, 'm', 1)}, {_part(struct, 'd', 1)})"


def _instant(struct: str) -> str:
    """Hours and minutes out of range raise in make_timestamp; the zone's offset goes to the other side."""
    at = ", ".join(_part(struct, name, 0) for name in ("h", "i"))
    local = f"make_timestamp({_part(struct, 'y', 1)}, {_part(struct, 'm', 1)}, {_part(struct, 'd', 1)}, {at}, CAST({_part(struct, 's', 0)} AS DOUBLE))"
    fraction = f"CAST(rpad(left({struct}.f, 6), 6, '0') AS BIGINT)"
    offset = f"({_part(struct, 'zh', 0)} * 3600 + {_part(struct, 'zi', 0)} * 60) * CASE {struct}.sign WHEN '-' THEN -1 ELSE 1 END"
    return f"make_timestamptz(epoch_us({local}) + {fraction} - {offset} * 1000000)"
