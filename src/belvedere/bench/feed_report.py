"""The tables of a report about feeds, Spark's data source and complete views."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import kops, mark, multiple, new_table
from belvedere.bench.results import Results


def feeds(results: Results) -> Table:
    table = new_table(
        "Feeds: epochs with and without a consumer, in turns",
        "view",
        "operations",
        "with, s",
        "without, s",
        "cost",
        "k changes/s",
        "correct",
    )
    for f in results.feeds:
        table.add_row(
            f.view,
            f"{f.ops:,}",
            f"{f.with_s:.2f}",
            f"{f.without_s:.2f}",
            f"{f.cost:+.0%}",
            kops(f.changes_per_s),
            mark(f.correct),
        )
    return table


def whole_scans(results: Results) -> Table:
    table = new_table(
        "All rows of a view, thousand rows per second",
        "view",
        "rows",
        "to_arrow",
        "first of a feed",
        "data source",
        "x to_arrow",
        "correct",
    )
    for s in results.whole_scans:
        speeds = (kops(s.rows / each) for each in (s.to_arrow_s, s.first_s, s.source_s))
        table.add_row(s.view, f"{s.rows:,}", *speeds, multiple(s.share), mark(s.correct))
    return table


def complete(results: Results) -> Table:
    table = new_table(
        "A complete view: an epoch for every transaction",
        "transactions",
        "operations",
        "complete, transactions/s",
        "strong, transactions/s",
        "correct",
    )
    for c in results.complete:
        speeds = (f"{c.transactions / each:,.0f}" for each in (c.complete_s, c.strong_s))
        table.add_row(f"{c.transactions:,}", f"{c.ops:,}", *speeds, mark(c.correct))
    return table


TABLES = (feeds, whole_scans, complete)
