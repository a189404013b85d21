"""The join V5 in a database: tables r and s, and logs of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.bench import workload_join
from belvedere.bench.oracle import JoinOracle, Log
from belvedere.bench.scenarios.database import Database, batches, created, emptied, marker_log
from belvedere.bench.views import CREATE_SMALL, CREATE_TABLE, V5

_R, _S = ["key", "grp", "val"], ["grp", "name"]
_WARM_ROUNDS, _WARM_OPS = 4, 20_000


class JoinDatabase(Database):
    """Tables r and s, and V5 over them."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, (V5,))

    def create(self) -> None:
        self.db.sql(CREATE_TABLE)
        self.db.sql(CREATE_SMALL)
        self.db.sql(V5.create)

    def write(self, log: Log, call: int) -> int:
        """Every call is a transaction per table.

        Operations on different tables do not depend on each other's order.
        """
        r, s, written = self.db.table("r"), self.db.table("s"), 0
        for batch in batches(log, call):
            on_s = pc.equal(batch.column("tbl"), "S")
            left, right = batch.filter(pc.invert(on_s)), batch.filter(on_s)
            if left.num_rows:
                r.write_many(left.select(_R), deletes=pc.equal(left.column("op"), "delete"))
            if right.num_rows:
                s.put_many(right.select(_S))
            written += batch.num_rows
        return written

    def correct(self, logs: Sequence[Log]) -> bool:
        oracle = JoinOracle(logs)
        try:
            return oracle.agrees(V5, self.db.view(V5.name).to_arrow())
        finally:
            oracle.close()


@contextmanager
def fresh_join(path: Path) -> Iterator[JoinDatabase]:
    """A new database that is gone afterwards."""
    with emptied(path), created(JoinDatabase(path)) as database:
        yield database


def warm_up_join(work: Path, call: int) -> None:
    """As `warm_up`, through the join."""
    with fresh_join(work / "warm-up") as database:
        for round_ in range(_WARM_ROUNDS):
            database.write(
                workload_join.generate(_WARM_OPS, _WARM_OPS // 4, 100, seed=round_), call
            )
            database.catch_up(_WARM_OPS)


def join_marker_log(marker: str) -> pa.Table:
    """A row of r and its match in s."""
    r = workload_join.only_r(marker_log(marker))
    s = r.set_column(1, "tbl", pa.array(["S"])).set_column(6, "name", pa.array([marker]))
    return pa.concat_tables([r, s])
