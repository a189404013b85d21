"""With all rules on, no schedule shows a wrong view; with any one off, some schedule does.

A mix is a file in `mixes/`; a seed of a mix is a schedule, and fails again in the same way. R10
(short write transactions) is about LMDB's lock, which the store in memory does not have:
`tests/integration/test_store_kills.py` is about it.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from belvedere.epochs.rules import Rules
from belvedere.stores import memory
from tests.simulation.mixes import PLACES, at, mixes
from tests.simulation.schedule import Outcome, run
from tests.simulation.world import Switches

ATTEMPTS = ("kills", "duplicates", "late attempts")
COORDINATORS = ("coordinator crashes", "coordinator pauses", "coordinators fenced")
STATEMENTS = ("creations", "replacements", "drops")
CLEANING = ("collections", "trims")

# mix: how many schedules, and what must have happened in them
ALL_ON: dict[str, tuple[int, tuple[str, ...]]] = {
    "calm": (20, ("reads", *STATEMENTS, *CLEANING)),
    "attempts": (40, ("reads", "outputs lost", *ATTEMPTS, *CLEANING)),
    "coordinators": (40, ("reads", *COORDINATORS)),
    "creation": (40, ("reads", "long reads", *STATEMENTS, *ATTEMPTS, *COORDINATORS, *CLEANING)),
    "delta": (40, ("reads", *STATEMENTS, *ATTEMPTS)),
    "readers": (25, ("reads", "long reads", *STATEMENTS)),
    "everything": (
        45,
        ("reads", "long reads", "outputs lost", *STATEMENTS, *ATTEMPTS, *COORDINATORS, *CLEANING),
    ),
    "late": (25, ATTEMPTS),
    "bursts": (25, ATTEMPTS),
    "drops": (20, ("reads", *STATEMENTS)),
    "duels": (20, COORDINATORS),
    "sums": (15, ("outputs lost", *ATTEMPTS)),
}


def test_at_least_300_schedules_are_run_and_every_mix_is_among_them() -> None:
    assert set(ALL_ON) == set(mixes())
    assert sum(count for count, _ in ALL_ON.values()) >= 300


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ALL_ON)
def test_with_all_rules_on_every_view_and_every_reader_is_right(name: str, place: str) -> None:
    schedules, faults = ALL_ON[name]
    counts: Counter[str] = Counter()
    for seed in range(schedules if place == "slots" else schedules // 4):
        outcome = run(at(mixes()[name], place), seed)
        assert outcome.violation is None, outcome.report()
        counts += outcome.counts
    if place == "slots":  # elsewhere there are fewer schedules
        assert not [fault for fault in faults if not counts[fault]], (
            f"never happened, so nothing was shown: {counts}"
        )


def test_a_seed_is_a_schedule() -> None:
    first, second = (run(mixes()["everything"], 7) for _ in range(2))
    assert first.trace == second.trace
    assert first.trace != run(mixes()["everything"], 8).trace


def found(
    mix: str,
    switches: Switches,
    seeds: int = 400,
    like: str = "",
    place: str = "slots",
    first: int = 0,
) -> Outcome:
    """The first schedule with a violation (of which the text matches `like`); `first` is one from
    which on it is found soon.
    """
    for seed in range(first, first + seeds):
        outcome = run(at(mixes()[mix], place), seed, switches)
        if outcome.violation is not None and re.search(like, outcome.violation):
            return outcome
    raise AssertionError(f"{seeds} schedules of mix {mix} without the rule, and nobody noticed")


# ---------------------------------------------------------------- R1 to R3: the store


def test_r1_an_attempt_from_the_past_that_only_loses_single_writes_is_noticed() -> None:
    found("late", Switches(memory.Rules(abort_beyond_epoch=False)))


def test_r2_deletes_without_tombstones_are_noticed() -> None:
    found("attempts", Switches(memory.Rules(tombstones=False)))


def test_r2_a_second_write_that_forgets_the_value_before_is_noticed() -> None:
    found("attempts", Switches(memory.Rules(keep_before=False)))


def test_r3_attempts_that_do_not_look_at_the_slots_floors_are_noticed() -> None:
    """The check of single records is still on: what it cannot see are tombstones that were
    collected.
    """
    found("late", Switches(memory.Rules(slot_floor=False)))


def test_r3_readers_that_do_not_look_at_the_history_floor_are_noticed() -> None:
    found("coordinators", Switches(memory.Rules(history_floor=False)), like="reader")


# ---------------------------------------------------------------- R4: one place decides


def test_r4_two_intents_for_one_epoch_are_noticed() -> None:
    found("duels", Switches(engine=Rules(one_intent=False)), first=15)


def test_r4_coordinators_that_commit_without_the_current_fence_are_noticed() -> None:
    """Two switches: while an epoch has one intent, known by its id, a commit by anybody is the
    right one.

    So the fence is looked for without that rule, by what only a coordinator without the lease can
    do: the head goes back.
    """
    found(
        "duels",
        Switches(engine=Rules(one_intent=False, fence=False)),
        like="is followed by|goes back",
    )


# ---------------------------------------------------------------- R5: determinism


def test_r5_attempts_that_read_the_log_to_its_end_are_noticed() -> None:
    found("attempts", Switches(substituted=("log_to_its_end",)))


def test_r5_sums_that_depend_on_the_order_of_additions_are_noticed() -> None:
    """Not by a last bit that is wrong, but by attempts that disagree: a row under a sum that nobody
    takes back.
    """
    found("sums", Switches(substituted=("rounded_sums",), last_bits=False), first=58)


# ---------------------------------------------------------------- R6: readers, pins, the trimmed log


def test_r6_a_trimmed_log_that_reads_as_empty_is_noticed() -> None:
    """Only an attempt that has read a part of its log when the rest is trimmed does harm that the
    floors do not stop.
    """
    found("bursts", Switches(memory.Rules(trim_error=False)))


def test_r6_readers_that_look_names_up_after_they_took_the_epoch_are_noticed() -> None:
    found("drops", Switches(substituted=("late_names",)), like="a reader")


def test_r6_readers_that_do_not_look_again_whether_their_views_are_there_are_noticed() -> None:
    found("drops", Switches(substituted=("no_second_look",)), like="a reader")


def test_r6_collection_that_does_not_respect_pins_is_noticed() -> None:
    found("readers", Switches(substituted=("unseen_pins",)), like="pinned reader")


# ---------------------------------------------------------------- R7: creation


def test_r7_views_that_load_what_is_logged_and_not_what_is_committed_are_noticed() -> None:
    found("creation", Switches(engine=Rules(join_between=False)))


def test_r7_loading_views_that_see_changes_beyond_their_watermark_are_noticed() -> None:
    found("creation", Switches(engine=Rules(watermark=False)))


def test_r7_state_tables_that_are_used_again_are_noticed() -> None:
    found("creation", Switches(substituted=("ids_again",)), first=70)


# ---------------------------------------------------------------- R8, R9: sinks, errors


def test_r8_sinks_without_an_exchange_are_noticed() -> None:
    found("readers", Switches(substituted=("sinks_without_exchange",)))


def test_r9_a_row_that_raises_and_stops_all_views_is_noticed() -> None:
    found("coordinators", Switches(substituted=("raising_rows",)), like="never commits", first=16)
