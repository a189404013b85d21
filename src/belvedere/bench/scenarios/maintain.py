"""Maintain: views brought up to date from a backlog, on a table that already holds the rows of
earlier logs.

A first million operations is written and loaded into the views, a second one (another seed) is
written and caught up in epochs of the same size, so that processes are warm for them; then a third
one is written, and only its `catch_up` is timed. Three ways: in one epoch, in epochs of 200,000,
and the same without before-images in the log.
"""

from __future__ import annotations

import time

from belvedere.bench.results import MAINTAIN, Rate, Results
from belvedere.bench.scenarios.database import fresh, operations, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    ways = ((settings.ops, True), (settings.epoch, True), (settings.epoch, False))
    return Results(
        rates=tuple(
            _one(settings, view, size, before) for view in settings.views for size, before in ways
        )
    )


def _one(settings: Settings, view: str, size: int, before_images: bool) -> Rate:
    first, second, third = (settings.log(number) for number in range(3))
    with fresh(settings.work / "maintain", members(view), before_images) as database:
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
            before_images,
            operations(epochs),
        )


if __name__ == "__main__":
    main(run)
