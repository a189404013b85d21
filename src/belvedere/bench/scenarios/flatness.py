"""Flatness: the cost of an operation does not depend on how large the base table is.

Tables of 100 k, 1 M and 10 M rows are loaded; then epochs of operations on different keys are
written and caught up. No operation nets out against another, so every size does the same number of
row changes. Beside it stands what a put costs a bare LMDB table of the same size, in durable
transactions of as many: scattered records make it write a page for each.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

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
    points = [
        point
        for view in views
        for rows in settings.flat_rows
        for point in _points(settings, view, rows, bare[rows])
    ]
    return Results(flatness=tuple(points))


def _points(settings: Settings, view: str, rows: int, bare: dict[int, float]) -> list[FlatPoint]:
    """One for each size of epochs, on the same table."""
    load = workload.load(rows, settings.groups, settings.seed)
    with fresh(settings.work / "flatness", members(view)) as database:
        database.write(load, _LOAD_CALL)
        database.catch_up(settings.ops)
        epochs = {ops: _epochs(settings, rows, ops) for ops in settings.flat_ops}
        # the first meets cold pages
        costs = {
            ops: [_cost(database, epoch) for epoch in epochs[ops]][1:] for ops in settings.flat_ops
        }
        correct = database.correct(
            [load, *(epoch for ops in settings.flat_ops for epoch in epochs[ops])]
        )
    points = []
    for ops, found in costs.items():
        write, maintain = (_median(side, ops) for side in zip(*found, strict=True))
        points.append(
            FlatPoint(view, rows, ops, settings.flat_repeats, write, maintain, bare[ops], correct)
        )
    return points


def _epochs(settings: Settings, rows: int, ops: int) -> list[pa.Table]:
    return [
        workload.touch(ops, rows, settings.groups, seed=settings.seed + ops + number)
        for number in range(settings.flat_repeats + 1)
    ]


def _median(seconds: Sequence[float], ops: int) -> float:
    """Microseconds per operation."""
    return statistics.median(seconds) / ops * 1e6


def _cost(database: Database, epoch: pa.Table) -> tuple[float, float]:
    """Seconds to write, seconds to maintain."""
    start = time.perf_counter()
    database.write(epoch, epoch.num_rows)
    written = time.perf_counter()
    database.catch_up(epoch.num_rows)
    return written - start, time.perf_counter() - written


def _bare(settings: Settings, rows: int) -> dict[int, float]:
    """Microseconds per put, by the size of transactions."""
    path = settings.work / "flatness-lmdb"
    with emptied(path), lmdb.open(str(path), map_size=64 << 30) as env:
        for batch in workload.load(rows, settings.groups, settings.seed).to_batches(
            max_chunksize=_LOAD_CALL
        ):
            _put(env, batch)
        return {
            ops: _median([_put(env, epoch) for epoch in _epochs(settings, rows, ops)][1:], ops)
            for ops in settings.flat_ops
        }


def _put(env: lmdb.Environment, rows: pa.Table | pa.RecordBatch) -> float:
    """Seconds of one durable transaction with these rows, in key order."""
    ordered = rows.sort_by("key")
    records = [
        (k.encode(), f"{g} {v}".encode())
        for k, g, v in zip(*(ordered[c].to_pylist() for c in _COLUMNS), strict=True)
    ]
    start = time.perf_counter()
    with env.begin(write=True) as txn:
        txn.cursor().putmulti(records)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(run)
