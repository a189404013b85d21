"""What a view will cost before it is created: EXPLAIN COST.

sample.py     one pass over the base tables, at most so many rows of all of them together
trial.py      the real operators over the samples: the first epoch of a view over nothing
distinct.py   how many different values there are, from those in a sample
relation.py   what a node emits: rows of the sample, and how many they stand for
joins.py      matches of changed rows, and the heaviest keys
sizes.py      the state tables of a node, scaled up
estimate.py   all nodes of a plan
history.py    what kept epochs of a view that is there hold
report.py     the answer
text.py       the answer as text

With every row in the samples the answer is exact. Else rows are scaled by what they stand for:
those of a table by its share, pairs of a join by the product, groups by an estimate of distinct
values; never beyond what is possible.
"""

from belvedere.cost.estimate import estimate
from belvedere.cost.history import history_cost
from belvedere.cost.report import (
    Cost,
    HeavyKey,
    HistoryCost,
    JoinCost,
    JoinSide,
    NodeCost,
    SampledTable,
    StateSize,
)

__all__ = [
    "Cost",
    "HeavyKey",
    "HistoryCost",
    "JoinCost",
    "JoinSide",
    "NodeCost",
    "SampledTable",
    "StateSize",
    "estimate",
    "history_cost",
]
