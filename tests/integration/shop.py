"""The table and views that integration tests share, and what the views must contain, computed in
plain Python.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa

import belvedere
from belvedere.stores.embedded import run_lists
from belvedere.stores.embedded.run_files import RunWriter

TABLE = (
    "CREATE TABLE orders (id STRING, region STRING, status STRING, amount BIGINT, PRIMARY KEY (id))"
)
VIEWS = {
    "revenue": (
        "SELECT region, count(*) AS n, sum(amount) AS total FROM orders WHERE status = 'paid' GROUP"
        " BY region"
    ),
    "extremes": "SELECT region, min(amount) AS lo, max(amount) AS hi FROM orders GROUP BY region",
    "paid": "SELECT id, amount FROM orders WHERE status = 'paid'",
    "by_region": "SELECT region, id FROM orders",
    "statuses": "SELECT region, status FROM orders",
}
OPTIONS = {"by_region": " WITH (key = 'region')"}


def create(db: belvedere.Database, views: dict[str, str] = VIEWS) -> None:
    for name, select in views.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name}{OPTIONS.get(name, '')} AS {select}")


def rows(count: int, seed: int, keys: int = 5000) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "id": f"o{rng.randrange(keys)}",
            "region": rng.choice(["emea", "apac", "amer", None]),
            "status": rng.choice(["paid", "open"]),
            "amount": rng.randrange(-1000, 1000),
        }
        for _ in range(count)
    ]


def expected(base: list[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in base:
        groups[row["region"]].append(row)
    paid = {g: [r["amount"] for r in found if r["status"] == "paid"] for g, found in groups.items()}
    return {
        "revenue": [(g, len(a), sum(a)) for g, a in paid.items() if a],
        "extremes": [
            (g, min(r["amount"] for r in f), max(r["amount"] for r in f)) for g, f in groups.items()
        ],
        "paid": [(r["id"], r["amount"]) for r in base if r["status"] == "paid"],
        "by_region": [(r["region"], r["id"]) for r in base],
        "statuses": [(r["region"], r["status"]) for r in base],
    }


def check(db: belvedere.Database, views: dict[str, str] = VIEWS) -> None:
    """Every view equals the recomputation over the base table as it is now: call it when nobody
    writes and all is caught up.
    """
    wanted = expected(db.table("orders").to_arrow().to_pylist())
    for name in views:
        found = [tuple(row.values()) for row in db.view(name).to_arrow().to_pylist()]
        assert sorted(found, key=repr) == sorted(wanted[name], key=repr), name


def _put(
    db: belvedere.Database, slot: int, table: int, keys: pa.BinaryArray, values: pa.BinaryArray
) -> None:
    """One more run before the newest ones of a table."""
    state: Any = db.store.state
    place = state._slot(slot)
    writer = RunWriter(place.files, 0, small=1 << 20)
    run = writer.add(table, [(keys, values)])

    def body(transaction: Any) -> None:
        epoch, data = run_lists.of_table(transaction, table)[-1]
        for name, section in writer.small.items():
            run_lists.put_section(transaction, name, section)
        runs = run, *run_lists.decode(data, f"table {table}")
        run_lists.put(transaction, table, epoch, runs)

    place.environment.write(body)


def damage(db: belvedere.Database, name: str) -> None:
    """Overwrite the first record of a view in its file, behind the engine's back."""
    table = db.state().view(name).planned.sink.table
    for slot in range(db.store.state.slots):
        reader = db.store.state.reader(slot, db.status().epoch)
        first = next(reader.scan(table), None)
        reader.close()
        if first is not None:
            keys, values = first
            value = values[0].as_py()
            # the low byte of a bag's count, the high byte of a sum
            place = 0 if len(value) == 8 else len(value) - 1
            wrong = value[:place] + bytes([value[place] ^ 3]) + value[place + 1 :]
            _put(db, slot, table, keys.slice(0, 1), pa.array([wrong], pa.binary()))
            return
