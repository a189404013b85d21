"""The line that `belvedere run` shows: what the pipeline waits for, and that it is never itself."""

from __future__ import annotations

import os

import pytest

from belvedere.cli.run import line
from belvedere.database import Database
from belvedere.errors import Timeout
from belvedere.pipeline.handle import AWAITING_LEASE
from belvedere.readers.waiting import wait_until
from tests.unit.pipeline.held import LONG, MANY, Held


def test_before_its_first_epoch_a_pipeline_does_not_wait_for_itself(held_db: Database, held: Held) -> None:
    pipeline = held_db.start()
    assert held.entered.acquire(timeout=LONG)
    assert f"pid {os.getpid()}" in held_db.status().coordinator
    assert line(held_db, pipeline) == "epoch 0 · 0 of 1 view live · 10 operations behind"
    assert not pipeline.status.is_waiting
    held.let_go.release(MANY)
    assert wait_until(lambda: "up to date" in line(held_db, pipeline) or None, LONG)


def test_a_second_pipeline_says_that_it_waits_and_then_that_it_works(
    held_db: Database, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = held_db.start()
    assert held.entered.acquire(timeout=LONG)
    second = held_db.start()
    assert wait_until(lambda: second.status.message == AWAITING_LEASE or None, LONG)
    assert second.status.is_waiting
    assert "waiting" not in line(held_db, second)  # the first one is in this process, which does not name itself
    monkeypatch.setattr("belvedere.cli.run.this_process", lambda: "elsewhere pid 1")
    assert f"waiting until {held_db.status().coordinator} ends" in line(held_db, second)
    with pytest.raises(Timeout):
        first.stop(0)  # with the epoch under way, which leaves the view to be loaded
    held.let_go.release()
    assert held.entered.acquire(timeout=LONG)
    assert first.await_termination(LONG)
    assert second.status.message == "running epochs"
    assert "waiting" not in line(held_db, second)
