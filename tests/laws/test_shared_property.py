"""The master property for views that share parts: they read each other, are built in steps,
replaced and dropped while changes run.
"""

from __future__ import annotations

from tests.laws.law import assert_that_cases_mean_something, cases, first_seed, hold_the_law
from tests.laws.trees.cases import random_shared_case

_LEAST = {
    "something to see": 80,
    "rows came": 35,
    "rows went": 18,
    "crash": 25,
    "epoch load": 95,
    "epoch changes": 90,
    "drop": 15,
}
_LEAST |= {"view on view": 30, "shared": 25, "replaced": 8, "long values": 5}
_MOST_REFUSED = 5


def test_views_that_share_parts_are_the_recomputed_ones_at_every_epoch() -> None:
    seen = hold_the_law(random_shared_case, first_seed(), cases(100))
    assert_that_cases_mean_something(seen, _LEAST, {"refused": _MOST_REFUSED})
