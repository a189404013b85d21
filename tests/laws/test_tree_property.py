"""The master property for trees: joins, set operations, subqueries, aggregates of aggregates and
top-k, put together at random.

Deep queries over up to three tables; see test_shared_property.py for many views that share parts.
`BELVEDERE_LAW_CASES` looks longer.
"""

from __future__ import annotations

import pytest

from tests.laws.law import assert_that_cases_mean_something, cases, first_seed, hold_the_law
from tests.laws.trees.cases import random_tree_case

_LEAST = {
    "something to see": 66,
    "rows came": 24,
    "rows went": 14,
    "crash": 25,
    "epoch load": 90,
    "epoch changes": 90,
}
_LEAST |= {
    "inner join": 20,
    "left join": 12,
    "right join": 6,
    "full join": 12,
    "semi join": 6,
    "anti join": 6,
    "using": 5,
    "comma": 10,
}
_LEAST |= {
    "grouped": 25,
    "top-k": 6,
    "rank": 1,
    "limit": 8,
    "distinct": 8,
    "in": 5,
    "not in": 1,
    "exists": 4,
    "not exists": 1,
    "cte": 8,
}
_LEAST |= {
    "union all": 3,
    "union": 1,
    "intersect": 1,
    "intersect all": 1,
    "except all": 1,
    "self-join": 10,
    "view on view": 6,
}
_LEAST |= {"parentheses": 8, "long values": 5}
_MOST_REFUSED = 3


def test_a_maintained_tree_is_the_recomputed_one_at_every_epoch() -> None:
    seen = hold_the_law(random_tree_case, first_seed(), cases(150))
    assert_that_cases_mean_something(seen, _LEAST, {"refused": _MOST_REFUSED})


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_always_gives_the_same_case(seed: int) -> None:
    assert repr(random_tree_case(seed)) == repr(random_tree_case(seed))
