"""Arguments that make no sense are refused at the call, in words, and before Spark is started for
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.epochs.coordinator import Coordinator, EpochReport
from belvedere.errors import BelvedereError, CatalogError, PipelineError, StoreError, Timeout


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as found:
        found.sql(
            "CREATE TABLE t (id BIGINT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT"
            " count(*) AS n FROM t"
        )
        found.table("t").put_many([{"id": i} for i in range(10)])
        yield found


NO_SECONDS: list[Any] = [-1, -0.1, math.nan, math.inf, 1e300, "5", True]


@pytest.mark.parametrize("rows", [0, -1, 1.5, "5", True])
def test_an_epoch_has_at_least_one_row(db: belvedere.Database, rows: Any) -> None:
    for call in (db.catch_up, db.start):
        with pytest.raises(PipelineError, match=r"max_rows is .* use 1 or more"):
            call(max_rows=rows)
    assert db.status().epoch == 0


@pytest.mark.parametrize("seconds", NO_SECONDS)
def test_a_timeout_is_a_number_of_seconds(db: belvedere.Database, seconds: Any) -> None:
    pipeline = db.start("available_now")
    for call in (
        db.catch_up,
        pipeline.stop,
        pipeline.await_termination,
        lambda timeout: pipeline.await_position(1, timeout),
    ):
        with pytest.raises(PipelineError, match=r"timeout is .* use a number of seconds"):
            call(timeout=seconds)
    with pytest.raises(PipelineError, match="timeout is "), db.session(seconds):
        pass
    assert pipeline.await_termination(60)


@pytest.mark.parametrize(
    "trigger",
    [-1, -0.1, math.nan, math.inf, True, "-1 seconds", "soon", "99999999999999 hours", ["5"]],
)
def test_a_trigger_is_an_interval(db: belvedere.Database, trigger: Any) -> None:
    with pytest.raises(PipelineError, match="trigger "):
        db.start(trigger)
    assert db.status().coordinator == ""


def test_arguments_are_checked_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("Spark is not needed to refuse")

    monkeypatch.setattr("belvedere.spark.session.session", started)
    with belvedere.open(tmp_path / "d", slots=1) as db:
        refused: list[dict[str, Any]] = [{"max_rows": 0}, {"trigger": -1}, {"trigger": "soon"}]
        for arguments in refused:
            with pytest.raises(PipelineError):
                db.start(**arguments)
        with pytest.raises(PipelineError):
            db.catch_up(timeout=-1)
        db.sql(
            "CREATE TABLE t (id BIGINT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT"
            " count(*) AS n FROM t"
        )
        with pytest.raises(Timeout, match="a view is still being built"):
            db.catch_up(timeout=0)
        for call in (db.verify, db.repair):
            with pytest.raises(CatalogError, match="the name of a view is text"):
                call(None)  # type: ignore[arg-type]  # refused when called


def test_catching_up_with_no_time_gives_up_at_once_if_there_is_work(db: belvedere.Database) -> None:
    with pytest.raises(Timeout, match="10 operation"):
        db.catch_up(timeout=0)
    assert db.status().epoch == 0
    db.catch_up(timeout=60)
    assert db.catch_up(timeout=0) == []


def test_after_its_time_catching_up_begins_no_epoch(
    db: belvedere.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.catch_up()
    for number in range(100, 110):  # each a block of its own: an epoch has whole ones
        db.table("t").put({"id": number})
    clock, step, before = [0.0], Coordinator.step, db.status().epoch

    def long_step(self: Coordinator, *arguments: Any) -> EpochReport | None:
        clock[0] += 2.0
        return step(self, *arguments)

    monkeypatch.setattr(Coordinator, "step", long_step)
    monkeypatch.setattr("belvedere.database.time.monotonic", lambda: clock[0])
    with pytest.raises(Timeout, match=r"after 3 s 8 operation\(s\) are not in the views") as late:
        db.catch_up(max_rows=1, timeout=3)
    assert db.status().epoch == before + 2
    assert sum(late.value.reached.values()) == 12


@pytest.mark.parametrize("name", [None, 5, b"t"])
def test_names_are_text(db: belvedere.Database, name: Any) -> None:
    with pytest.raises(CatalogError, match="the name of a table is text: pass a str, not "):
        db.table(name)
    with pytest.raises(CatalogError, match="the name of a view is text: pass a str, not "):
        db.view(name)
    with pytest.raises(BelvedereError):
        db.sql(name)


@pytest.mark.parametrize("url", [None, 5, b"d"])
def test_a_database_is_opened_by_its_path(url: Any) -> None:
    with pytest.raises(StoreError, match="path or URL, which is text: pass a str or a Path, not "):
        belvedere.open(url)


@pytest.mark.parametrize("url", ["d", "memory:"])
def test_an_unknown_option_is_named_with_those_that_exist(tmp_path: Path, url: str) -> None:
    with pytest.raises(
        TypeError, match=r"'nope'.*spark, master, .* slots, map_size, max_size and read_only"
    ):
        belvedere.open(tmp_path / url if url == "d" else url, nope=5)
    assert list(tmp_path.iterdir()) == []
