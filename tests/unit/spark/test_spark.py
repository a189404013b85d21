"""What is looked at before a session or a task begins."""

from __future__ import annotations

import re
from typing import Any

import pytest

import belvedere
from belvedere.errors import PipelineError
from belvedere.spark import runner
from belvedere.spark.session import session


@pytest.mark.parametrize("wanted", ["abc", "-5", "20", ""])
def test_a_wrong_priority_is_refused_with_what_to_give(
    monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    monkeypatch.setenv("BELVEDERE_NICE", wanted)
    with pytest.raises(PipelineError, match="give a number from 0 to 19"):
        runner._give_way()


@pytest.mark.parametrize(
    "master", ["nonsense", "", "local[", "local[2", "spark:/host:7077", "localhost:7077"]
)
def test_a_wrong_master_is_refused_before_java_starts(master: str) -> None:
    with pytest.raises(PipelineError, match=r"is no Spark master: give local\[\*\]"):
        session(master)
    with pytest.raises(PipelineError, match=r"is no Spark master"):
        belvedere.open("memory:", master=master)


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        (
            {"driver.memory": "2g"},
            "'driver.memory' is no setting of Spark: their names begin with spark.",
        ),
        ({"spark.driver memory": "2g"}, "is no setting of Spark"),
        ({"": "2g"}, "is no setting of Spark"),
        ({7: "2g"}, "is no setting of Spark"),
        (
            {"spark.driver.memory": 2},
            "the value of spark.driver.memory is text: give '2' as a str, not a int",
        ),
        ({"spark.master": "local[2]"}, "spark.master cannot be set: it is given as the master"),
        ({"spark.sql.session.timeZone": "Europe/Berlin"}, "what a view computes depends on it"),
        (["spark.driver.memory=2g"], "settings of Spark are a dict"),
    ],
)
def test_settings_that_spark_would_not_take_are_refused_when_the_database_is_opened(
    conf: Any, told: str
) -> None:
    with pytest.raises(PipelineError, match=re.escape(told)):
        belvedere.open("memory:", spark_conf=conf)


def test_settings_are_not_for_a_session_that_is_given() -> None:
    given: Any = object()
    with pytest.raises(PipelineError, match="spark_conf is for a session of our own"):
        belvedere.open("memory:", spark=given, spark_conf={"spark.driver.memory": "2g"})
