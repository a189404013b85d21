"""Belvedere: materialized views in SQL over tables in key-value stores, kept correct incrementally,
on Apache Spark.

    import belvedere
    db = belvedere.open("shop")
    db.sql("CREATE TABLE orders (id STRING, region STRING, amount BIGINT, PRIMARY KEY (id))")
    db.table("orders").put({"id": "o1", "region": "emea", "amount": 7})
    db.sql("CREATE MATERIALIZED VIEW revenue AS SELECT region, sum(amount) AS total FROM orders
    GROUP BY region")
    db.catch_up()
    db.view("revenue").get("emea")

How the code is laid out, in the order in which data flows:

    encoding/     bytes: ordered keys, compact rows, slots
    input/        1 what happened      rows that users write, checked
    changes/      2 what differs       from operations to net changes
    expressions/  SQL expressions, lowered to DuckDB; evaluation.py runs them
    operators/    3 how it travels     one operator per file
    graph/        operators and what feeds them, as the catalog keeps them
    sql/          SQL to maintenance graph, queries
    explain/      how a view is maintained: a tree, and its text
    catalog/      4 what is kept       definitions, how views join, pins
    readers/      5 what is seen       cuts, rows, sessions
    why/          which base rows make up a record, and what is missing
    epochs/       lease, intents, commits, coordinator, view managers, verify, repair
    capture/      following sources: transactions, copies and positions in our log
    spark/        all that knows Spark: sessions, the runner of epochs, DataFrames
    stores/       plug-ins: base (the contract), memory (the specification), embedded, hbase
    sources/      plug-ins: databases of others, their changes and answers
    warehouse/    views over such databases that keep nothing but the view: the Strobe family
    statements/   one module per kind of SQL statement
    consistency/  the judge of histories; imports nothing of the engine
    cost/         what a view would cost
    database.py, table.py, view.py, result.py, prepared.py, preview.py, status.py, table_status.py,
    source_status.py, kept_status.py, connections.py, inspection.py, salvage.py, base_checks.py,
    holding.py, backups.py, recording.py, feed.py, data_source.py, transaction.py, collected.py,
    session.py    what users hold in their hands
    cli/, bench/  the command line, the benchmark
    errors.py, types.py, processes.py, libraries.py, waiting.py
                  below everything: errors, shared words, processes, large libraries loaded late
    testing.py    for tests of operators: tables as text
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belvedere.backups import compact, restore
    from belvedere.database import Database, open
    from belvedere.epochs.coordinator import EpochReport
    from belvedere.epochs.handle import Pipeline
    from belvedere.epochs.verify import Verification
    from belvedere.errors import BelvedereError
    from belvedere.result import Result
    from belvedere.status import Status
    from belvedere.table import Table
    from belvedere.transaction import Transaction
    from belvedere.view import View

__version__ = "0.1.0"
__all__ = [
    "BelvedereError",
    "Database",
    "EpochReport",
    "Pipeline",
    "Result",
    "Status",
    "Table",
    "Transaction",
    "Verification",
    "View",
    "compact",
    "open",
    "restore",
]

_HOMES = {
    "BelvedereError": "errors",
    "Database": "database",
    "EpochReport": "epochs.coordinator",
    "Pipeline": "epochs.handle",
    "Result": "result",
    "Status": "status",
    "Table": "table",
    "Transaction": "transaction",
    "Verification": "epochs.verify",
    "View": "view",
    "compact": "backups",
    "open": "database",
    "restore": "backups",
}


def __getattr__(name: str) -> Any:
    """A public name is loaded when it is first used: the command line, whose modules are below here
    too, needs few of them.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
