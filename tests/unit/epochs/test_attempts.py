"""Tasks of an epoch: several that repeat level 0 write what one task writes, and a task that comes
too late does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

import belvedere
from belvedere.epochs.attempts import checked, run_stage, run_whole, stages
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import Intent
from belvedere.epochs.intents import load_plan, open_intent
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.errors import Stale
from belvedere.stores.base import Store

SUMS = (
    "CREATE MATERIALIZED VIEW sums AS SELECT g, sum(x) AS total, min(x) AS least, count(*) AS n"
    " FROM t GROUP BY g"
)
SHARES = "CREATE MATERIALIZED VIEW shares AS SELECT id, 100 / x AS share FROM t"
PAIRS = (
    "CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.id AS other FROM t a JOIN t b ON a.g = b.g"
    " AND a.id < b.id"
)


@dataclass
class Whole:
    """Runs epochs as Spark does that need no exchange."""

    store: Store
    tasks: int
    seen: list[Ack] = field(default_factory=list)

    def run(self, intent: Intent) -> list[Ack]:
        if len(stages(load_plan(self.store, intent))) > 1:
            return LocalRunner(self.store).run(intent)
        self.seen = [
            ack for number in range(self.tasks) for ack in run_whole(self.store, self.tasks, number)
        ]
        return checked(self.seen, intent)


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:", slots=4) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, g BIGINT, x BIGINT, PRIMARY KEY (id))")
        yield opened


def epochs(db: belvedere.Database, tasks: int) -> Whole:
    runner = Whole(db.store, tasks)
    coordinator = Coordinator(db.store, runner)
    assert coordinator.acquire()
    while coordinator.step() is not None:
        pass
    coordinator.release()
    return runner


def rows(first: int, zero: int | None = None) -> list[dict[str, int]]:
    return [{"id": i, "g": i % 7, "x": 0 if i == zero else i} for i in range(first, first + 50)]


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_tasks_that_repeat_level_0_write_everything_once(
    db: belvedere.Database, tasks: int
) -> None:
    db.sql(SUMS)
    db.sql(SHARES)
    epochs(db, 1)
    db.table("t").put_many(rows(1))
    db.table("t").delete_many(range(1, 10))
    runner = epochs(db, tasks)
    expected = db.sql(
        "SELECT g, sum(x) AS total, min(x) AS least, count(*) AS n FROM t GROUP BY g"
    ).to_arrow()
    assert db.view("sums").to_arrow().sort_by("g").equals(expected.sort_by("g"))
    assert db.view("shares").to_arrow().num_rows == 41
    # each change is counted once, although every task saw it
    assert sum(ack.changes for ack in runner.seen) == 41


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_an_error_row_is_recorded_by_one_task(db: belvedere.Database, tasks: int) -> None:
    db.sql(SHARES)
    epochs(db, 1)
    db.table("t").put_many(rows(1, zero=20))
    epochs(db, tasks)
    with pytest.raises(belvedere.errors.ViewInError, match="1 row"):
        db.view("shares").to_arrow()
    db.table("t").put({"id": 20, "g": 6, "x": 5})
    epochs(db, tasks)
    assert db.view("shares").get(20) == {"id": 20, "share": 20.0}


def test_a_task_is_too_late_when_no_epoch_is_open(db: belvedere.Database) -> None:
    db.sql(SUMS)
    epochs(db, 1)
    with pytest.raises(Stale, match="no epoch is open"):
        run_whole(db.store, 1, 0)


def test_a_task_without_exchange_leaves_an_epoch_alone_that_needs_one(
    db: belvedere.Database,
) -> None:
    db.sql(PAIRS)
    epochs(db, 1)
    db.table("t").put_many(rows(1))

    class Late:
        def run(self, intent: Intent) -> list[Ack]:
            with pytest.raises(Stale, match="needs exchanges"):
                run_whole(db.store, 2, 0)
            return LocalRunner(db.store, 2).run(intent)

    coordinator = Coordinator(db.store, Late())
    assert coordinator.acquire()
    assert coordinator.step() is not None
    # 49 rows in 7 groups of 7, and one more row
    assert db.view("pairs").to_arrow().num_rows == 7 * 21 + 7


def test_a_late_task_that_does_a_part_of_the_next_epoch_changes_nothing(
    db: belvedere.Database,
) -> None:
    db.sql(SUMS)
    epochs(db, 1)
    db.table("t").put_many(rows(1))

    class Both:
        def run(self, intent: Intent) -> list[Ack]:
            run_whole(db.store, 3, 2)  # of a job that was made for three tasks
            plan = load_plan(db.store, open_intent(db.store))
            run_stage(db.store, plan, stages(plan)[0], 2, 1, [])
            return run_whole(db.store, 1, 0)

    coordinator = Coordinator(db.store, Both())
    assert coordinator.acquire()
    assert coordinator.step() is not None
    assert sum(row["total"] for row in db.view("sums").to_arrow().to_pylist()) == sum(range(1, 51))


def test_acks_of_another_epoch_are_refused(db: belvedere.Database) -> None:
    db.sql(SUMS)
    epochs(db, 1)
    db.table("t").put_many(rows(1))
    runner = epochs(db, 1)
    db.table("t").put_many(rows(100))

    class Old:
        def run(self, intent: Intent) -> list[Ack]:
            return checked(runner.seen, intent)

    coordinator = Coordinator(db.store, Old())
    assert coordinator.acquire()
    with pytest.raises(belvedere.errors.PipelineError, match="another epoch open"):
        coordinator.step()
