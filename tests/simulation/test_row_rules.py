"""The rules of a store without slot transactions: with any one off, some schedule shows a wrong view
or a wrong read. Two that schedules hardly find are in `tests/unit/stores/test_row_rules.py`.
"""

from __future__ import annotations

from dataclasses import fields

import pytest

from belvedere.epochs.rules import Rules
from belvedere.stores.memory import RowRules
from tests.simulation.test_rules import found
from tests.simulation.world import Switches

# rule: the mix in which it is found when it is off, and what the violation is like
FOUND = {
    "as_of": ("late", ""),
    "tombstones": ("late", ""),
    "look_after_reading": ("attempts", "reader"),
    "keep_newest": ("late", ""),
    "exact_removal": ("late", ""),
    "fence": ("late", ""),
}
BUILT = {"look_before_writing", "fence_grows"}


@pytest.mark.parametrize("rule", FOUND)
def test_a_rule_of_rows_that_is_off_is_noticed(rule: str) -> None:
    mix, like = FOUND[rule]
    found(mix, Switches(rows=RowRules(**{rule: False})), like=like, place="rows")


def test_history_that_is_removed_before_the_floor_is_raised_is_noticed() -> None:
    found("attempts", Switches(engine=Rules(floor_first=False)), like="reader", place="rows")


def test_every_rule_is_shown_to_be_needed() -> None:
    assert {f.name for f in fields(RowRules)} == set(FOUND) | BUILT
