"""Freshness: ten operations written until every view shows them, on a table that holds a log's
rows.

Measured twice: beside a running pipeline, and as write plus `catch_up`, whose epoch says where the
time went. The floor is an empty Spark job with one stage in the same session.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from belvedere.bench.results import Freshness, Results
from belvedere.bench.scenarios.database import Database, fresh, marker_key, marker_log, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members

TEN = 10
_VIEWS = ("V2", "V_all")


@dataclass(frozen=True, slots=True)
class _CaughtUp:
    write: float
    catch_up: float
    stages: dict[str, float]


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    return Results(
        freshness=tuple(_one(settings, view) for view in settings.views if view in _VIEWS)
    )


def _one(settings: Settings, view: str) -> Freshness:
    log = settings.log()
    with fresh(settings.work / "freshness", members(view)) as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        empty = p50_ms(_seconds(empty_job(), settings.probes))
        probes = [marker_log(f"zz{i}", TEN) for i in range(2 * settings.probes)]
        stepwise = [_caught_up(database, probe) for probe in probes[: settings.probes]]
        visible = _while_running(database, probes[settings.probes :], settings.timeout)
        return Freshness(
            view,
            settings.ops,
            settings.probes,
            p50_ms(visible),
            _p95_ms(visible),
            p50_ms([s.write for s in stepwise]),
            p50_ms([s.catch_up for s in stepwise]),
            _stages(stepwise),
            empty,
            database.correct([log, *probes]),
        )


def _caught_up(database: Database, probe: pa.Table) -> _CaughtUp:
    start = time.perf_counter()
    database.write(probe, TEN)
    written = time.perf_counter()
    epochs = database.catch_up(TEN)
    done = time.perf_counter()
    stages: dict[str, float] = defaultdict(float)
    for epoch in epochs:
        for name, seconds in epoch.stages.items():
            stages[name] += seconds
    return _CaughtUp(written - start, done - written, dict(stages))


def _while_running(database: Database, probes: list[pa.Table], timeout: float) -> list[float]:
    handle = database.db.start()
    try:
        return [_until_visible(database, probe, timeout) for probe in probes]
    finally:
        handle.stop()


def _until_visible(database: Database, probe: pa.Table, timeout: float) -> float:
    start = time.perf_counter()
    database.write(probe, TEN)
    database.await_visible(marker_key(probe["grp"][0].as_py(), TEN), timeout)
    return time.perf_counter() - start


def empty_job() -> Callable[[], Any]:
    """An Arrow job of one stage and one task that does nothing, in the session that is running.

    Through the JVM's frame: PySpark's own method asks for pandas, which nothing here needs.
    """
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    spark = SparkSession.builder.getOrCreate()

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def job() -> Any:
        frame = spark.range(1, numPartitions=1)
        function = UserDefinedFunction(
            same, "id long", evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
        )
        mapped = frame._jdf.mapInArrow(function(frame["id"])._jc, False, None)
        return DataFrame(mapped, spark).collect()

    return job


def _seconds(job: Callable[[], Any], times: int) -> list[float]:
    found = []
    for _ in range(times + 5):  # the first ones warm up
        start = time.perf_counter()
        job()
        found.append(time.perf_counter() - start)
    return found[5:]


def _stages(steps: list[_CaughtUp]) -> dict[str, float]:
    names = dict.fromkeys(name for step in steps for name in step.stages)
    return {name: p50_ms([step.stages.get(name, 0.0) for step in steps]) for name in names}


def p50_ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1_000


def _p95_ms(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)] * 1_000


if __name__ == "__main__":
    main(run)
