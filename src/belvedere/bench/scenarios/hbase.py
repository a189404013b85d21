"""HBase: capture, maintenance beside a bare client, what views cost writers, freshness.

A cluster of two region servers is started on this machine, so they share its cores with Spark and
with the writers: compare figures of one run only. All that is compared takes turns, and medians
count.

maintain    a backlog is written and captured, then its epochs are timed. What they wrote is read
            back by its time stamps, and put again by HBase's own client into empty tables of the
            same form, in calls of as many rows. That client reads nothing and computes nothing.
tasks       the same with one, two and four tasks, whatever the number of cores.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from belvedere.bench.hbase_results import HBaseCapture, HBaseMaintain, HBaseResults
from belvedere.bench.results import Results
from belvedere.bench.scenarios.hbase_clients import freshness, writes
from belvedere.bench.scenarios.hbase_database import (
    TASKS,
    BareClient,
    HBaseDatabase,
    cluster,
    fresh,
    views_of,
)
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.errors import Timeout
from belvedere.stores.hbase.capture import Capture
from belvedere.stores.hbase.local import Cluster
from belvedere.waiting import wait_until


@dataclass(frozen=True, slots=True)
class _Round:
    tasks: int
    ops: int
    rows: int
    seconds: float
    commit_s: float
    bare_s: float


def run(settings: Settings) -> Results:
    with cluster(settings) as made:
        found = HBaseResults(
            capture=(_capture(settings, made),),
            maintain=tuple(
                figure
                for view in settings.hbase_views
                for figure in _maintain(settings, made, view)
            ),
            writes=writes(settings, made),
            freshness=(freshness(settings, made),),
        )
    return Results(hbase=(found,))


def _capture(settings: Settings, made: Cluster) -> HBaseCapture:
    """A peer that was disabled has a backlog; what it takes to enable it is in the figure."""
    with fresh(made, "capture", ()) as database:
        base, capture = database.db.store.base, Capture(database.quorum, database.namespace)
        capture.disable()
        high = base.end()["log"] + database.write(database.log_of(settings, 0), settings.call)

        def captured() -> bool | None:
            return base.end()["log"] >= high or None

        began = time.perf_counter()
        capture.enable()
        if wait_until(captured, settings.timeout) is None:
            raise Timeout("the backlog was not captured: look at the region servers' logs")
        return HBaseCapture(settings.hbase_ops, time.perf_counter() - began)


def _maintain(settings: Settings, made: Cluster, view: str) -> list[HBaseMaintain]:
    """One for each number of tasks; one backlog, and one with each number, warm up."""
    choices = settings.hbase_tasks if view == "V2" else (TASKS,)
    with fresh(made, f"maintain_{view.lower()}", views_of(view)) as database:
        bare = BareClient(database)
        order = [
            TASKS,
            *choices,
            *(tasks for _ in range(settings.hbase_rounds) for tasks in choices),
        ]
        rounds = [
            _round(settings, database, bare, number, tasks) for number, tasks in enumerate(order)
        ]
        correct = database.correct()
    measured = rounds[1 + len(choices) :]
    return [_median(view, [r for r in measured if r.tasks == t], correct) for t in choices]


def _round(
    settings: Settings, database: HBaseDatabase, bare: BareClient, number: int, tasks: int
) -> _Round:
    database.use_tasks(tasks)
    ops = database.write(database.log_of(settings, number), settings.call)
    database.db.store.base.barrier()  # else its epochs could be small, and wait for one another
    epochs = database.catch_up(settings.hbase_ops)
    rows = sum(bare.take(epoch.epoch) for epoch in epochs)
    return _Round(
        tasks,
        ops,
        rows,
        sum(epoch.seconds for epoch in epochs),
        sum(epoch.stages.get("write", 0.0) for epoch in epochs) / tasks,
        bare.write(tasks),
    )


def _median(view: str, rounds: list[_Round], correct: bool) -> HBaseMaintain:
    def middle(name: str) -> float:
        found: list[float] = [getattr(each, name) for each in rounds]
        return statistics.median(found)

    return HBaseMaintain(
        view,
        rounds[0].tasks,
        int(middle("ops")),
        len(rounds),
        int(middle("rows")),
        middle("seconds"),
        middle("commit_s"),
        middle("bare_s"),
        correct,
    )


if __name__ == "__main__":
    main(run)
