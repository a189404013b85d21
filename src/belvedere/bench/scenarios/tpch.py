"""TPC-H: the cost of a changed row for Q3 and Q5, at scale factors a factor of ten apart.

Orders come with their lines, change and go; customers and suppliers change. A row of these tables
has as many matches at every scale factor, so its cost should not depend on how large the tables
are. (A nation has a share of all customers: changing it costs as much.)
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from belvedere.bench import tpch
from belvedere.bench.results import Results, TpchPoint
from belvedere.bench.scenarios.database import emptied
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.tpch_changes import Mix, Operations, Reference, Stream

QUERIES = ("q03", "q05")
_LOAD_ROWS = 500_000
_WARM_SCALE, _WARM_STEPS = 0.001, 4


def run(settings: Settings) -> Results:
    points = []
    for query in QUERIES:
        _point(settings, query, _WARM_SCALE, _WARM_STEPS)  # starts Spark and sees every code path
        points += [
            _point(settings, query, scale, settings.flat_repeats) for scale in settings.tpch_scales
        ]
    return Results(tpch=tuple(points))


def mix(orders: int) -> Mix:
    """Changes whose matches do not grow with the scale factor."""
    return {
        "orders": (orders, orders, orders),
        "lineitem": (0, orders, 0),
        "customer": (0, orders // 10, 0),
        "supplier": (0, 2, 0),
    }


def _point(settings: Settings, query: str, scale: float, repeats: int) -> TpchPoint:
    stream, reference = Stream(scale, settings.seed), Reference()
    with _database(settings.work / "tpch", query) as db:
        load = stream.load()
        write(db, load)
        reference.apply(load)
        base_rows = reference.rows()
        db.catch_up(max_rows=_LOAD_ROWS)
        # cold pages
        costs = [
            _cost(db, stream.step(mix(settings.tpch_orders)), reference) for _ in range(repeats + 1)
        ][1:]
        wrong = reference.difference(tpch.query(query), db.view(query).to_arrow())
    reference.close()
    rows = statistics.median(rows for rows, _ in costs)
    return TpchPoint(
        query,
        scale,
        base_rows,
        int(rows),
        repeats,
        statistics.median(us for _, us in costs),
        not wrong,
    )


def _cost(db: Any, operations: list[Operations], reference: Reference) -> tuple[int, float]:
    """Rows changed, and microseconds of maintenance for each."""
    rows = write(db, operations)
    reference.apply(operations)
    start = time.perf_counter()
    db.catch_up(max_rows=rows)
    return rows, (time.perf_counter() - start) / rows * 1e6


def write(db: Any, operations: list[Operations]) -> int:
    """All operations, table by table; their number."""
    for one in operations:
        db.table(one.table).write_many(one.rows, deletes=one.deletes)
    return sum(one.rows.num_rows for one in operations)


@contextmanager
def _database(path: Path, query: str) -> Iterator[Any]:
    with emptied(path), import_module("belvedere").open(str(path)) as db:
        for table in tpch.TABLES:
            db.sql(tpch.create_table(table))
        db.sql(f"CREATE MATERIALIZED VIEW {query} AS {tpch.query(query)}")
        yield db


if __name__ == "__main__":
    main(run)
