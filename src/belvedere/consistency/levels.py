"""The four levels, and verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.errors import HistoryError

CONVERGENT, WEAK, STRONG, COMPLETE = LEVELS = ("convergent", "weak", "strong", "complete")
RECORD, WHOLE = "record", "whole view"


class Undecided(Exception):
    """A search that would take too long: nothing is known."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one observer's states of a view, or of one of its records, amount to.

    `reached` is the highest level that holds, None if not even the lowest does. `missed` is the
    first level that is violated, `why` says how. `unknown` says why a level could not be decided.
    """

    view: str
    scope: str
    record: tuple[Any, ...] | None
    by: str
    reached: str | None
    missed: str | None = None
    why: str = ""
    unknown: str = ""
    witness: str = ""

    def holds(self, level: str) -> bool | None:
        """Whether a level holds; None if that is not known."""
        wanted = LEVELS.index(level)
        if self.reached is not None and LEVELS.index(self.reached) >= wanted:
            return True
        if self.missed is not None and LEVELS.index(self.missed) <= wanted:
            return False
        return None

    @property
    def subject(self) -> str:
        named = f"view {self.view}"
        if self.record is not None:
            named += f", record {', '.join(map(str, self.record))}"
        return f"{named}, seen by {self.by}"


def check_level(level: str) -> str:
    if level not in LEVELS:
        raise HistoryError(f"{level!r} is no level: use one of {', '.join(LEVELS)}")
    return level
