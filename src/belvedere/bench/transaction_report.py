"""The table of a report about transactions."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import mark, new_table
from belvedere.bench.results import Results


def transactions(results: Results) -> Table:
    table = new_table(
        "Transactions, beside plain calls with the same operations",
        "operations",
        "times",
        "transaction, p50 ms",
        "plain, p50 ms",
        "overhead",
        "correct",
    )
    for t in results.transactions:
        table.add_row(
            t.name,
            f"{t.count:,}",
            f"{t.transaction_ms:.3f}",
            f"{t.plain_ms:.3f}",
            f"{t.overhead:+.0%}",
            mark(t.correct),
        )
    table.caption = "one sync of the disk each; a row that was read is compared"
    return table
