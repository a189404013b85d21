"""Aggregates by group.

    operator.py   Aggregate: groups, their state, and what of it changes in an epoch
    argument.py   what is kept of one argument list, and the calls over it
    totals.py     one class per kind of sum
    ordered.py    the values of each group in order: MIN, MAX, COUNT(DISTINCT)
    results.py    what a reader sees of a group's state

The next aggregate is a class in totals.py, if it keeps another kind of sum, and a line in
results.py.
"""

from belvedere.operators.aggregate.argument import Argument, Call, Function
from belvedere.operators.aggregate.operator import GLOBAL, Aggregate
from belvedere.operators.aggregate.totals import TotalKind

__all__ = ["GLOBAL", "Aggregate", "Argument", "Call", "Function", "TotalKind"]
