"""Memory: the pipeline's process tree (Python, JVM, workers) while it works off ten million operations.

The backlog is written here; a fresh process catches up with the epochs it chooses itself, and is watched meanwhile.
"""

from __future__ import annotations

import time

from belvedere.bench import process
from belvedere.bench.results import MemoryPeak, Results
from belvedere.bench.scenarios.database import fresh
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import TOGETHER, members

_CALL = 100_000


def run(settings: Settings) -> Results:
    return Results(memory=(_one(settings, TOGETHER),))


def _one(settings: Settings, view: str) -> MemoryPeak:
    log = settings.log(ops=settings.memory_ops)
    path = settings.work / "memory"
    with fresh(path, members(view)) as database:
        with pipeline(path, settings.work, "catch_up") as first:
            first.finish()  # views are live before the backlog is written, so that it is worked off from the log
        backlog = database.write(log, _CALL)
        with pipeline(path, settings.work, "catch_up") as waiting, process.Sampler(waiting.child.pid) as sampler:
            start = time.perf_counter()
            epochs = waiting.finish()
            seconds = time.perf_counter() - start
        peak = sampler.peak
        return MemoryPeak(view, backlog, peak.resident, peak.anonymous, seconds, database.correct([log]), epochs)


if __name__ == "__main__":
    main(run)
