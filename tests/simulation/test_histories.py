"""The histories of schedules, before the judge that knows nothing of the engine."""

from __future__ import annotations

import pytest

from belvedere.consistency import check
from belvedere.consistency.history import history_of
from belvedere.epochs.rules import Rules
from belvedere.stores import memory
from tests.simulation.mixes import at, mixes
from tests.simulation.schedule import run
from tests.simulation.world import Switches


@pytest.mark.parametrize("place", ["slots", "slots, 3 streams"])
@pytest.mark.parametrize("name", ["attempts", "coordinators", "creation", "everything"])
def test_with_all_rules_on_every_history_is_strong(name: str, place: str) -> None:
    for seed in range(2):
        outcome = run(at(mixes()[name], place), seed)
        history = history_of(outcome.lines)
        assert len(history.states) > 5
        wrong = check(history, "strong")
        assert not wrong, wrong[0].witness or wrong[0]


@pytest.mark.parametrize(
    ("name", "switches"),
    [
        ("attempts", Switches(memory.Rules(keep_before=False))),
        ("duels", Switches(engine=Rules(one_intent=False))),
    ],
)
def test_a_rule_that_is_off_is_convicted_with_a_readable_witness(
    name: str, switches: Switches
) -> None:
    for seed in range(400):
        outcome = run(mixes()[name], seed, switches)
        if outcome.violation is None or "too much" not in outcome.violation:
            continue
        wrong = check(history_of(outcome.lines), "strong")
        if not wrong:
            continue  # a stale state that the reader alone cannot tell from one that was right
        assert "is violated at whole view level: view" in wrong[0].witness
        assert len(wrong[0].witness.splitlines()) < 12
        return
    raise AssertionError("no schedule shows it")
