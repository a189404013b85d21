"""The one place where scenarios touch Belvedere's public API."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from belvedere.bench import workload
from belvedere.bench.oracle import Log, Oracle
from belvedere.bench.views import CREATE_TABLE, WHOLE, View, members

_COLUMNS = ["key", "grp", "val"]
_WARM_ROUNDS, _WARM_OPS = 4, 20_000
_POLL = 0.002
_WHOLE_EPOCH = 1_000_000
D = TypeVar("D", bound="Database")


class Database:
    """A database of the benchmark: table `r` and some of the views."""

    def __init__(self, path: Path, views: Sequence[View]) -> None:
        self.views = tuple(views)
        self.db: Any = import_module("belvedere").open(str(path))

    def create(self) -> None:
        self.db.sql(CREATE_TABLE)
        for view in self.views:
            self.db.sql(view.create)

    def write(self, log: Log, call: int) -> int:
        """All operations of a log, in order, durable call by call; their number."""
        table, written = self.db.table("r"), 0
        for batch in batches(log, call):
            table.write_many(batch.select(_COLUMNS), deletes=pc.equal(batch.column("op"), "delete"))
            written += batch.num_rows
        return written

    def catch_up(self, max_rows: int) -> list[Any]:
        """Epochs until everything written is in every view; each has epoch, operations, seconds and
        stages.
        """
        return list(self.db.catch_up(max_rows=max_rows))

    def visible(self, marker: str) -> bool:
        """Whether every view shows the row that `marker_log` wrote."""
        return all(self.db.view(v.name).get(_view_key(v, marker)) is not None for v in self.views)

    def await_visible(self, marker: str, timeout: float) -> None:
        deadline, pause = time.perf_counter() + timeout, threading.Event()
        while not self.visible(marker):
            if time.perf_counter() > deadline:
                raise TimeoutError(
                    f"{marker} is not in every view after {timeout:.0f} s: is the pipeline running?"
                )
            pause.wait(_POLL)

    def correct(self, logs: Sequence[Log]) -> bool:
        """Whether every view holds what the oracle says; without views, whether the base table
        does.
        """
        if not self.views:
            self.db.sql(WHOLE.create)
            self.views = (WHOLE,)
            self.catch_up(_WHOLE_EPOCH)
        oracle = Oracle(logs)
        try:
            return all(oracle.agrees(v, self.db.view(v.name).to_arrow()) for v in self.views)
        finally:
            oracle.close()

    def close(self) -> None:
        self.db.close()


@contextmanager
def fresh(path: Path, views: Sequence[View]) -> Iterator[Database]:
    """A new database that is gone afterwards."""
    with emptied(path):
        database = Database(path, views)
        with created(database):
            yield database


@contextmanager
def emptied(path: Path) -> Iterator[None]:
    """No directory before, none afterwards."""
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def created(database: D) -> Iterator[D]:
    """The tables and views of a database of any kind; it is closed afterwards."""
    try:
        database.create()
        yield database
    finally:
        database.close()


@contextmanager
def opened(path: Path, views: Sequence[View]) -> Iterator[Database]:
    """A database that exists, as a second process sees it."""
    database = Database(path, views)
    try:
        yield database
    finally:
        database.close()


def warm_up(work: Path, call: int) -> None:
    """Starts Spark and lets JVM and workers see every code path: start-up is not part of any
    figure.
    """
    with fresh(work / "warm-up", members("V_all")) as database:
        for round_ in range(_WARM_ROUNDS):
            database.write(workload.generate(_WARM_OPS, _WARM_OPS // 4, 100, seed=round_), call)
            database.catch_up(_WARM_OPS)


def marker_log(marker: str, rows: int = 1) -> pa.Table:
    """Puts that every view shows: `visible(marker)` looks for the last of them."""
    keys = [f"{marker}-{i}" for i in range(rows)]
    return pa.table(
        {
            "seq": pa.array(range(rows), pa.int64()),
            "op": ["put"] * rows,
            "key": keys,
            "grp": [marker] * rows,
            "val": pa.array([1] * rows, pa.int64()),
        }
    )


def marker_key(marker: str, rows: int = 1) -> str:
    return f"{marker}-{rows - 1}"


def _view_key(view: View, marker: str) -> Any:
    """The marker's key in a view: by key (V1, V5), by group (V2, V3, W...), by both (V4)."""
    grp = marker.rpartition("-")[0]
    return {"V1": marker, "V5": marker, "V4": (grp, marker)}.get(view.name, grp)


def batches(log: Log, call: int) -> Iterator[pa.RecordBatch]:
    if isinstance(log, Path):
        yield from pq.ParquetFile(log).iter_batches(batch_size=call)
    else:
        yield from log.to_batches(max_chunksize=call)


def operations(epochs: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(e.operations) for e in epochs)
