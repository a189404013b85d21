"""Single put: one durable row beside one LMDB transaction, and beside one append to a file with an
fsync, that write the same bytes.

The same bytes are a row (key, grp and val) and a log entry with the row before and after. The three
take turns, so that whatever else the disk does meets all.
"""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa

from belvedere.bench import workload
from belvedere.bench.peers import p50_ms
from belvedere.bench.results import Results, SinglePut
from belvedere.bench.scenarios.database import fresh
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.views import members

_LOADED = 100_000
_Row = dict[str, Any]


def run(settings: Settings) -> Results:
    load = workload.load(_LOADED, settings.groups, settings.seed)
    puts = workload.touch(
        settings.puts, _LOADED, settings.groups, deletes=0.0, seed=settings.seed + 1
    )
    # row, row before, row after; key twice; position
    size = 3 * len(_packed("x000000", 0)) + 2 * len("k000000000") + 8
    ours, bare, appended = [], [], []
    with (
        fresh(settings.work / "single-put", members("V2")) as database,
        _bare(settings.work / "single-put-lmdb", load) as lmdb_put,
        _appending(settings.work / "single-put-file", size) as append,
    ):
        database.write(load, settings.call)
        table = database.db.table("r")
        for position, row in enumerate(puts.select(["key", "grp", "val"]).to_pylist()):
            ours.append(_timed(table.put, row))
            bare.append(_timed(lmdb_put, position, row))
            appended.append(_timed(append))
        database.catch_up(settings.epoch)
        correct = database.correct([load, puts])
    times = (p50_ms(ours), _p95(ours), p50_ms(bare), _p95(bare), p50_ms(appended))
    return Results(single_puts=(SinglePut(len(ours), *times, size, correct),))


def _timed(action: Callable[..., Any], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def _p95(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)] * 1_000


def _packed(grp: str, val: int) -> bytes:
    return grp.encode() + struct.pack(">q", val)


@contextmanager
def _bare(path: Path, load: pa.Table) -> Iterator[Callable[[int, _Row], None]]:
    """A function that puts a row and its log entry in one synced transaction."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    env = lmdb.open(str(path), map_size=4 << 30, max_dbs=2)
    rows, log = env.open_db(b"rows"), env.open_db(b"log")
    with env.begin(write=True) as txn:
        txn.cursor(rows).putmulti(
            [
                (k.encode(), _packed(g, v))
                for k, g, v in zip(
                    *(load[c].to_pylist() for c in ("key", "grp", "val")), strict=True
                )
            ]
        )

    def put(position: int, row: _Row) -> None:
        key, new = row["key"].encode(), _packed(row["grp"], row["val"])
        with env.begin(write=True) as txn:
            old = bytes(txn.get(key, db=rows) or b"")
            txn.put(key, new, db=rows)
            txn.put(struct.pack(">Q", position), key + old + new, db=log, append=True)

    try:
        yield put
    finally:
        env.close()
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _appending(path: Path, size: int) -> Iterator[Callable[[], None]]:
    """A function that appends so many bytes to a file and waits for the disk."""
    content = os.urandom(size)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append() -> None:
        os.write(descriptor, content)
        os.fsync(descriptor)

    try:
        yield append
    finally:
        os.close(descriptor)
        path.unlink()


if __name__ == "__main__":
    main(run)
