"""Every algorithm keeps its level in all schedules, and does no better in some.

Schedules have sources with a log and answers that run apart, up to three crashes, and processes
that are late; a third of them is as calm as the paper's. `make soak-warehouse SCHEDULES=2000` plays
more of them and prints the table.
"""

from __future__ import annotations

from collections import Counter

import pytest

from belvedere.consistency import judge
from belvedere.consistency.history import history_of
from belvedere.consistency.levels import COMPLETE
from tests.warehouse.histories import lines
from tests.warehouse.levels import DIVERGES, reached
from tests.warehouse.spectrum import ALGORITHMS, KINDS, REACHES, tally
from tests.warehouse.worlds import LOCAL, SINGLE, Kind, world

SCHEDULES = range(200)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_worst_of_all_schedules_is_the_level_of_the_table(algorithm: str, kind: str) -> None:
    found = tally(algorithm, Kind(kind), SCHEDULES)
    assert found.worst == REACHES[algorithm][KINDS.index(kind)], str(found)


def test_asof_is_complete_for_views_without_keys() -> None:
    assert tally("asof", Kind(LOCAL, keys=False), SCHEDULES).worst == COMPLETE


@pytest.mark.parametrize("kind", [SINGLE, LOCAL])
def test_asof_is_complete_for_views_that_read_a_relation_twice(kind: str) -> None:
    assert tally("asof", Kind(kind, places=("xx",), twice=True), SCHEDULES).worst == COMPLETE


def test_crashes_come_at_every_place_where_they_could_do_harm() -> None:
    happened: Counter[str] = Counter()
    for algorithm in ("t-strobe", "c-strobe", "asof"):
        happened += tally(algorithm, Kind(LOCAL, crash=0.1), range(250)).happened
    missing = {
        "crashes before an append",
        "crashes after an append",
        "crashes after an apply",
        "late applies refused",
        "conflicts",
    } - set(happened)
    assert not missing, happened


@pytest.mark.parametrize("algorithm", ["conventional", "strobe", "t-strobe", "c-strobe", "asof"])
def test_the_command_that_judges_histories_agrees(algorithm: str) -> None:
    """What is decided here with the judge's levels over states of the sources is the same as what
    `belvedere check` says of the history, where DuckDB evaluates the view.
    """
    for seed in range(12):
        played = world(seed, Kind((SINGLE, LOCAL)[seed % 2]), ALGORITHMS[algorithm]).run()
        [verdict] = judge(history_of(lines(played)), explain=False)
        assert not verdict.unknown
        assert (verdict.reached or DIVERGES) == reached(played), seed
