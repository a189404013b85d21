"""Flatness: the cost of an operation does not depend on how large the base table is.

Tables of 100 k, 1 M and 10 M rows are loaded; then epochs of operations on different keys are written and caught up. No
operation nets out against another, so every size does the same number of row changes. Beside it stands what a put costs a
bare LMDB table of the same size, in durable transactions of as many: scattered records make it write a page for each.
"""

from __future__ import annotations

import statistics
import time

import lmdb
import pyarrow as pa

from belvedere.bench import workload
from belvedere.bench.results import FlatPoint, Results
from belvedere.bench.scenarios.database import Database, emptied, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members

_VIEWS = ("V2", "V_all")
_LOAD_CALL = 100_000
_COLUMNS = ("key", "grp", "val")


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    views = [view for view in settings.views if view in _VIEWS]
    bare = {rows: _bare(settings, rows) for rows in settings.flat_rows}
    return Results(flatness=tuple(_point(settings, view, rows, bare[rows]) for view in views for rows in settings.flat_rows))


def _point(settings: Settings, view: str, rows: int, bare: float) -> FlatPoint:
    load = workload.load(rows, settings.groups, settings.seed)
    with fresh(settings.work / "flatness", members(view)) as database:
        database.write(load, _LOAD_CALL)
        database.catch_up(settings.ops)
        epochs = [_epoch(settings, rows, number) for number in range(settings.flat_repeats + 1)]
        costs = [_cost(database, epoch) for epoch in epochs][1:]  # the first one meets cold pages
        write, maintain = (statistics.median(c[side] for c in costs) / settings.flat_ops * 1e6 for side in (0, 1))
        return FlatPoint(view, rows, settings.flat_ops, settings.flat_repeats, write, maintain, bare, database.correct([load, *epochs]))


def _epoch(settings: Settings, rows: int, number: int) -> pa.Table:
    return workload.touch(settings.flat_ops, rows, settings.groups, seed=settings.seed + 1 + number)


def _cost(database: Database, epoch: pa.Table) -> tuple[float, float]:
    """Seconds to write, seconds to maintain."""
    start = time.perf_counter()
    database.write(epoch, epoch.num_rows)
    written = time.perf_counter()
    database.catch_up(epoch.num_rows)
    return written - start, time.perf_counter() - written


def _bare(settings: Settings, rows: int) -> float:
    """Microseconds per put."""
    path = settings.work / "flatness-lmdb"
    with emptied(path), lmdb.open(str(path), map_size=64 << 30) as env:
        for batch in workload.load(rows, settings.groups, settings.seed).to_batches(max_chunksize=_LOAD_CALL):
            _put(env, batch)
        seconds = [_put(env, _epoch(settings, rows, number)) for number in range(settings.flat_repeats + 1)]
    return statistics.median(seconds[1:]) / settings.flat_ops * 1e6


def _put(env: lmdb.Environment, rows: pa.Table | pa.RecordBatch) -> float:
    """Seconds of one durable transaction with these rows, in key order."""
    ordered = rows.sort_by("key")
    records = [(k.encode(), f"{g} {v}".encode()) for k, g, v in zip(*(ordered[c].to_pylist() for c in _COLUMNS), strict=True)]
    start = time.perf_counter()
    with env.begin(write=True) as txn:
        txn.cursor().putmulti(records)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(run)
