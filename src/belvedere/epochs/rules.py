"""Rules of the ledger that tests can switch off, to show that each is needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Switches for tests: with one off, the simulator must find a wrong view."""

    one_intent: bool = True  # R4: an open intent is run, never replaced
    fence: bool = True  # R4: only the current owner writes intents and commits
    join_between: bool = True  # R7: views join between epochs, with what is committed then
    # R3: the floor is raised, and seen by all, before history below it is removed
    floor_first: bool = True
    watermark: bool = True  # R7: a loading view sees changes up to its watermark only
    # while a complete view is live, an epoch has one transaction
    one_by_one: bool = True
