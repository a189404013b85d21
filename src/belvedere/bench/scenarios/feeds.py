"""Feeds: what a consumer costs, how fast changes and first tables are read, Spark's data source
beside `to_arrow`, and what a complete view costs.

Two databases take the same operations in epochs of the same size, one with a consumer and one
without, in turns, so that a slow minute of the machine is one for both. The consumer reads after
each epoch, outside of what is timed for maintaining: what it costs there is the history that is
kept for it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from belvedere.bench import workload
from belvedere.bench.feed_results import CompleteCost, FeedCost, WholeScan
from belvedere.bench.results import Results
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import VIEWS, members

_FED = ("V1", "V2")
_SCANS = 5
_OF_A_TRANSACTION = 10  # operations
_CONSUMER = "bench"


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    views = [name for name in _FED if name in settings.views]
    feeds, scans = [], []
    for view in views:
        feeds.append(_cost(settings, view))
        scans.append(_scan(settings, view))
    return Results(feeds=tuple(feeds), whole_scans=tuple(scans), complete=(_complete(settings),))


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _cost(settings: Settings, view: str) -> FeedCost:
    """The first log is loaded into both, the second one is maintained in epochs."""
    loaded, maintained = settings.log(0), settings.log(1)
    parts = list(_parts(pq.read_table(maintained), settings.epoch))
    with ExitStack() as stack:
        work = settings.work
        fed = stack.enter_context(fresh(work / "feeds-with", members(view)))
        alone = stack.enter_context(fresh(work / "feeds-without", members(view)))
        for database in (fed, alone):
            database.write(loaded, settings.call)
            database.catch_up(settings.ops)
        _consume(fed, view)
        spent: dict[Database, list[float]] = {fed: [], alone: []}
        changes, feed_s = 0, 0.0
        for number, part in enumerate(parts):
            order = (fed, alone) if number % 2 else (alone, fed)
            for database in order:
                database.write(part, settings.call)
                spent[database].append(_seconds(partial(database.catch_up, settings.epoch)))
            start = time.perf_counter()
            changes += _consume(fed, view)
            feed_s += time.perf_counter() - start
        right = all(database.correct([loaded, maintained]) for database in (fed, alone))
        return FeedCost(
            view,
            sum(part.num_rows for part in parts),
            sum(spent[fed]),
            sum(spent[alone]),
            changes,
            feed_s,
            right,
        )


def _parts(log: pa.Table, size: int) -> Iterator[pa.Table]:
    for start in range(0, log.num_rows, size):
        yield log.slice(start, size)


def _consume(database: Database, view: str) -> int:
    """Read what has changed, and say so; the rows."""
    with database.db.view(view).changes(consumer=_CONSUMER) as changes:
        rows = sum(int(table.num_rows) for table in changes)
        changes.acknowledge()
    return rows


def _scan(settings: Settings, view: str) -> WholeScan:
    path = settings.work / "feeds-scan"
    log = settings.log()
    with fresh(path, members(view)) as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        found = database.db.view(view)
        rows = found.to_arrow().num_rows
        source = database.db.spark.read.format("belvedere").option("db", str(path)).load(view)

        def from_source() -> None:
            source.write.format("noop").mode("overwrite").save()

        from_source()  # Spark looks for sources, and plans
        ways = (found.to_arrow, lambda: _first(found), from_source)
        spent: list[list[float]] = [[], [], []]
        for _ in range(_SCANS):
            for times, way in zip(spent, ways, strict=True):
                times.append(_seconds(way))
        right = source.count() == rows and _first_is_all(found, rows)
        to_arrow, first, scanned = (statistics.median(times) for times in spent)
        right = right and database.correct([log])
        return WholeScan(view, rows, to_arrow, first, scanned, right)


def _first(view: Any) -> pa.Table:
    with view.changes() as changes:
        return next(changes)


def _first_is_all(view: Any, rows: int) -> bool:
    return bool(pc.sum(_first(view)["_weight"]).as_py() == rows)


def _complete(settings: Settings) -> CompleteCost:
    """V2, asked for as complete and not, after transactions of a few operations."""
    ops = settings.transactions * _OF_A_TRANSACTION
    log = workload.generate(ops, max(1, ops // 4), settings.groups, seed=settings.seed)
    spent, right = {}, True
    for level in ("complete", "strong"):
        with fresh(settings.work / f"feeds-{level}", ()) as database:
            text = VIEWS["V2"].create.replace(" AS ", f" WITH (consistency = '{level}') AS ", 1)
            database.db.sql(text)
            database.views = (VIEWS["V2"],)
            database.catch_up(settings.ops)
            database.write(log, _OF_A_TRANSACTION)
            spent[level] = _seconds(partial(database.catch_up, settings.ops))
            right = right and database.correct([log])
    return CompleteCost(settings.transactions, ops, spent["complete"], spent["strong"], right)


if __name__ == "__main__":
    main(run)
