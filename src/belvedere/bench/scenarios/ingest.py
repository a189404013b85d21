"""Ingest: durable writes of the base table in calls of 10,000 operations.

No view exists, so this is the store's write path alone: row, log, sync.
"""

from __future__ import annotations

import time

from belvedere.bench.results import INGEST, Rate, Results
from belvedere.bench.scenarios.database import fresh
from belvedere.bench.scenarios.settings import Settings, main


def run(settings: Settings) -> Results:
    log = settings.log()
    with fresh(settings.work / "ingest", ()) as warm:
        warm.write(settings.log(1), settings.call)
    with fresh(settings.work / "ingest", ()) as database:
        start = time.perf_counter()
        ops = database.write(log, settings.call)
        seconds = time.perf_counter() - start
        correct = database.correct([log])
    return Results(rates=(Rate(INGEST, "-", ops, seconds, settings.call, correct),))


if __name__ == "__main__":
    main(run)
