"""The tables of a report about joins."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import kops, mark, new_table
from belvedere.bench.results import Results


def joins(results: Results) -> Table:
    table = new_table(
        "Join V5: cost of an operation against the rows of r that match a row of s",
        *(
            "matches",
            "operations on r",
            "us each",
            "operations on s",
            "us each",
            "us per matched row",
            "correct",
        ),
    )
    for j in sorted(results.joins, key=lambda j: j.matches):
        left, right = (
            (f"{j.left_ops:,}", f"{j.left_us:.2f}"),
            (
                f"{j.right_ops:,}",
                f"{j.right_us:,.2f}",
            ),
        )
        table.add_row(f"{j.matches:,}", *left, *right, f"{j.matched_us:.2f}", mark(j.correct))
    return table


def fan_out(results: Results) -> Table:
    table = new_table(
        "Fan-out: one row of s changes",
        "rows of the join",
        "seconds",
        "k rows/s",
        "resident MiB",
        "anonymous MiB",
        "correct",
    )
    for f in results.fan_out:
        speed = (f"{f.seconds:.2f}", kops(f.rows / f.seconds))
        table.add_row(
            f"{f.rows:,}", *speed, f"{f.resident_mb:,}", f"{f.anonymous_mb:,}", mark(f.correct)
        )
    return table


TABLES = (joins, fan_out)
