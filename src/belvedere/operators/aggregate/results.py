"""Results: what a reader sees of a group's state, with Spark's types and overflow rules.

    count = n
    sum = NULL if nothing was summed
    avg = sum / non-NULL count
    min, max = the extremes

Each function gives the values and a mask of the groups whose result cannot be represented; those
are errors of the view (rule R9), while the state behind them stays exact and recovers.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.encoding import KeyCodec
from belvedere.libraries import np, pa
from belvedere.operators.aggregate.argument import (
    ArgumentState,
    Call,
    Extremes,
    Function,
    GroupState,
)
from belvedere.operators.aggregate.totals import Result, TotalFunction, Wanted

_NULL = b"\x00"  # the tag byte of NULL, as keys are encoded


def result_of(call: Call, state: GroupState) -> Result:
    """The values of one call for all groups."""
    if call.function == "count_rows":
        return pa.array(state.count), np.zeros(len(state.count), bool)
    return _RESULTS[call.function](call, state.arguments[call.argument])


def _count(call: Call, state: ArgumentState) -> Result:
    return _fine(pa.array(state.non_null))


def _count_distinct(call: Call, state: ArgumentState) -> Result:
    return _fine(pa.array(_extremes(state).distinct))


def _least(call: Call, state: ArgumentState) -> Result:
    return _fine(_extreme(call, _extremes(state).least))


def _greatest(call: Call, state: ArgumentState) -> Result:
    return _fine(_extreme(call, _extremes(state).greatest))


def _of_total(function: TotalFunction) -> Callable[[Call, ArgumentState], Result]:
    def result(call: Call, state: ArgumentState) -> Result:
        assert state.total is not None  # kept for every sum and average
        return state.total.result(Wanted(function, call.type, call.scale), state.non_null)

    return result


_RESULTS: dict[Function, Callable[[Call, ArgumentState], Result]] = {
    "count": _count,
    "count_distinct": _count_distinct,
    "min": _least,
    "max": _greatest,
    "sum": _of_total("sum"),
    "avg": _of_total("avg"),
}


def _extremes(state: ArgumentState) -> Extremes:
    assert state.extremes is not None  # kept for every call that needs order
    return state.extremes


def _extreme(call: Call, suffixes: pa.BinaryArray) -> pa.Array:
    """Decode the extremes; a group without one has NULL."""
    return KeyCodec((call.type,)).decode(suffixes.fill_null(_NULL))[0]


def _fine(values: pa.Array) -> Result:
    return values, np.zeros(len(values), bool)
