"""Groups are stored as they always were, byte for byte.

`stored/groups.json` was written before totals became classes of their own.
"""

from __future__ import annotations

import json
from pathlib import Path

from belvedere.operators.aggregate import Aggregate, Argument, Call
from belvedere.testing import OneSlot, changes
from belvedere.types import BIGINT, DOUBLE, INT, STRING, decimal

_STORED = Path(__file__).parent / "stored" / "groups.json"
_LONG = decimal(38, 2)
_GROUPS, _ERRORS = 1, 9
_ARGUMENTS = (
    Argument((1,), (INT,), "int", 2),
    Argument((2,), (DOUBLE,), "double", 3, by_row=True),
    Argument((3,), (_LONG,), "wide"),
    Argument((4,), (decimal(10, 2),), "int"),
    Argument((1, 4), (INT, decimal(10, 2)), "", 4),
)
_CALLS = (
    Call("count_rows", -1, BIGINT),
    Call("sum", 0, BIGINT, INT),
    Call("max", 1, DOUBLE, DOUBLE),
    Call("avg", 1, DOUBLE, DOUBLE),
    Call("sum", 2, _LONG, _LONG),
    Call("avg", 3, decimal(14, 6), decimal(10, 2)),
    Call("count_distinct", 4, BIGINT, INT),
)
_AGGREGATE = Aggregate(_GROUPS, (STRING,), _ARGUMENTS, _CALLS, _ERRORS)
_FIRST = """
    id | g string | i int | d double | v decimal(38,2) | m decimal(10,2)
    1  | x        | 5     | 0.1      | 999999999999999999999999999999999999.99 | 10.25
    2  | x        | 7     | -3e300   | 999999999999999999999999999999999999.99 | -0.01
    3  | x        | NULL  | nan      | NULL | NULL
    4  | y        | -1    | 5e-324   | -1.50 | 7.00
    5  | NULL     | NULL  | NULL     | NULL | NULL
"""
_SECOND = """
    id | g string | i int | d double | v decimal(38,2) | m decimal(10,2) | w
    3  | x        | NULL  | nan      | NULL            | NULL            | -1
    6  | x        | 2     | inf      | 0.01            | 1.00            | +1
    7  | y        | -1    | 0.2      | 2.25            | 7.00            | +1
"""
_GLOBAL = Aggregate(_GROUPS, (), _ARGUMENTS[:3], _CALLS[:5], _ERRORS)


Records = dict[str, dict[str, str]]  # in hex, by table


def records(slot: OneSlot) -> Records:
    return {
        str(table): {key.hex(): value.hex() for key, value in sorted(slot.records(table).items())}
        for table in (_GROUPS, 2, 3, 4, _ERRORS)
    }


def grouped() -> Records:
    slot = OneSlot()
    slot.step(_AGGREGATE, changes(_FIRST))
    slot.step(_AGGREGATE, changes(_SECOND))
    return records(slot)


def empty() -> Records:
    slot = OneSlot()
    slot.step_parts(_GLOBAL, [(_GLOBAL.start(),)])
    return records(slot)


def test_groups_are_stored_as_before() -> None:
    stored = json.loads(_STORED.read_text(encoding="utf-8"))
    assert grouped() == stored["groups"]
    assert empty() == stored["one group of nothing"]
