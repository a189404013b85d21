"""With any one rule off, some schedule shows a view that is worse than its algorithm promises.

`warehouse/rules.py` says what each rule is about, `docs/decisions/040-strobe-family.md`
why the first group differs from what the paper prints.
"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from belvedere.warehouse.rules import ALL, Rules
from tests.warehouse.levels import ORDER, reached
from tests.warehouse.spectrum import ALGORITHMS, KINDS, REACHES
from tests.warehouse.world import ALL_CARE, Care, World
from tests.warehouse.worlds import GLOBAL, LOCAL, SINGLE, Kind, world

_SEEDS = 4_000
# a transaction at one source with two relations of a view
NEIGHBOURS = ("xxy", "xyx", "xyy")
CRASHES = Kind(LOCAL, crash=0.1)
LOOKUPS = Kind(SINGLE, project=False, places=("xy",), lookup=True)

# rule: the algorithm that breaks without it, and in which worlds
CONVICTIONS: dict[str, tuple[str, Kind]] = {
    "pending": ("strobe", Kind(SINGLE)),
    "whole_answers": ("strobe", Kind(SINGLE)),
    "same_relation": ("t-strobe", Kind(LOCAL, places=NEIGHBOURS)),
    "parts_as_they_come": ("g-strobe", Kind(GLOBAL)),
    "compensate": ("c-strobe every 3", Kind(LOCAL)),
    "later_deletions": ("c-strobe", Kind(SINGLE)),
    "whole_rows": ("c-strobe", Kind(SINGLE, project=True)),
    "closed_cuts": ("c-strobe", Kind(GLOBAL)),
    "waiting_deletions": ("t-strobe with key knowledge", LOOKUPS),
    "fresh": ("strobe", Kind(SINGLE)),
    "wait": ("strobe", Kind(SINGLE)),
    "remember_unseen": ("t-strobe", Kind(SINGLE, lag=0.9, crash=0.08)),
    "incarnations": ("t-strobe", CRASHES),
}
# the guards, for each family of algorithms
GUARDED = [
    ("t-strobe", Kind(LOCAL)),
    ("c-strobe", Kind(SINGLE)),
    ("asof", Kind(LOCAL)),
]
CARELESS = {"spool_first": "t-strobe", "one_record": "asof", "expected": "asof"}


def convict(algorithm: str, kind: Kind, rules: Rules = ALL, care: Care = ALL_CARE) -> World:
    """The first world whose view is worse than promised."""
    promised = REACHES[algorithm][KINDS.index(kind.transactions)]
    for seed in range(_SEEDS):
        played = world(seed, kind, ALGORITHMS[algorithm], rules, care).run()
        if ORDER.index(reached(played)) < ORDER.index(promised):
            return played
    raise AssertionError(f"{_SEEDS} schedules of {algorithm} without the rule, all {promised}")


def test_every_rule_has_a_conviction() -> None:
    assert {field.name for field in fields(Rules)} == set(CONVICTIONS)
    assert {field.name for field in fields(Care)} == set(CARELESS)


@pytest.mark.parametrize("rule", CONVICTIONS)
def test_without_the_rule_some_view_is_worse(rule: str) -> None:
    algorithm, kind = CONVICTIONS[rule]
    convict(algorithm, kind, replace(ALL, **{rule: False}))


@pytest.mark.parametrize(("algorithm", "kind"), GUARDED, ids=lambda v: str(v)[:8])
@pytest.mark.parametrize("guard", ["fresh", "wait"])
def test_both_guards_are_needed_by_every_family(guard: str, algorithm: str, kind: Kind) -> None:
    convict(algorithm, kind, replace(ALL, **{guard: False}))


@pytest.mark.parametrize("what", CARELESS)
def test_without_care_for_crashes_some_view_is_worse(what: str) -> None:
    convict(CARELESS[what], CRASHES, care=replace(ALL_CARE, **{what: False}))


def test_key_knowledge_saves_queries_and_keeps_the_level() -> None:
    asked = {}
    for algorithm in ("t-strobe", "t-strobe with key knowledge"):
        worlds = [world(seed, LOOKUPS, ALGORITHMS[algorithm]).run() for seed in range(500)]
        assert min(map(reached, worlds), key=ORDER.index) == REACHES[algorithm][0]
        asked[algorithm] = sum(played.asked for played in worlds)
    assert asked["t-strobe with key knowledge"] < asked["t-strobe"]


def test_asof_needs_closed_cuts_too() -> None:
    convict("asof", Kind(GLOBAL), replace(ALL, closed_cuts=False))
