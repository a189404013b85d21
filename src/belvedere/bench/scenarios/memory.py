"""Memory: the pipeline's process tree (Python, JVM, workers) while it works off ten million
operations, and a quarter of that.

All keys are in the table before, so both backlogs meet tables of the same size. They are written
here; a fresh process catches up with the epochs it chooses itself, and is watched meanwhile.
"""

from __future__ import annotations

import time

import pyarrow as pa

from belvedere.bench import process, workload
from belvedere.bench.results import MemoryPeak, Results
from belvedere.bench.scenarios.database import Database, fresh
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import TOGETHER, members

_CALL = 100_000


def run(settings: Settings) -> Results:
    ops = settings.memory_ops
    keys = settings.keys * ops // settings.ops
    logs = [workload.load(keys, settings.groups, settings.seed)]
    with fresh(settings.work / "memory", members(TOGETHER)) as database:
        with pipeline(settings.work / "memory", settings.work, "catch_up") as first:
            database.write(logs[0], _CALL)
            # views are live before a backlog is written, so that it is worked off from the log
            first.finish()
        peaks = []
        for number, backlog in enumerate((ops // 4, ops)):
            logs.append(
                workload.generate(
                    backlog, keys, settings.groups, settings.dist, seed=settings.seed + number
                )
            )
            peaks.append(_watched(settings, database, logs))
        return Results(memory=tuple(peaks))


def _watched(settings: Settings, database: Database, logs: list[pa.Table]) -> MemoryPeak:
    """The last log is written and caught up."""
    backlog = database.write(logs[-1], _CALL)
    with (
        pipeline(settings.work / "memory", settings.work, "catch_up") as waiting,
        process.Sampler(waiting.child.pid) as sampler,
    ):
        start = time.perf_counter()
        epochs = waiting.finish()
        seconds = time.perf_counter() - start
    peak = sampler.peak
    return MemoryPeak(
        TOGETHER, backlog, peak.resident, peak.anonymous, seconds, database.correct(logs), epochs
    )


if __name__ == "__main__":
    main(run)
