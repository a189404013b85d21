"""A history goes on where a killed pipeline left it, and its judge finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.consistency import check, judge, read_history
from belvedere.epochs.local import NEAR_ROWS
from belvedere.waiting import wait_until
from tests.integration.test_kills import kill_group, open_epoch, start

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDED = """
import sys, belvedere
db = belvedere.open(sys.argv[1], master="local[1]")
db.start(max_rows=4, history=sys.argv[1] + ".jsonl")
print("started", flush=True)
sys.stdin.readline()
"""
OPERATIONS = 80
TRANSACTIONS, KILLED_AFTER = 30, 3


def _has_begun(db: belvedere.Database, epoch: int) -> bool | None:
    return (open_epoch(db) or 0) > epoch or None


def test_the_history_of_killed_pipelines_is_strong(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "d"
    with belvedere.open(path, spark=spark) as db:
        db.sql("CREATE TABLE o (id INT, g INT, v BIGINT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW s AS SELECT g, sum(v) AS t FROM o GROUP BY g")
        db.sql("CREATE MATERIALIZED VIEW w AS SELECT id, v FROM o WHERE v % 3 > 0")
        db.catch_up()
        for number in range(OPERATIONS):
            db.table("o").put({"id": number % 9, "g": number % 4, "v": number})
        for _ in range(2):
            reached = db.committed()[0]
            killed = start(RECORDED, path)
            assert killed.stdout is not None
            assert killed.stdout.readline() == "started\n"
            enough = partial(_has_begun, db, reached + 3)
            assert wait_until(enough, 90)
            kill_group(killed)
        pipeline = db.start(max_rows=4, history=str(path) + ".jsonl")
        assert pipeline.await_position(OPERATIONS, 120)
        pipeline.stop()
        history = read_history(tmp_path / "d.jsonl")
        assert len(history.operations) == OPERATIONS
        assert {verdict.view for verdict in judge(history)} == {"s", "w"}
        assert check(history, "strong") == []


def _transaction(number: int) -> list[dict[str, int]]:
    """One of them is a job on Spark, since it has more operations than are worth running in the
    coordinator's process; the others run there.
    """
    many = NEAR_ROWS + 1 if number == KILLED_AFTER else 1
    return [{"id": number % 9 + 9 * i, "g": number % 4, "v": number + 1} for i in range(many)]


def _states() -> Iterator[Counter[tuple[int, int]]]:
    """The rows of `s` after each transaction."""
    table: dict[int, tuple[int, int]] = {}
    for number in range(TRANSACTIONS):
        table |= {row["id"]: (row["g"], row["v"]) for row in _transaction(number)}
        sums: Counter[int] = Counter()
        for group, value in table.values():
            sums[group] += value
        yield Counter(sums.items())


def _feed(db: belvedere.Database, since: int) -> Iterator[Counter[tuple[int, int]]]:
    """The same, as the feed of `s` has them: its changes up to each entry."""
    shown: Counter[tuple[int, int]] = Counter()
    with db.view("s").changes(since=since) as changes:
        for table in changes:
            for row in table.to_pylist():
                shown[row["g"], row["t"]] += row["_weight"]
            yield shown.copy()


def test_a_complete_view_shows_every_transaction_of_killed_pipelines(
    tmp_path: Path, spark: SparkSession
) -> None:
    path, level = tmp_path / "d", "WITH (consistency = 'complete')"
    history = str(path) + ".jsonl"
    with belvedere.open(path, spark=spark) as db:
        db.keep_history(epochs=1000)
        db.sql("CREATE TABLE o (id INT, g INT, v BIGINT, PRIMARY KEY (id))")
        db.sql(f"CREATE MATERIALIZED VIEW s {level} AS SELECT g, sum(v) AS t FROM o GROUP BY g")
        db.sql(f"CREATE MATERIALIZED VIEW w {level} AS SELECT id, v FROM o WHERE v % 3 > 0")
        db.catch_up()
        begin = db.status().epoch
        db.start("available_now", history=history).await_termination(120)
        for number in range(TRANSACTIONS):
            db.table("o").put_many(_transaction(number))
        for _ in range(2):
            reached = db.committed()[0]
            killed = start(RECORDED, path)
            assert killed.stdout is not None
            assert killed.stdout.readline() == "started\n"
            assert wait_until(partial(_has_begun, db, reached + KILLED_AFTER), 90)
            kill_group(killed)
        pipeline = db.start(history=history)
        assert pipeline.await_position(db.store.base.end(), 300)
        pipeline.stop()
        verdicts = judge(read_history(Path(history)))
        assert {(v.view, v.holds("complete")) for v in verdicts} == {("s", True), ("w", True)}
        assert list(_feed(db, begin)) == list(_states())
