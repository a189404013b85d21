"""Reads: `get` on views beside LMDB's own, and a consistent scan of a whole view.

LMDB holds the same keys with the same contents. Each `get` of ours is a consistent read of its own,
so it is held against an LMDB read transaction with one get; a get inside an open transaction is
shown too. Base rows are read twice: settled, and with operations waiting in the log, which the
reader has met before.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pyarrow as pa

from belvedere.bench import workload
from belvedere.bench.disk_results import BaseRead
from belvedere.bench.results import PointRead, Results, Scan
from belvedere.bench.scenarios.database import Database, fresh, warm_up
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import VIEWS, View, members

_KEYED = {"V1": "key", "V2": "grp"}
_SCANNED = ("V1", "V4")
_SCANS = 5
_TURN = 100  # reads
_Reader = tuple[Callable[[Any], Any], list[Any]]  # how to read, and which keys


def run(settings: Settings) -> Results:
    warm_up(settings.work, settings.call)
    log = settings.log()
    with fresh(settings.work / "reads", members("V_all")) as database:
        database.write(log, settings.call)
        database.catch_up(settings.ops)
        correct = database.correct([log])
        points = tuple(
            _points(settings, database, VIEWS[name], column, correct)
            for name, column in _KEYED.items()
        )
        scans = tuple(_scan(database, VIEWS[name], correct) for name in _SCANNED)
        settled = _base_rows(settings, database, 0)
        more = workload.touch(settings.waiting, settings.keys, settings.groups, seed=settings.seed)
        waiting = _base_rows(settings, database, database.write(more, settings.call))
        return Results(point_reads=points, scans=scans, base_reads=(settled, waiting))


def _points(
    settings: Settings, database: Database, view: View, column: str, correct: bool
) -> PointRead:
    contents = database.db.view(view.name).to_arrow()
    keys = _drawn(contents[column].to_pylist(), settings.reads, settings.seed)
    get = database.db.view(view.name).get
    with _bare(settings.work / "reads-lmdb", contents, column) as (own, open_):
        encoded = [key.encode() for key in keys]
        readers: list[_Reader] = [(get, keys), (own, encoded), (open_, encoded)]
        # which warms all of them
        right = correct and all(found(key) is not None for found, drawn in readers for key in drawn)
        ours, lmdb_own, lmdb_open = _p50_us(readers)
        return PointRead(view.name, len(keys), ours, lmdb_own, lmdb_open, right)


def _base_rows(settings: Settings, database: Database, waiting: int) -> BaseRead:
    contents = database.db.sql("SELECT * FROM r").to_arrow()
    keys = _drawn(contents["key"].to_pylist(), settings.reads, settings.seed)
    get = database.db.table("r").get
    with _bare(settings.work / "reads-lmdb", contents, "key") as (own, _):
        encoded = [key.encode() for key in keys]
        readers: list[_Reader] = [(get, keys), (own, encoded)]
        right = all(found(key) is not None for found, drawn in readers for key in drawn)
        ours, lmdb_own = _p50_us(readers)
        return BaseRead(waiting, len(keys), ours, lmdb_own, right)


def _drawn(keys: list[str], count: int, seed: int) -> list[str]:
    return [keys[i] for i in np.random.default_rng(seed).integers(0, len(keys), count)]


def _p50_us(readers: list[_Reader]) -> list[float]:
    """Of each reader. They take turns, so that a slow second of the machine is one for all."""
    seconds: list[list[float]] = [[] for _ in readers]
    for start in range(0, len(readers[0][1]), _TURN):
        for (get, keys), times in zip(readers, seconds, strict=True):
            for key in keys[start : start + _TURN]:
                began = time.perf_counter()
                get(key)
                times.append(time.perf_counter() - began)
    return [statistics.median(times) * 1e6 for times in seconds]


@contextmanager
def _bare(
    path: Path, contents: pa.Table, column: str
) -> Iterator[tuple[Callable[[bytes], Any], Callable[[bytes], Any]]]:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    env = lmdb.open(str(path), map_size=4 << 30)
    with env.begin(write=True) as txn:
        txn.cursor().putmulti(
            [(row[column].encode(), repr(row).encode()) for row in contents.to_pylist()]
        )

    def own(key: bytes) -> Any:
        with env.begin() as txn:
            return txn.get(key)

    try:
        with env.begin() as txn:
            yield own, txn.get
    finally:
        env.close()
        shutil.rmtree(path, ignore_errors=True)


def _scan(database: Database, view: View, correct: bool) -> Scan:
    seconds, rows = [], 0
    for _ in range(_SCANS):
        start = time.perf_counter()
        rows = database.db.view(view.name).to_arrow().num_rows
        seconds.append(time.perf_counter() - start)
    return Scan(view.name, rows, statistics.median(seconds), correct)


if __name__ == "__main__":
    main(run)
