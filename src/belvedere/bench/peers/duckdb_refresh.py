"""DuckDB without incremental maintenance: upsert the base table, then compute every view again, at
each refresh.

A refresh takes `batch` operations, keeps the last one per key (ON CONFLICT may touch a row once per
statement) and applies them in one durable transaction; then each view is replaced.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.bench import process
from belvedere.bench.oracle import Oracle
from belvedere.bench.peers import PROBES, PeerResult, in_process, main, p50_ms, timed
from belvedere.bench.views import View, members

ENGINE = "duckdb_refresh"
BATCH = 10_000
_LAST = """CREATE OR REPLACE TEMP TABLE last AS
    SELECT key, max_by(op, seq) AS op, arg_max_null(grp, seq) AS grp, arg_max_null(val, seq) AS val
    FROM batch GROUP BY key"""
_DELETE = "DELETE FROM r USING last WHERE r.key = last.key AND last.op = 'delete'"
_UPSERT = """INSERT INTO r SELECT key, grp, val FROM last WHERE op = 'put'
    ON CONFLICT (key) DO UPDATE SET grp = excluded.grp, val = excluded.val"""


def run(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    """Measures in a fresh process; `state_dir` must not hold an older state."""
    return in_process(__name__, ops_path, view, state_dir, batch)


def measure(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    state_dir.mkdir(parents=True, exist_ok=True)
    base = Refreshed(state_dir / "state.duckdb", members(view))
    log = pq.ParquetFile(ops_path)
    start = time.perf_counter()
    for block in log.iter_batches(batch_size=batch):
        base.refresh(pa.Table.from_batches([block]))
    seconds, rss, ops = time.perf_counter() - start, process.peak_rss_mb(), log.metadata.num_rows
    oracle = Oracle([ops_path])
    correct = all(oracle.agrees(v, base.contents(v)) for v in members(view))
    return PeerResult(
        ENGINE, view, ops, batch, ops / seconds, seconds, correct, p50_ms(_fresh(base, log)), rss
    )


class Refreshed:
    """A base table in a DuckDB file and views that are as new as the last refresh."""

    def __init__(self, file: Path, views: tuple[View, ...]) -> None:
        self._views = views
        self._db = duckdb.connect(str(file))
        self._db.execute("CREATE TABLE r (key VARCHAR PRIMARY KEY, grp VARCHAR, val BIGINT)")

    def refresh(self, operations: pa.Table) -> None:
        self._db.register("batch", operations)
        for statement in ("BEGIN", _LAST, _DELETE, _UPSERT, "COMMIT"):
            self._db.execute(statement)
        for view in self._views:
            self._db.execute(f"CREATE OR REPLACE TABLE {view.name} AS {view.duckdb}")

    def contents(self, view: View) -> pa.Table:
        return self._db.sql(f"FROM {view.name}").to_arrow_table()


def _fresh(base: Refreshed, log: pq.ParquetFile) -> list[float]:
    """Seconds for ten operations, upserted and every view computed again."""
    some = pa.Table.from_batches([next(log.iter_batches(batch_size=2_000))])
    return timed(partial(base.refresh, some.slice(1_000 + i * 10, 10)) for i in range(PROBES))


if __name__ == "__main__":
    main(measure, sys.argv[1:])
