"""The tables of a report about HBase."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import kops, mark, milliseconds, multiple, new_table
from belvedere.bench.results import Results


def maintain(results: Results) -> Table:
    table = new_table(
        "HBase: backlogs, beside a bare client that puts the rows that the epochs wrote",
        "figure",
        "tasks",
        "operations",
        "k ops/s",
        "rows written",
        "bare client, k ops/s",
        "share of it",
        "its writing alone",
        "correct",
    )
    for found in results.hbase:
        for c in found.capture:
            table.add_row("capture", "", f"{c.ops:,}", kops(c.ops_per_s), *[""] * 5)
        for m in found.maintain:
            bare = (kops(m.ops / m.bare_s), multiple(m.share), multiple(m.commit_share))
            table.add_row(
                f"maintain {m.view}",
                str(m.tasks),
                f"{m.ops:,}",
                kops(m.ops_per_s),
                f"{m.rows:,}",
                *bare,
                mark(m.correct),
            )
    table.caption = "medians, in turns; the bare client reads nothing, with a thread for each task"
    return table


def writes(results: Results) -> Table:
    table = new_table(
        "HBase: a client that writes a base table",
        "views",
        "pipeline",
        "k puts/s",
        "x not captured",
        "one put, p50 ms",
        "x not captured",
    )
    for found in results.hbase:
        plain = {w.running: w for w in found.writes if not w.captured}
        for w in found.writes:
            beside = plain[w.running]
            table.add_row(
                str(w.views) if w.captured else "not captured",
                "keeps them" if w.running else "not running",
                kops(w.puts_per_s),
                multiple(w.puts_per_s / beside.puts_per_s),
                f"{w.p50_ms:.2f}",
                multiple(w.p50_ms / beside.p50_ms),
            )
    return table


def latencies(results: Results) -> Table:
    table = new_table(
        "HBase: from an acknowledged put until a view shows it, p50 ms",
        "view",
        "catch_up",
        "of it the barrier",
        "polling a running pipeline",
        "session",
        "one get of the view",
        "correct",
    )
    for found in results.hbase:
        for f in found.freshness:
            parts = (f.catch_up_ms, f.barrier_ms, f.polling_ms, f.session_ms, f.get_ms)
            table.add_row(f.view, *map(milliseconds, parts), mark(f.correct))
    return table
