"""The tables of a report about sources."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import mark, milliseconds, multiple, new_table, number_or_dash
from belvedere.bench.results import Results


def reading(results: Results) -> Table:
    table = new_table(
        "Sources: a first copy and a backlog, beside a bare client that reads the same",
        "figure",
        "server",
        "rows",
        "rows/s",
        "bare client, rows/s",
        "share of it",
        "correct",
    )
    for found in results.sources:
        for c in found.copies:
            rates = (number_or_dash(c.rows_per_s), number_or_dash(c.rows / c.bare_s))
            table.add_row(
                "first copy", c.kind, f"{c.rows:,}", *rates, multiple(c.share), mark(c.correct)
            )
        for b in found.captures:
            rates = (number_or_dash(b.changes_per_s), number_or_dash(b.changes / b.bare_s))
            table.add_row(
                "backlog", b.kind, f"{b.changes:,}", *rates, multiple(b.share), mark(b.correct)
            )
    table.caption = "the bare client keeps nothing: ours is durable in base table and log"
    return table


def load(results: Results) -> Table:
    table = new_table(
        "Sources: who writes at the server, while the table is followed and while none is",
        "server",
        "rounds",
        "followed, transactions/s",
        "not followed",
        "share left",
    )
    for found in results.sources:
        for w in found.loads:
            rates = (f"{w.followed_per_s:,.0f}", f"{w.alone_per_s:,.0f}", multiple(w.share))
            table.add_row(w.kind, str(w.rounds), *rates)
    table.caption = "server, writer and follower share the cores of this machine"
    return table


def freshness(results: Results) -> Table:
    table = new_table(
        "Sources: from a commit until a view shows it, p50 ms",
        "server",
        "times",
        "at the server",
        "a table of ours",
        "correct",
    )
    for found in results.sources:
        for f in found.freshness:
            times = (milliseconds(f.source_ms), milliseconds(f.own_ms))
            table.add_row(f.kind, str(f.probes), *times, mark(f.correct))
    return table


TABLES = (reading, load, freshness)
