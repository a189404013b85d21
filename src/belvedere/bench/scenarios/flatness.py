"""Flatness: the cost of an operation does not depend on how large the base table is.

Tables of 100 k, 1 M and 10 M rows are loaded; then epochs of operations on different keys are written and caught up. No
operation nets out against another, so every size does the same number of row changes.
"""

from __future__ import annotations

import statistics
import time

import pyarrow as pa

from belvedere.bench import workload
from belvedere.bench.results import FlatPoint, Results
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members

_VIEWS = ("V2", "V_all")
_LOAD_CALL = 100_000


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    views = [view for view in settings.views if view in _VIEWS]
    return Results(flatness=tuple(_point(settings, view, rows) for view in views for rows in settings.flat_rows))


def _point(settings: Settings, view: str, rows: int) -> FlatPoint:
    load = workload.load(rows, settings.groups, settings.seed)
    with fresh(settings.work / "flatness", members(view)) as database:
        database.write(load, _LOAD_CALL)
        database.catch_up(settings.ops)
        epochs = [_epoch(settings, rows, number) for number in range(settings.flat_repeats + 1)]
        costs = [_cost(database, epoch) for epoch in epochs][1:]  # the first one meets cold pages
        write, maintain = (statistics.median(c[side] for c in costs) / settings.flat_ops * 1e6 for side in (0, 1))
        return FlatPoint(view, rows, settings.flat_ops, settings.flat_repeats, write, maintain, database.correct([load, *epochs]))


def _epoch(settings: Settings, rows: int, number: int) -> pa.Table:
    return workload.touch(settings.flat_ops, rows, settings.groups, seed=settings.seed + 1 + number)


def _cost(database: Database, epoch: pa.Table) -> tuple[float, float]:
    """Seconds to write, seconds to maintain."""
    start = time.perf_counter()
    database.write(epoch, epoch.num_rows)
    written = time.perf_counter()
    database.catch_up(epoch.num_rows)
    return written - start, time.perf_counter() - written


if __name__ == "__main__":
    main(run)
