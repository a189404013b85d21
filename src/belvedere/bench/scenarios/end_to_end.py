"""End to end: from the first write until the last operation is visible in every view.

The writer is this process, the pipeline another one, already warm. This is the same work that the
peers do: durable base rows, and the views. A marker row written last tells when all is visible.
"""

from __future__ import annotations

import time

from belvedere.bench.results import END_TO_END, Rate, Results
from belvedere.bench.scenarios.database import fresh, marker_key, marker_log
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members

_MARKER = "zz-end"


def run(settings: Settings) -> Results:
    return Results(rates=tuple(_one(settings, view) for view in settings.views))


def _one(settings: Settings, view: str) -> Rate:
    log, last = settings.log(), marker_log(_MARKER)
    path = settings.work / "end-to-end"
    with fresh(path, members(view)) as database:
        with pipeline(path, settings.work, "start") as running:
            start = time.perf_counter()
            ops = database.write(log, settings.call) + database.write(last, settings.call)
            database.await_visible(marker_key(_MARKER), settings.timeout)
            seconds = time.perf_counter() - start
            epochs = running.finish()
        return Rate(
            END_TO_END,
            view,
            ops,
            seconds,
            max(epochs, default=0),
            database.correct([log, last]),
            epochs=epochs,
        )


if __name__ == "__main__":
    main(run)
