"""LMDB by hand: what a careful programmer writes for exactly these views, one record at a time.

One Python process, one durable transaction per batch: the base rows first, which tells what each
row was before, then view by view with those changes. A base row is grp (7 bytes) and val (4 bytes,
big-endian, so bytes sort as numbers). V3 and V4 are composite keys without values, so a group's
minimum and maximum are two cursor seeks.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.bench import process
from belvedere.bench.oracle import Oracle
from belvedere.bench.peers import PROBES, PeerResult, in_process, main, p50_ms, timed
from belvedere.bench.views import VIEWS, members

ENGINE = "lmdb_by_hand"
BATCH = 10_000
_VALUE = struct.Struct(">I")
_SUMS = struct.Struct(">qq")  # count, sum
_GRP = 7  # bytes of a grp
_Get = Callable[..., Any]  # LMDB says bytes or memoryview; without `buffers` it is bytes
_Operation = tuple[str, str, str | None, int | None]
_Changes = list[tuple[bytes, bytes | None, bytes | None]]  # key, old row, new row


def run(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    """Measures in a fresh process; `state_dir` must not hold an older state."""
    return in_process(__name__, ops_path, view, state_dir, batch)


def measure(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    store = Store(state_dir, tuple(v.name for v in members(view)))
    start = time.perf_counter()
    for operations in _operations(ops_path, batch):
        store.apply(operations)
    seconds, rss = time.perf_counter() - start, process.peak_rss_mb()
    oracle = Oracle([ops_path])
    correct = all(oracle.agrees(v, store.contents(v.name)) for v in members(view))
    ops = pq.ParquetFile(ops_path).metadata.num_rows
    return PeerResult(
        ENGINE,
        view,
        ops,
        batch,
        ops / seconds,
        seconds,
        correct,
        p50_ms(_fresh(store, ops_path)),
        rss,
    )


class Store:
    def __init__(self, directory: Path, views: tuple[str, ...]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._env = lmdb.open(str(directory), map_size=16 << 30, max_dbs=8)
        self._base = self._env.open_db(b"base")
        self._views = {name: self._env.open_db(name.encode()) for name in views}

    def apply(self, operations: list[_Operation]) -> None:
        with self._env.begin(write=True) as txn:
            changes = _write_base(txn, self._base, operations)
            for name, db in self._views.items():
                _MAINTAIN[name](txn, db, changes)

    def contents(self, view: str) -> pa.Table:
        with self._env.begin() as txn:
            rows = list(_ROWS[view](txn.cursor(self._views[view])))
        columns = zip(*rows, strict=True) if rows else [() for _ in VIEWS[view].columns]
        return pa.table(
            {name: list(values) for name, values in zip(VIEWS[view].columns, columns, strict=True)}
        )


def _write_base(
    txn: lmdb.Transaction, db: lmdb._Database, operations: list[_Operation]
) -> _Changes:
    get: _Get = txn.get
    put, delete, pack = txn.put, txn.delete, _VALUE.pack
    changes: _Changes = []
    for op, name, grp, val in operations:
        key, new = name.encode(), None
        old = get(key, db=db)
        if op == "put":
            new = grp.encode() + pack(val)  # type: ignore[union-attr]  # a put has both
            put(key, new, db=db)
        else:
            delete(key, db=db)
        changes.append((key, old, new))
    return changes


def _selection(txn: lmdb.Transaction, db: lmdb._Database, changes: _Changes) -> None:
    put, delete, bound = txn.put, txn.delete, _VALUE.pack(5_000)
    for key, old, new in changes:
        if new and new[_GRP:] < bound:
            put(key, new, db=db)
        elif old:
            delete(key, db=db)


def _count_and_sum(txn: lmdb.Transaction, db: lmdb._Database, changes: _Changes) -> None:
    get: _Get = txn.get
    put, delete, pack, unpack, value = (
        txn.put,
        txn.delete,
        _SUMS.pack,
        _SUMS.unpack,
        _VALUE.unpack_from,
    )
    for _, old, new in changes:
        if old:
            grp = old[:_GRP]
            n, total = unpack(get(grp, db=db))
            if n == 1:
                delete(grp, db=db)
            else:
                put(grp, pack(n - 1, total - value(old, _GRP)[0]), db=db)
        if new:
            grp = new[:_GRP]
            stored = get(grp, db=db)
            n, total = unpack(stored) if stored else (0, 0)
            put(grp, pack(n + 1, total + value(new, _GRP)[0]), db=db)


def _ordered_values(txn: lmdb.Transaction, db: lmdb._Database, changes: _Changes) -> None:
    put, delete = txn.put, txn.delete
    for key, old, new in changes:
        if old:
            delete(old + key, db=db)
        if new:
            put(new + key, b"", db=db)


def _index(txn: lmdb.Transaction, db: lmdb._Database, changes: _Changes) -> None:
    put, delete = txn.put, txn.delete
    for key, old, new in changes:
        if old:
            delete(old[:_GRP] + key, db=db)
        if new:
            put(new[:_GRP] + key, b"", db=db)


def _extremes(cursor: Any) -> Iterator[tuple[str, int, int]]:
    found = cursor.first()
    while found:
        lowest = cursor.key()
        grp = lowest[:_GRP]
        beyond = cursor.set_range(grp + b"\xff" * 5)
        highest = cursor.key() if (cursor.prev() if beyond else cursor.last()) else lowest
        yield (
            grp.decode(),
            _VALUE.unpack_from(lowest, _GRP)[0],
            _VALUE.unpack_from(highest, _GRP)[0],
        )
        found = cursor.next()


_MAINTAIN = {"V1": _selection, "V2": _count_and_sum, "V3": _ordered_values, "V4": _index}
_ROWS: dict[str, Callable[[Any], Iterator[tuple[object, ...]]]] = {
    "V1": lambda cursor: (
        (k.decode(), v[:_GRP].decode(), _VALUE.unpack_from(v, _GRP)[0]) for k, v in cursor
    ),
    "V2": lambda cursor: ((k.decode(), *_SUMS.unpack(v)) for k, v in cursor),
    "V3": _extremes,
    "V4": lambda cursor: ((k[:_GRP].decode(), k[_GRP:].decode()) for k, _ in cursor),
}


def _operations(path: Path, batch: int) -> Iterator[list[_Operation]]:
    for block in pq.ParquetFile(path).iter_batches(
        batch_size=batch, columns=["op", "key", "grp", "val"]
    ):
        yield list(zip(*(column.to_pylist() for column in block.columns), strict=True))


def _fresh(store: Store, path: Path) -> list[float]:
    """Seconds for ten puts, committed."""
    puts = [o for o in next(_operations(path, 10_000)) if o[0] == "put"]
    return timed(partial(store.apply, puts[i * 10 : i * 10 + 10]) for i in range(PROBES))


if __name__ == "__main__":
    main(measure, sys.argv[1:])
