"""What a task does before it works."""

from __future__ import annotations

import pytest

from belvedere.errors import PipelineError
from belvedere.pipeline import spark


@pytest.mark.parametrize("wanted", ["abc", "-5", "20", ""])
def test_a_wrong_priority_is_refused_with_what_to_give(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("BELVEDERE_NICE", wanted)
    with pytest.raises(PipelineError, match="give a number from 0 to 19"):
        spark._give_way()
