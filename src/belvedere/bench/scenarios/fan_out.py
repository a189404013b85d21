"""Fan-out: one row of the small side is changed that matches a million rows of the other.

Time, and memory meanwhile.

All rows of r are of one group. They are loaded and caught up by one process; then the group's name
is changed, and a fresh process catches up and is watched. The join has to stream: its changes are
twice the million rows.
"""

from __future__ import annotations

import numpy as np

from belvedere.bench import process, workload, workload_join
from belvedere.bench.results import FanOut, Results
from belvedere.bench.scenarios.join_database import fresh_join
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main

_CALL = 100_000
_GROUP = np.zeros(1, np.int64)


def run(settings: Settings) -> Results:
    load = workload_join.only_r(workload.load(settings.fan_out, 1, settings.seed))
    before, after = (workload_join.names(_GROUP, np.full(1, version)) for version in (0, 1))
    path = settings.work / "fan-out"
    with fresh_join(path) as database:
        for log in (load, before):
            database.write(log, _CALL)
        with pipeline(path, settings.work, "catch_up") as first:
            first.finish()
        database.write(after, 1)
        with (
            pipeline(path, settings.work, "catch_up") as waiting,
            process.Sampler(waiting.child.pid) as sampler,
        ):
            waiting.finish()
        epoch = database.db.status().epochs[-1]
        seconds, peak, correct = (
            epoch["committed"] - epoch["started"],
            sampler.peak,
            database.correct([load, before, after]),
        )
        return Results(
            fan_out=(FanOut(settings.fan_out, seconds, peak.resident, peak.anonymous, correct),)
        )


if __name__ == "__main__":
    main(run)
