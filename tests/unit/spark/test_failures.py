"""From Spark's report of a failed job to an error that says what happened and what to do."""

from __future__ import annotations

import traceback

import pytest

from belvedere.errors import PipelineError, SchemaError, Stale, StoreFull
from belvedere.spark.failures import failure, told


def report(error: Exception) -> str:
    """What reaches the driver of an error in a task: the worker's traceback between lines of the
    JVM.
    """
    try:
        with told():
            raise error
    except RuntimeError as raised:
        text = "".join(traceback.format_exception(raised))
    return (
        f"An exception was thrown from the Python worker. Please see below.\n{text}\n\tat"
        " org.apache.spark.Runner(x.scala:1)"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            StoreFull("the disk is full: 'slots/001'"),
            "epoch 7 found no room: the disk is full: 'slots/001'. Nothing is lost: make room, ",
        ),
        (
            SchemaError('line one\nline "two"'),
            'epoch 7 failed: line one\nline "two". It is run again',
        ),
        (
            ZeroDivisionError("division by zero"),
            "epoch 7 failed: ZeroDivisionError: division by zero. It is run again",
        ),
        (MemoryError(), "epoch 7 failed: MemoryError: . It is run again"),
    ],
)
def test_the_error_of_a_task_arrives_in_its_own_words(error: Exception, message: str) -> None:
    found = failure(7, report(error))
    assert isinstance(found, PipelineError)
    assert str(found).startswith(message)


def test_a_task_that_comes_too_late_is_told_from_a_failure() -> None:
    assert isinstance(failure(7, report(Stale("slot 1 has moved"))), Stale)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "java.io.IOException: No space left on device\n\tat x",
            "the disk is full, where Spark keeps its temporary files",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat x",
            "was it killed, or out of memory?",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.driver.memory"),
        (
            "org.apache.spark.SparkException: odd\n\tat x",
            "org.apache.spark.SparkException: odd. It is run again",
        ),
    ],
)
def test_troubles_outside_of_tasks_have_a_hint_of_their_own(text: str, message: str) -> None:
    assert message in str(failure(7, text))
