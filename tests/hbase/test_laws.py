"""The law of maintained views on a real HBase: random views, operations and crashes; after every
epoch each view is the recomputed one.

Fewer cases than elsewhere, because tables of HBase are made in seconds. `BELVEDERE_LAW_CASES` and
`BELVEDERE_LAW_SEED` choose others.
"""

from __future__ import annotations

import pytest

from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.store import HBaseStore
from tests.hbase.stores import memory_base, namespace
from tests.laws.cases import random_case
from tests.laws.law import cases, first_seed
from tests.laws.world import World

pytestmark = pytest.mark.hbase


def test_a_maintained_view_is_the_recomputed_view_at_every_epoch(cluster: Cluster) -> None:
    seed, crashes = first_seed(), 0
    for number in range(seed, seed + cases(8)):
        case = random_case(number)
        url = cluster.url(namespace())
        store = HBaseStore.open(url, slots=case.slots, grace=0, base=memory_base)
        crashes += World(case, opened=store).run()["crash"]
    assert crashes or cases(8) < 8
