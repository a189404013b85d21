"""What a view must hold at the end: last operation per key over the whole log, then the view's SQL,
in DuckDB.

A log may come in parts (a first million, a second one, probes); later parts happened later. Nothing
here shares code with the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa

from belvedere.bench.views import View

Log: TypeAlias = Path | pa.Table
_LATEST = """CREATE TABLE r AS SELECT key, last.grp AS grp, last.val AS val FROM (
    SELECT key, max_by({'op': op, 'grp': grp, 'val': val}, (part, seq)) AS last
    FROM ops GROUP BY key
) WHERE last.op = 'put'"""
_LATEST_OF_R = _LATEST.replace("FROM ops", "FROM ops WHERE tbl = 'R'")
_LATEST_OF_S = (
    "CREATE TABLE s AS SELECT grp, max_by(name, (part, seq)) AS name FROM ops WHERE tbl = 'S' GROUP"
    " BY grp"
)


class Oracle:
    """The base table after the given logs, ready to be asked for any view."""

    columns = "seq, op, key, grp, val"
    tables: tuple[str, ...] = (_LATEST,)

    def __init__(self, logs: Sequence[Log]) -> None:
        self._db = duckdb.connect()
        parts = [
            f"SELECT {i} AS part, {self.columns} FROM {self._source(i, log)}"
            for i, log in enumerate(logs)
        ]
        self._db.execute(f"CREATE VIEW ops AS {' UNION ALL '.join(parts)}")
        for table in self.tables:
            self._db.execute(table)

    def expected(self, view: View) -> pa.Table:
        return self._db.sql(view.duckdb).to_arrow_table()

    def differences(self, view: View, got: pa.Table) -> int:
        """Rows too many plus rows missing, duplicates counted; 0 is a correct view."""
        self._db.register("got", got.select(list(view.columns)))
        self._db.execute(f"CREATE OR REPLACE TEMP VIEW want AS {view.duckdb}")
        sides = "((FROM got EXCEPT ALL FROM want) UNION ALL (FROM want EXCEPT ALL FROM got))"
        # to its end: an open result blocks the connection
        ((count,),) = self._db.execute(f"SELECT count(*) FROM {sides}").fetchall()
        self._db.unregister("got")
        return int(count)

    def agrees(self, view: View, got: pa.Table) -> bool:
        return self.differences(view, got) == 0

    def close(self) -> None:
        self._db.close()

    def _source(self, number: int, log: Log) -> str:
        if isinstance(log, Path):
            return "read_parquet('{}')".format(str(log).replace("'", "''"))
        self._db.register(f"log{number}", log)
        return f"log{number}"


class JoinOracle(Oracle):
    """The same for logs of two tables (workload_join.py)."""

    columns = "seq, tbl, op, key, grp, val, name"
    tables = (_LATEST_OF_R, _LATEST_OF_S)
