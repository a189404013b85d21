"""Base writes with views: views must not slow the writer down.

The writer is this process. With ten views it is measured twice: while no pipeline runs, which shows
what the write path itself pays (it should be nothing), and while another process keeps the views,
which shares the machine's cores and disk. The three take turns, and of each the median counts: the
disk of a shared machine is not the same from minute to minute.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from belvedere.bench.results import BaseWrite, Results
from belvedere.bench.scenarios.database import fresh, marker_key, marker_log
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import View, ten

_MARKER = "zz-written"
_TURNS = 3


def run(settings: Settings) -> Results:
    ways: tuple[tuple[Sequence[View], bool], ...] = (((), False), (ten(), False), (ten(), True))
    turns = [[_one(settings, views, running) for views, running in ways] for _ in range(_TURNS)]
    return Results(base_writes=tuple(map(_median, zip(*turns, strict=True))))


def _median(found: tuple[BaseWrite, ...]) -> BaseWrite:
    middle = sorted(found, key=lambda one: one.seconds)[len(found) // 2]
    return replace(middle, correct=all(one.correct for one in found))


def _one(settings: Settings, views: Sequence[View], running: bool) -> BaseWrite:
    log, last = settings.log(), marker_log(_MARKER)
    path = settings.work / "base-write"
    with fresh(path, views) as database:
        with pipeline(path, settings.work, "start") if running else nullcontext():
            start = time.perf_counter()
            ops = database.write(log, settings.call)
            seconds = time.perf_counter() - start
            database.write(last, settings.call)
            if running:
                database.await_visible(marker_key(_MARKER), settings.timeout)
        if not running and views:
            database.catch_up(settings.epoch)
        return BaseWrite(len(views), running, ops, seconds, database.correct([log, last]))


if __name__ == "__main__":
    main(run)
