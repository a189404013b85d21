"""DuckDB without incremental maintenance, for the join: upsert both tables, then compute the join
again, at each refresh.

As duckdb_refresh.py, over the log of two tables: a refresh keeps the last operation per key and
table, applies them in one durable transaction, and replaces the view.
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
from belvedere.bench.oracle import JoinOracle
from belvedere.bench.peers import PROBES, PeerResult, in_process, main, p50_ms, timed
from belvedere.bench.peers.duckdb_refresh import BATCH, ENGINE
from belvedere.bench.views import JOIN, V5

_LAST = """CREATE OR REPLACE TEMP TABLE last AS
    SELECT key, max_by(op, seq) AS op, arg_max_null(grp, seq) AS grp, arg_max_null(val, seq) AS val
    FROM batch WHERE tbl = 'R' GROUP BY key"""
_DELETE = "DELETE FROM r USING last WHERE r.key = last.key AND last.op = 'delete'"
_UPSERT = """INSERT INTO r SELECT key, grp, val FROM last WHERE op = 'put'
    ON CONFLICT (key) DO UPDATE SET grp = excluded.grp, val = excluded.val"""
_UPSERT_SMALL = """INSERT INTO s
    SELECT grp, max_by(name, seq) FROM batch WHERE tbl = 'S' GROUP BY grp
    ON CONFLICT (grp) DO UPDATE SET name = excluded.name"""


def run(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    """Measures in a fresh process; `state_dir` must not hold an older state.

    The only view is V5.
    """
    return in_process(__name__, ops_path, view, state_dir, batch)


def measure(ops_path: Path, view: str, state_dir: Path, batch: int = BATCH) -> PeerResult:
    if view != JOIN:
        raise ValueError(f"{view} is not a join: use {JOIN}, or the peer duckdb_refresh")
    state_dir.mkdir(parents=True, exist_ok=True)
    base = Refreshed(state_dir / "state.duckdb")
    log = pq.ParquetFile(ops_path)
    start = time.perf_counter()
    for block in log.iter_batches(batch_size=batch):
        base.refresh(pa.Table.from_batches([block]))
    seconds, rss, ops = time.perf_counter() - start, process.peak_rss_mb(), log.metadata.num_rows
    correct = JoinOracle([ops_path]).agrees(V5, base.contents())
    return PeerResult(
        ENGINE, view, ops, batch, ops / seconds, seconds, correct, p50_ms(_fresh(base, log)), rss
    )


class Refreshed:
    """Two base tables in a DuckDB file and their join, as new as the last refresh."""

    def __init__(self, file: Path) -> None:
        self._db = duckdb.connect(str(file))
        self._db.execute("CREATE TABLE r (key VARCHAR PRIMARY KEY, grp VARCHAR, val BIGINT)")
        self._db.execute("CREATE TABLE s (grp VARCHAR PRIMARY KEY, name VARCHAR)")

    def refresh(self, operations: pa.Table) -> None:
        self._db.register("batch", operations)
        for statement in ("BEGIN", _LAST, _DELETE, _UPSERT, _UPSERT_SMALL, "COMMIT"):
            self._db.execute(statement)
        self._db.execute(f"CREATE OR REPLACE TABLE {V5.name} AS {V5.duckdb}")

    def contents(self) -> pa.Table:
        return self._db.sql(f"FROM {V5.name}").to_arrow_table()


def _fresh(base: Refreshed, log: pq.ParquetFile) -> list[float]:
    """Seconds for ten operations, upserted and the join computed again."""
    some = pa.Table.from_batches([next(log.iter_batches(batch_size=2_000))])
    return timed(partial(base.refresh, some.slice(1_000 + i * 10, 10)) for i in range(PROBES))


if __name__ == "__main__":
    main(measure, sys.argv[1:])
