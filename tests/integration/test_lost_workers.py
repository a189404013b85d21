"""Workers of Spark that are killed again and again: a job is run again a few times, then it is told
what happened.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.epochs.width import Width
from belvedere.errors import PipelineError
from belvedere.spark.failures import job_failure
from belvedere.spark.frames import Batches, map_in_arrow
from belvedere.spark.runner import Job, SparkRunner

TRIES = 4  # of a task, by Spark in our sessions
JOB = Job("this job", "a job of a test", lambda report: job_failure("this job", report))


def run(db: belvedere.Database, spark: SparkSession, tries: Path, deadly: int) -> list[int]:
    """A job whose worker is killed in so many of its tries."""
    tries.mkdir()

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        number = len(os.listdir(tries))
        (tries / str(number)).touch()
        if number < deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    frame = map_in_arrow(spark.range(0, 3, 1, 1), task, "id long")
    return [row["id"] for row in SparkRunner(db.store, spark, Width())._rows(frame, JOB)]


@pytest.mark.parametrize("deadly", [1, TRIES, 2 * TRIES])
def test_a_job_whose_workers_are_killed_is_run_again(
    db: belvedere.Database, spark: SparkSession, tmp_path: Path, deadly: int
) -> None:
    assert run(db, spark, tmp_path / "tries", deadly) == [0, 1, 2]
    assert len(os.listdir(tmp_path / "tries")) == deadly + 1


def test_a_job_whose_workers_are_always_killed_fails_with_what_happened(
    db: belvedere.Database, spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match="a worker process of Spark ended: was it killed"):
        run(db, spark, tmp_path / "tries", 100)
    assert len(os.listdir(tmp_path / "tries")) == 3 * TRIES


def test_a_task_that_raises_is_not_run_by_another_job(
    db: belvedere.Database, spark: SparkSession, tmp_path: Path
) -> None:
    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        (tmp_path / f"try-{len(os.listdir(tmp_path))}").touch()
        for number, batch in enumerate(batches):
            assert number // 0
            yield batch

    before = len(os.listdir(tmp_path))
    frame = map_in_arrow(spark.range(0, 3, 1, 1), task, "id long")
    with pytest.raises(PipelineError, match=r"this job failed in Spark: .*ZeroDivisionError"):
        SparkRunner(db.store, spark, Width())._rows(frame, JOB)
    assert len(os.listdir(tmp_path)) == before + TRIES
