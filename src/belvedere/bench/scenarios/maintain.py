"""Maintain: views brought up to date from a backlog, on a table that already holds the rows of
earlier logs.

A first million operations is written and loaded into the views, a second one (another seed) is
written and caught up in epochs of the same size, so that processes are warm for them; then a third
one is written, and only its `catch_up` is timed: in one epoch, and in epochs of 200,000.
"""

from __future__ import annotations

import time

from belvedere.bench.results import MAINTAIN, Rate, Results
from belvedere.bench.scenarios.database import fresh, operations, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    sizes = (settings.ops, settings.epoch)
    return Results(
        rates=tuple(_one(settings, view, size) for view in settings.views for size in sizes)
    )


def _one(settings: Settings, view: str, size: int) -> Rate:
    first, second, third = (settings.log(number) for number in range(3))
    with fresh(settings.work / "maintain", members(view)) as database:
        # the first is loaded; the second lets workers take the memory that large epochs need
        for log in (first, second):
            database.write(log, settings.call)
            database.catch_up(size)
        ops = database.write(third, settings.call)
        start = time.perf_counter()
        epochs = database.catch_up(size)
        seconds = time.perf_counter() - start
        return Rate(
            MAINTAIN,
            view,
            ops,
            seconds,
            size,
            database.correct([first, second, third]),
            operations(epochs),
        )


if __name__ == "__main__":
    main(run)
