"""Disk: many more operations than one table has rows, end to end, and what that does to the files.

sustained    five million operations on 1.25 million keys, or as many as asked for
overwritten  700,000 operations on 20,000 keys: nearly all that is written is dead soon
pinned       the same while a reader holds the state in which they began
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from belvedere.bench import process, workload
from belvedere.bench.disk_results import DiskUse
from belvedere.bench.results import Results
from belvedere.bench.scenarios.database import Database, fresh, marker_key, marker_log
from belvedere.bench.scenarios.pipeline_process import pipeline
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import TOGETHER, members
from belvedere.readers.cut import open_cut

_MARKER = "zz-end"
_LOOK = 0.25  # seconds between two looks at the directory


def run(settings: Settings) -> Results:
    keys = settings.keys * settings.sustained_ops // settings.ops
    found = [
        _one(settings, "sustained", view, settings.sustained_ops, keys)
        for view in ("V2", TOGETHER)
        if view in settings.views
    ]
    for name, is_pinned in (("overwritten", False), ("overwritten, pinned", True)):
        sizes = settings.overwrites, settings.overwritten
        found.append(_one(settings, name, TOGETHER, *sizes, is_pinned))
    return Results(disk=tuple(found))


def _one(
    settings: Settings, name: str, view: str, ops: int, keys: int, is_pinned: bool = False
) -> DiskUse:
    log = workload.generate(ops, keys, settings.groups, settings.dist, seed=settings.seed)
    last, path = marker_log(_MARKER), settings.work / "disk"
    with fresh(path, members(view)) as database:
        with pipeline(path, settings.work, "start") as running, _held(database, is_pinned):
            before = _written_bytes(running.child.pid)
            with _Sizes(path) as sizes:
                start = time.perf_counter()
                database.write(log, settings.call)
                database.write(last, settings.call)
                database.await_visible(marker_key(_MARKER), settings.timeout)
                seconds = time.perf_counter() - start
            written = _written_bytes(running.child.pid) - before
            running.finish()
        return DiskUse(
            name,
            view,
            log.num_rows,
            keys,
            seconds,
            log.select(["key", "grp", "val"]).nbytes,
            written,
            sizes.largest,
            _size(path),
            _live(database),
            database.correct([log, last]),
        )


@contextmanager
def _pin(database: Database) -> Iterator[None]:
    with open_cut(database.db.store):
        yield


def _held(database: Database, is_pinned: bool) -> AbstractContextManager[None]:
    return _pin(database) if is_pinned else nullcontext()


def _live(database: Database) -> int:
    views = (database.db.view(view.name) for view in database.views)
    relations = (database.db.table("r"), *views)
    return sum(int(relation.to_arrow().nbytes) for relation in relations)


def _written_bytes(pipeline_pid: int) -> int:
    """Of this process and of the pipeline's, workers that have ended included."""
    return sum(_given_to_disk(pid) for pid in (os.getpid(), *process.tree(pipeline_pid)))


def _given_to_disk(pid: int) -> int:
    try:
        lines = Path("/proc", str(pid), "io").read_text().splitlines()
    except OSError:  # it ended while we looked: its parent has its bytes
        return 0
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def _size(path: Path) -> int:
    """What the files of a directory take on the disk: LMDB's have holes."""
    found = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                found += os.stat(os.path.join(folder, name)).st_blocks * 512
            except FileNotFoundError:  # merged away while we looked
                continue
    return found


class _Sizes:
    """Looks at a directory while the block runs."""

    def __init__(self, path: Path) -> None:
        self.largest, self._path, self._stop = 0, path, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Sizes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK):
            self.largest = max(self.largest, _size(self._path))


if __name__ == "__main__":
    main(run)
