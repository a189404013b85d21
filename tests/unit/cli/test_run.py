"""The line that `belvedere run` shows: what the pipeline waits for, and that it is never itself."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from belvedere.cli.noted import say
from belvedere.cli.run import line
from belvedere.database import Database
from belvedere.epochs.handle import AWAITING_LEASE
from belvedere.errors import Timeout
from belvedere.waiting import wait_until
from tests.unit.cli.conftest import Cli
from tests.unit.epochs.held import LONG, MANY, Held


def test_before_its_first_epoch_a_pipeline_does_not_wait_for_itself(
    held_db: Database, held: Held
) -> None:
    pipeline = held_db.start()
    assert held.entered.acquire(timeout=LONG)
    assert f"pid {os.getpid()}" in held_db.status().coordinator
    assert line(held_db, pipeline).startswith(
        "epoch 1 · 0 of 1 view live · loading 0 of about 10 · last epoch"
    )
    assert not pipeline.status.is_waiting
    held.let_go.release(MANY)
    assert wait_until(lambda: "up to date" in line(held_db, pipeline) or None, LONG)


def test_nothing_is_up_to_date_before_every_view_is_live(held_db: Database, held: Held) -> None:
    held_db.table("t").put_many([{"id": i} for i in range(100)])
    pipeline = held_db.start(max_rows=10)
    seen = []
    while not held_db.status().views[0].is_live:
        held.let_go.release()
        seen.append(line(held_db, pipeline))
        [view] = held_db.status().views
        if not view.is_live:
            assert view.lag_seconds > 0
            assert view.lag_operations >= view.total_rows - view.loaded_rows
    assert not [text for text in seen[:-1] if "up to date" in text]
    assert any("of about 100, about" in text for text in seen)
    held.let_go.release(MANY)
    assert wait_until(lambda: "up to date" in line(held_db, pipeline) or None, LONG)


def test_a_second_pipeline_says_that_it_waits_and_then_that_it_works(
    held_db: Database, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = held_db.start(max_rows=5)
    assert held.entered.acquire(timeout=LONG)
    second = held_db.start(max_rows=5)
    assert wait_until(lambda: second.status.message == AWAITING_LEASE or None, LONG)
    assert second.status.is_waiting
    # the first one is in this process, which does not name itself
    assert "waiting" not in line(held_db, second)
    monkeypatch.setattr("belvedere.cli.run.this_process", lambda: "elsewhere pid 1")
    assert f"waiting until {held_db.status().coordinator} ends" in line(held_db, second)
    with pytest.raises(Timeout):
        first.stop(0)  # with the epoch under way, which leaves half of the view to be loaded
    held.let_go.release()
    assert held.entered.acquire(timeout=LONG)
    assert first.await_termination(LONG)
    assert second.status.message == "running epochs"
    assert "waiting" not in line(held_db, second)


def test_lines_that_stay_begin_with_the_time() -> None:
    file = io.StringIO()
    say(Console(file=file, width=200), "epoch 1 · up to date [not markup]")
    time, text = file.getvalue().rstrip("\n").split(" ", 1)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(time)) < timedelta(minutes=5)
    assert text == "epoch 1 · up to date [not markup]"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("spark.driver.memory", "is not name=value, as in spark.driver.memory=4g"),
        ("=4g", "is not name=value"),
        ("driver.memory=4g", "'driver.memory' is no setting of Spark"),
        ("spark.master=local", "spark.master cannot be set: it is given as the master"),
    ],
)
@pytest.mark.parametrize("command", ["run", "catch-up", "verify"])
def test_wrong_settings_are_refused_before_spark_starts(
    filled: Cli, command: str, given: str, told: str
) -> None:
    result = filled(command, "--conf", given)
    assert result.exit_code in (1, 2)
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_a_setting_is_given_once(filled: Cli) -> None:
    result = filled(
        "catch-up", "--conf", "spark.driver.memory=1g", "--conf", "spark.driver.memory=2g"
    )
    assert "spark.driver.memory is given twice" in result.stderr
