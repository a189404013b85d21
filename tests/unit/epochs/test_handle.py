"""The handle of a pipeline: what stop and close promise, also when an epoch takes long and in a
forked process.
"""

from __future__ import annotations

import os
import signal

import pytest

from belvedere.database import Database
from belvedere.errors import PipelineError, Timeout
from tests.unit.epochs.held import LONG, MANY, Held


def test_a_stop_that_takes_too_long_says_so_and_can_be_repeated(
    held_db: Database, held: Held
) -> None:
    pipeline = held_db.start()
    assert held.entered.acquire(timeout=LONG)
    with pytest.raises(Timeout, match=r"after 0.01 s an epoch is still under way"):
        pipeline.stop(0.01)
    assert pipeline.status.is_active
    held.let_go.release(MANY)
    pipeline.stop(LONG)
    assert not pipeline.status.is_active


def test_close_stops_every_pipeline_that_was_started(held_db: Database, held: Held) -> None:
    held.let_go.release(MANY)
    pipelines = [held_db.start(), held_db.start()]
    held_db.close()
    assert [p.status.message for p in pipelines] == ["stopped", "stopped"]


def test_a_forked_process_closes_its_database_without_waiting_for_the_pipeline(
    held_db: Database, held: Held
) -> None:
    pipeline = held_db.start()
    assert held.entered.acquire(timeout=LONG)
    child = os.fork()
    if child == 0:
        signal.alarm(int(LONG))  # a child that waits is killed, and the parent sees it
        try:
            pipeline.stop()
        except PipelineError as error:
            held_db.close()
            os._exit(0 if f"runs in process {os.getppid()}" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert pipeline.status.is_active
    held.let_go.release(MANY)
    pipeline.stop(LONG)


def test_objects_say_what_they_are(held_db: Database, held: Held) -> None:
    held.let_go.release(MANY)
    pipeline = held_db.start("available_now")
    assert pipeline.await_termination(LONG)
    shown = [repr(found) for found in (held_db, held_db.table("t"), held_db.view("v"), pipeline)]
    url = held_db.store.url
    assert shown == [
        f"<Database {url}>",
        f"<Table t of {url}>",
        f"<View v of {url}>",
        f"<Pipeline of {url}: stopped>",
    ]
