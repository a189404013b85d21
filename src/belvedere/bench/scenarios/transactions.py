"""Transactions beside plain calls that write the same rows: one put, a get and a put, and a call of
many rows.

Each is one transaction of the log, and waits for the disk once. The two take turns, so that
whatever else the disk does meets both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from belvedere.bench import workload
from belvedere.bench.peers import p50_ms
from belvedere.bench.results import Results
from belvedere.bench.scenarios.database import fresh
from belvedere.bench.scenarios.settings import Settings, main
from belvedere.bench.transaction_results import TransactionCost

_LOADED = 100_000
_CALLS = 30  # of many rows
_Work = Callable[[Any, Any], None]  # of a table and rows


def run(settings: Settings) -> Results:
    load = workload.load(_LOADED, settings.groups, settings.seed)
    with fresh(settings.work / "transactions", ()) as database:
        database.write(load, settings.call)
        found = [
            _measured(database.db, name, work, rows) for name, work, rows in _cases(settings, load)
        ]
    return Results(transactions=tuple(found))


def _cases(settings: Settings, load: Any) -> Iterator[tuple[str, _Work, list[Any]]]:
    rows = load.select(["key", "grp", "val"])
    single = rows.slice(0, 2 * settings.puts).to_pylist()
    yield "a put", _put, single
    yield "a get and a put", _get_and_put, single
    calls = [rows.slice(start % _LOADED, settings.call) for start in _starts(settings.call)]
    yield f"put_many of {len(calls[0]):,}", _put_many, calls


def _starts(call: int) -> range:
    return range(0, 2 * _CALLS * call, call)


def _put(table: Any, row: Any) -> None:
    table.put({**row, "val": row["val"] + 1})


def _get_and_put(table: Any, row: Any) -> None:
    table.put({**table.get(row["key"]), "val": row["val"] + 2})


def _put_many(table: Any, rows: Any) -> None:
    table.put_many(rows)


def _measured(db: Any, name: str, work: _Work, rows: list[Any]) -> TransactionCost:
    """Every second row in a transaction."""
    table = db.table("r")
    inside, plain = [], []
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        inside.append(_timed(_transact, db, work, one))
        plain.append(_timed(work, table, other))
    correct = all(_is_there(table, row, name) for row in (rows[0], rows[1], rows[-2], rows[-1]))
    return TransactionCost(name, len(inside), p50_ms(inside), p50_ms(plain), correct)


def _transact(db: Any, work: _Work, row: Any) -> None:
    with db.transaction() as transaction:
        work(transaction.table("r"), row)


def _is_there(table: Any, row: Any, name: str) -> bool:
    """Whether a row has the value that it was given last."""
    if not isinstance(row, dict):
        return all(table.get(one["key"]) == one for one in row.slice(0, 10).to_pylist())
    more = 1 if name == "a put" else 2
    return bool(table.get(row["key"])["val"] == row["val"] + more)


def _timed(action: Callable[..., None], *arguments: Any) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    main(run)
