"""What is looked at before a session or a task begins."""

from __future__ import annotations

import pytest

import belvedere
from belvedere.errors import PipelineError
from belvedere.pipeline import spark
from belvedere.pipeline.session import session


@pytest.mark.parametrize("wanted", ["abc", "-5", "20", ""])
def test_a_wrong_priority_is_refused_with_what_to_give(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("BELVEDERE_NICE", wanted)
    with pytest.raises(PipelineError, match="give a number from 0 to 19"):
        spark._give_way()


@pytest.mark.parametrize("master", ["nonsense", "", "local[", "local[2", "spark:/host:7077", "localhost:7077"])
def test_a_wrong_master_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(PipelineError, match=r"is no Spark master: give local\[\*\]"):
        session(master)
    with pytest.raises(PipelineError, match=r"is no Spark master"):
        belvedere.open("memory:", master=master)
