"""The line that `belvedere run` shows: what the pipeline waits for, and that it is never itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from belvedere.cli.run import line
from belvedere.database import Database
from belvedere.pipeline.handle import AWAITING_LEASE
from belvedere.pipeline.intent import Intent
from belvedere.pipeline.local import LocalRunner
from belvedere.pipeline.manager import Ack
from belvedere.readers.waiting import wait_until

LONG, MANY = 60.0, 100


class Held:
    """A runner that waits inside every epoch until it is let go."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Semaphore(0), threading.Semaphore(0)
        self.inner: LocalRunner | None = None

    def run(self, intent: Intent) -> list[Ack]:
        self.entered.release()
        assert self.let_go.acquire(timeout=LONG)
        assert self.inner is not None
        return self.inner.run(intent)


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def db(held: Held) -> Iterator[Database]:
    with Database("memory:", runner=held) as found:
        held.inner = LocalRunner(found.store)
        found.sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        found.table("t").put_many([{"id": i} for i in range(10)])
        yield found
        held.let_go.release(MANY)


def test_before_its_first_epoch_a_pipeline_does_not_wait_for_itself(db: Database, held: Held) -> None:
    pipeline = db.start()
    assert held.entered.acquire(timeout=LONG)
    assert f"pid {os.getpid()}" in db.status().coordinator
    assert line(db, pipeline) == "epoch 0 · 0 of 1 view live · 10 operations behind"
    assert not pipeline.status.is_waiting
    held.let_go.release(MANY)
    assert wait_until(lambda: "up to date" in line(db, pipeline) or None, LONG)


def test_a_second_pipeline_says_that_it_waits_and_then_that_it_works(
    db: Database, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = db.start()
    assert held.entered.acquire(timeout=LONG)
    second = db.start()
    assert wait_until(lambda: second.status.message == AWAITING_LEASE or None, LONG)
    assert second.status.is_waiting
    assert "waiting" not in line(db, second)  # the first one is in this process, which does not name itself
    monkeypatch.setattr("belvedere.cli.run.this_process", lambda: "elsewhere pid 1")
    assert f"waiting until {db.status().coordinator} ends" in line(db, second)
    first.stop(0)  # with the epoch under way, which leaves the view to be loaded
    held.let_go.release()
    assert held.entered.acquire(timeout=LONG)
    assert first.await_termination(LONG)
    assert second.status.message == "running epochs"
    assert "waiting" not in line(db, second)
