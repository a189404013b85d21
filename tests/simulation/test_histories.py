"""The histories of schedules, before the judge that knows nothing of the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from belvedere.consistency import Verdict, check
from belvedere.consistency.history import history_of
from belvedere.epochs.rules import Rules
from belvedere.stores import memory
from tests.simulation.mixes import Mix, at, mixes
from tests.simulation.schedule import Outcome, run
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


ALWAYS_THERE = ("totals", "extremes", "selection", "by_group", "groups", "overall")  # no errors


def complete(name: str, place: str) -> Mix:
    """The faults of a mix, with complete views that stay until the end."""
    return replace(at(mixes()[name], place), level="complete", views=ALWAYS_THERE, creations=0)


def skipping(outcome: Outcome) -> list[Verdict]:
    """Views that whoever looked after every commit has not seen after every transaction."""
    found = check(history_of(outcome.lines), "complete")
    return [verdict for verdict in found if verdict.by == "commits"]


@pytest.mark.parametrize("place", ["slots", "rows", "slots, 3 streams"])
@pytest.mark.parametrize("name", ["attempts", "coordinators", "duels"])
def test_complete_views_show_every_transaction_whatever_fails(name: str, place: str) -> None:
    for seed in range(3):
        outcome = run(complete(name, place), seed)
        assert outcome.violation is None, outcome.report()
        assert sum(line.get("by") == "commits" for line in outcome.lines) > 5
        assert skipping(outcome) == []


def test_two_transactions_in_one_epoch_are_convicted_with_a_readable_witness() -> None:
    rules = Switches(engine=Rules(one_by_one=False))
    for seed in range(5):
        wrong = skipping(run(complete("attempts", "slots"), seed, rules))
        if wrong:
            assert wrong[0].missed == "complete"
            assert "is never shown" in wrong[0].why
            assert "operation" in wrong[0].why
            return
    raise AssertionError("no schedule shows it")
