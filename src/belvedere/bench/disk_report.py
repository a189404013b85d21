"""The tables of a report about files."""

from __future__ import annotations

from rich.table import Table

from belvedere.bench.cells import kops, mark, multiple, new_table
from belvedere.bench.results import Results


def disk(results: Results) -> Table:
    table = new_table(
        "Disk: end to end, writer and pipeline together",
        "figure",
        "view",
        "operations",
        "keys",
        "k ops/s",
        "x written",
        "largest, MiB",
        "left, MiB",
        "x live",
        "correct",
    )
    for d in results.disk:
        table.add_row(
            d.name,
            d.view,
            f"{d.ops:,}",
            f"{d.keys:,}",
            kops(d.ops_per_s),
            multiple(d.write_amplification),
            f"{d.largest >> 20:,}",
            f"{d.left >> 20:,}",
            multiple(d.space_amplification),
            mark(d.correct),
        )
    table.caption = (
        "x written: what processes gave the disk, over the bytes of the rows; x live: what is left,"
        " over the bytes of table and views"
    )
    return table


def base_reads(results: Results) -> Table:
    table = new_table(
        "Point reads of base rows",
        "figure",
        "operations that wait",
        "p50, us",
        "LMDB, us",
        "x LMDB",
        "correct",
    )
    for r in results.base_reads:
        table.add_row(
            f"{r.reads:,} gets",
            f"{r.waiting:,}",
            f"{r.p50_us:.2f}",
            f"{r.lmdb_us:.2f}",
            multiple(r.p50_us / r.lmdb_us),
            mark(r.correct),
        )
    return table


def explanations(results: Results) -> Table:
    table = new_table("Why a record is there", "view", "asked", "base rows", "p50, ms", "correct")
    for e in results.explanations:
        table.add_row(e.view, f"{e.asked:,}", f"{e.rows:,}", f"{e.p50_ms:.1f}", mark(e.correct))
    return table


TABLES = (disk, base_reads, explanations)
