"""The histories of schedules, before the judge that knows nothing of the engine."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from belvedere.consistency import Verdict, check
from belvedere.consistency.history import history_of
from belvedere.epochs.rules import Rules
from belvedere.stores import memory
from belvedere.stores.memory import RowRules
from tests.simulation.mixes import Mix, at, mixes
from tests.simulation.schedule import Outcome, run
from tests.simulation.test_row_rules import FOUND
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


def slots(**off: bool) -> Switches:
    return Switches(memory.Rules(**off))


def engine(**off: bool) -> Switches:
    return Switches(engine=Rules(**off))


def rows(**off: bool) -> Switches:
    return Switches(rows=RowRules(**off))


def _name(value: object) -> str:
    if not isinstance(value, Switches):
        return str(value)
    off = [
        field.name
        for rules in (value.store, value.rows, value.engine)
        for field in fields(rules)
        if not getattr(rules, field.name)
    ]
    return "-".join([*off, *value.substituted])


@pytest.mark.parametrize(
    ("name", "switches", "first"),
    [
        ("attempts", slots(keep_before=False), 0),
        ("attempts", slots(tombstones=False), 0),
        ("late", slots(abort_beyond_epoch=False), 2),
        ("late", slots(slot_floor=False), 4),
        ("coordinators", slots(history_floor=False), 0),
        ("bursts", slots(trim_error=False), 8),
        ("duels", engine(one_intent=False), 78),
        ("creation", engine(join_between=False), 0),
        ("creation", engine(watermark=False), 1),
        ("attempts", Switches(substituted=("log_to_its_end",)), 0),
        ("drops", Switches(substituted=("late_names",)), 0),
        ("readers", Switches(substituted=("sinks_without_exchange",)), 1),
        *((FOUND[rule][0], rows(**{rule: False}), 0) for rule in FOUND),
    ],
    ids=_name,
)
def test_a_rule_that_is_off_is_convicted_with_a_readable_witness(
    name: str, switches: Switches, first: int
) -> None:
    """`first` is a schedule from which on it is shown soon."""
    mix = mixes()[name] if switches.rows == RowRules() else at(mixes()[name], "rows")
    for seed in range(first, first + 400):
        outcome = run(mix, seed, switches)
        if outcome.violation is None:
            continue
        wrong = [v for v in check(history_of(outcome.lines), "strong") if v.missed]
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
