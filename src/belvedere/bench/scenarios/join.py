"""Join: V5 maintained from a backlog, end to end, and the cost of an operation against the number
of its matches.

The throughput is that of the scenarios `maintain` and `end_to_end`, over a log of two tables of
which 20 % gives the small one's rows new names. The cost is taken on tables whose keys match 1, 10,
100 and 1,000 rows: an operation on r finds one row of s, an operation on s all its matches, which
are all written.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.bench import workload, workload_join
from belvedere.bench.results import END_TO_END, MAINTAIN, JoinCost, Rate, Results
from belvedere.bench.scenarios.database import marker_key, operations
from belvedere.bench.scenarios.join_database import (
    JoinDatabase,
    fresh_join,
    join_marker_log,
    warm_up_join,
)
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import JOIN

_MARKER = "zz-end"
_LOAD_CALL = 100_000
_MATCHED = 10  # rows of the join that an epoch on s changes, times the operations of an epoch on r


def run(settings: Settings) -> Results:
    warm_up_join(settings.work, settings.call)
    maintained = tuple(_maintain(settings, size) for size in (settings.ops, settings.epoch))
    costs = tuple(_cost(settings, matches) for matches in settings.matches)
    return Results(rates=(*maintained, _end_to_end(settings)), joins=costs)


def _maintain(settings: Settings, size: int) -> Rate:
    first = settings.join_log()
    # s is loaded already
    second = pq.read_table(settings.join_log(1)).slice(settings.groups).combine_chunks()
    with fresh_join(settings.work / "join") as database:
        database.write(first, settings.call)
        database.catch_up(size)
        ops = database.write(second, settings.call)
        start = time.perf_counter()
        epochs = database.catch_up(size)
        seconds = time.perf_counter() - start
        return Rate(
            MAINTAIN,
            JOIN,
            ops,
            seconds,
            size,
            database.correct([first, second]),
            epochs=operations(epochs),
        )


def _end_to_end(settings: Settings) -> Rate:
    log, last = settings.join_log(), join_marker_log(_MARKER)
    path = settings.work / "join-end-to-end"
    with fresh_join(path) as database:
        with pipeline(path, settings.work, "start") as running:
            start = time.perf_counter()
            ops = database.write(log, settings.call) + database.write(last, settings.call)
            database.await_visible(marker_key(_MARKER), settings.timeout)
            seconds = time.perf_counter() - start
            epochs = running.finish()
        return Rate(
            END_TO_END,
            JOIN,
            ops,
            seconds,
            max(epochs, default=0),
            database.correct([log, last]),
            epochs=epochs,
        )


def _cost(settings: Settings, matches: int) -> JoinCost:
    rows = settings.keys
    groups = max(1, rows // matches)
    load = [
        workload_join.only_r(workload.load(rows, groups, settings.seed)),
        _renamed(np.arange(groups), 0),
    ]
    ops = max(settings.flat_ops)
    left_ops, right_ops = min(ops, rows), max(1, min(groups, _MATCHED * ops // matches))
    with fresh_join(settings.work / "join-cost") as database:
        for log in load:
            database.write(log, _LOAD_CALL)
        database.catch_up(settings.ops)
        rounds = range(settings.flat_repeats + 1)
        left = [
            workload_join.only_r(workload.touch(left_ops, rows, groups, seed=settings.seed + 1 + i))
            for i in rounds
        ]
        right = [_renamed(_chosen(groups, right_ops, settings.seed + i), 1 + i) for i in rounds]
        left_us, right_us = (_median_us(database, epochs) for epochs in (left, right))
        return JoinCost(
            matches,
            left_ops,
            left_us,
            right_ops,
            right_us,
            database.correct([*load, *left, *right]),
        )


def _median_us(database: JoinDatabase, epochs: list[pa.Table]) -> float:
    """Microseconds of maintenance per operation; the first epoch meets cold pages and does not
    count.
    """
    costs: list[float] = []
    for epoch in epochs:
        database.write(epoch, epoch.num_rows)
        start = time.perf_counter()
        database.catch_up(epoch.num_rows)
        costs.append((time.perf_counter() - start) / epoch.num_rows * 1e6)
    return statistics.median(costs[1:])


def _chosen(groups: int, count: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).choice(groups, count, replace=False)


def _renamed(groups: np.ndarray[tuple[int], np.dtype[np.int64]], version: int) -> pa.Table:
    return workload_join.names(groups, np.full(len(groups), version))


if __name__ == "__main__":
    main(run)
