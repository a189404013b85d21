"""Cases that failed once hold now. `tests/conftest.py` lets them run before all other tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.laws import kept_cases
from tests.laws.cases import random_case
from tests.laws.script import Case, Create
from tests.laws.trees.cases import random_shared_case, random_tree_case
from tests.laws.world import World


@pytest.mark.parametrize("path", kept_cases.files(), ids=lambda path: path.stem)
def test_a_case_that_failed_once_holds(path: Path) -> None:
    World(kept_cases.read(path)).run()


@pytest.mark.parametrize("make", [random_case, random_tree_case, random_shared_case])
def test_a_case_is_the_same_when_it_is_read_again(
    make: Callable[[int], Case], tmp_path: Path
) -> None:
    """By its text: NaN is not equal to itself, and -0.0 is equal to 0.0."""
    for seed in range(50):
        case = make(seed)
        path = kept_cases.keep(case, f"a view\nthat is wrong, seed {seed}", tmp_path)
        again = kept_cases.read(path)
        assert _in_order(again) == _in_order(case)
        assert kept_cases.to_text(again, "") == kept_cases.to_text(case, "")
    assert len(kept_cases.files(tmp_path)) == 50


def _in_order(case: Case) -> str:
    """The case as text, with its sets in order: they are in another one in every process."""
    views = [action.view for action in case.script if isinstance(action, Create)]
    shapes = [sorted(view.shapes) for view in views]
    script = (
        replace(a, view=replace(a.view, shapes=frozenset())) if isinstance(a, Create) else a
        for a in case.script
    )
    return repr((shapes, replace(case, script=tuple(script))))


def test_a_file_with_something_else_is_not_passed_over(tmp_path: Path) -> None:
    path = kept_cases.keep(random_case(1), "nothing", tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"run"', '"walk"'), encoding="utf-8")
    with pytest.raises(AssertionError, match="walk"):
        kept_cases.read(path)
