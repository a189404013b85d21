"""A run as tables: throughput beside the peers, latencies, growth, reads, memory, joins and many
views, each with its target.

report(results)          prints everything that was measured
plot(results, path)      draws the throughput (needs matplotlib)
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from belvedere.bench import (
    disk_report,
    feed_report,
    hbase_report,
    join_report,
    source_report,
    transaction_report,
)
from belvedere.bench.cells import (
    DASH,
    epoch_sizes,
    kops,
    mark,
    milliseconds,
    multiple,
    new_table,
    number_or_dash,
)
from belvedere.bench.chart import plot
from belvedere.bench.figures import FRESHNESS_MS, MEASURED, PUBLISHED, RUN_HERE
from belvedere.bench.peers import duckdb_refresh, lmdb_by_hand
from belvedere.bench.results import END_TO_END, INGEST, MAINTAIN, Rate, Results
from belvedere.bench.targets import (
    Verdict,
    described,
    duckdb_target,
    flat_series,
    growth,
    peer_view,
    rate_target,
    tpch_growth,
    verdicts,
)
from belvedere.bench.views import EVERY, JOIN

__all__ = ["plot", "report", "tables"]


def report(results: Results, console: Console | None = None) -> None:
    out = console or Console()
    m = results.machine
    packages = ", ".join(f"{name} {number}" for name, number in m.packages.items())
    out.print(
        f"[bold]Belvedere benchmark[/bold] {m.date}: {m.cores} cores, {m.memory_gib} GiB, Python"
        f" {m.python}, {packages}"
    )
    for table in tables(results):
        out.print()
        out.print(table)


def tables(results: Results) -> Iterator[Table]:
    """Every table that has rows."""
    of_one_table = (
        _throughput,
        _peers,
        _published,
        _freshness,
        _freshness_elsewhere,
        _flatness,
        _puts,
        _reads,
        _keyed,
        _base_writes,
        _memory,
    )
    of_files = (transaction_report.transactions, *disk_report.TABLES, *feed_report.TABLES)
    of_hbase = (hbase_report.maintain, hbase_report.writes, hbase_report.latencies)
    of_many = (*join_report.TABLES, _tpch, _many_views)
    of_servers = (*source_report.TABLES, *of_hbase)
    every = (*of_one_table, *of_files, *of_many, *of_servers, _verdicts)
    return (table for table in (build(results) for build in every) if table.row_count)


def _throughput(results: Results) -> Table:
    table = new_table(
        "Throughput, thousand operations per second",
        "figure",
        *(
            "size",
            "epochs",
            "k ops/s",
            "x lmdb_by_hand",
            "target",
            "x duckdb_refresh",
            "target",
            "reached",
            "correct",
        ),
    )
    for rate in sorted(results.rates, key=_reading_order):
        lmdb = results.ratio(rate, lmdb_by_hand.ENGINE, peer_view(rate))
        same_work = rate.figure == END_TO_END or rate.view == JOIN
        duckdb = results.ratio(rate, duckdb_refresh.ENGINE, rate.view) if same_work else None
        table.add_row(
            described(rate),
            f"{rate.size:,}" + (" a call" if rate.figure == INGEST else ""),
            epoch_sizes(rate.epochs),
            kops(rate.ops_per_s),
            multiple(lmdb),
            multiple(rate_target(rate)),
            multiple(duckdb),
            multiple(duckdb_target(rate)),
            mark(_reached(rate, lmdb, duckdb)),
            mark(rate.correct),
        )
    table.caption = "ingest is held against lmdb_by_hand on V2, the join V5 against duckdb_refresh"
    return table


def _reached(rate: Rate, lmdb: float | None, duckdb: float | None) -> bool | None:
    """All targets of the rate together; none without a target or without the peer's figure."""
    pairs = ((lmdb, rate_target(rate)), (duckdb, duckdb_target(rate)))
    checks = [
        ratio >= target for ratio, target in pairs if ratio is not None and target is not None
    ]
    return all(checks) and rate.correct if checks else None


def _peers(results: Results) -> Table:
    table = new_table(
        "Peers in this run",
        "engine",
        "view",
        "batch",
        "k ops/s",
        "10 operations, p50 ms",
        "MiB",
        "correct",
    )
    for p in sorted(results.peers, key=lambda p: (p.engine, EVERY.index(p.view))):
        fresh = f"{p.p50_10ops_ms:.2f}"
        table.add_row(
            p.engine,
            p.view,
            f"{p.batch:,}",
            kops(p.ops_per_s),
            fresh,
            f"{p.rss_mb:,}",
            mark(p.correct),
        )
    return table


def _published(results: Results) -> Table:
    table = new_table(
        f"Beside other engines, thousand operations per second (those not run here: {MEASURED})",
        "engine",
        *EVERY,
        "durable",
        "note",
    )
    for label, figure in (("belvedere, end to end", END_TO_END), ("belvedere, maintain", MAINTAIN)):
        best = [_best(results, figure, view) for view in EVERY]
        if any(best):
            note = (
                "the same work as the others"
                if figure == END_TO_END
                else "from a log; largest epochs"
            )
            table.add_row(
                label,
                *(kops(rate.ops_per_s) if rate else DASH for rate in best),
                "yes",
                note,
                style="bold",
            )
    for engine in PUBLISHED:
        here = RUN_HERE.get(engine.engine, "")
        measured = [results.peer(here, view) for view in EVERY]
        if any(measured):
            table.add_row(
                f"{engine.engine}, this run",
                *(kops(rate) for rate in measured),
                engine.durable,
                "",
                style="bold",
            )
        table.add_row(
            engine.engine,
            *(number_or_dash(engine.kops.get(view)) for view in EVERY),
            engine.durable,
            engine.note,
        )
    return table


def _best(results: Results, figure: str, view: str) -> Rate | None:
    """The figure at its largest epochs."""
    found = [r for r in results.rates if (r.figure, r.view) == (figure, view)]
    return max(found, key=lambda rate: rate.size, default=None)


def _freshness(results: Results) -> Table:
    table = new_table(
        "Freshness: ten operations written until visible, ms",
        "view",
        "part",
        "p50",
        "x empty job",
        "note",
        "correct",
    )
    for f in results.freshness:
        times = multiple(f.visible_ms / f.empty_job_ms)
        table.add_row(
            f.view,
            "visible (pipeline running)",
            milliseconds(f.visible_ms),
            times,
            f"p95 {f.visible_p95_ms:.1f}",
            mark(f.correct),
        )
        table.add_row(
            "",
            "  write",
            milliseconds(f.write_ms),
            "",
            f"{f.base_ops:,} operations before, {f.probes} probes",
            "",
        )
        table.add_row(
            "",
            "  catch_up",
            milliseconds(f.catch_up_ms),
            multiple(f.catch_up_ms / f.empty_job_ms),
            "",
            "",
        )
        for stage, ms in f.stages_ms.items():
            table.add_row("", f"    {stage}", milliseconds(ms), "", "", "")
        table.add_row(
            "",
            "empty one-stage mapInArrow job",
            milliseconds(f.empty_job_ms),
            "1.00",
            "same session",
            "",
            end_section=True,
        )
    return table


def _freshness_elsewhere(results: Results) -> Table:
    table = new_table(f"Freshness elsewhere, p50 ms ({MEASURED})", "engine", "ten operations")
    for engine, ms in FRESHNESS_MS.items() if results.freshness else ():
        table.add_row(engine, ms)
    return table


def _flatness(results: Results) -> Table:
    table = new_table(
        "Flatness: cost of an operation as the base table grows",
        "view",
        "base rows",
        "epoch",
        "write us",
        "maintain us",
        "x smallest",
        "bare LMDB, us per put",
        "correct",
    )
    for (view, _), points in flat_series(results).items():
        for p in points:
            relative = multiple(growth([points[0], p]) if p is not points[0] else 1.0)
            costs = (f"{p.write_us:.2f}", f"{p.maintain_us:.2f}", relative, f"{p.lmdb_us:.2f}")
            table.add_row(
                view,
                f"{p.base_rows:,}",
                f"{p.ops:,}",
                *costs,
                mark(p.correct),
                end_section=p is points[-1],
            )
    return table


def _puts(results: Results) -> Table:
    table = new_table("Single durable put, ms", "what", "p50", "p95", "x LMDB", "bytes", "correct")
    for p in results.single_puts:
        times = multiple(p.p50_ms / p.lmdb_p50_ms)
        table.add_row(
            "belvedere put", f"{p.p50_ms:.3f}", f"{p.p95_ms:.3f}", times, "", mark(p.correct)
        )
        table.add_row(
            "LMDB transaction, same bytes",
            f"{p.lmdb_p50_ms:.3f}",
            f"{p.lmdb_p95_ms:.3f}",
            "1.00",
            f"{p.bytes_written:,}",
            "",
        )
        ratio = multiple(p.append_p50_ms / p.lmdb_p50_ms)
        table.add_row("append and fsync", f"{p.append_p50_ms:.3f}", "", ratio, "", "")
    return table


def _reads(results: Results) -> Table:
    table = new_table(
        "Reads of views",
        "what",
        "view",
        "figure",
        "LMDB, own transaction",
        "LMDB, open transaction",
        "x LMDB",
        "correct",
    )
    for r in results.point_reads:
        bare = (f"{r.lmdb_own_txn_us:.2f} us", f"{r.lmdb_open_txn_us:.2f} us")
        table.add_row(
            "point read, p50",
            r.view,
            f"{r.p50_us:.2f} us",
            *bare,
            multiple(r.p50_us / r.lmdb_own_txn_us),
            mark(r.correct),
        )
    for s in results.scans:
        table.add_row(
            f"consistent scan of {s.rows:,} rows",
            s.view,
            f"{s.rows_per_s:,.0f} rows/s",
            DASH,
            DASH,
            DASH,
            mark(s.correct),
        )
    return table


def _keyed(results: Results) -> Table:
    table = new_table(
        "Statements by key, beside get, put, delete and scan of the same key",
        "statement",
        "relation",
        "p50",
        "planning",
        "beside",
        "x beside, without planning",
        "correct",
    )
    for k in results.keyed:
        table.add_row(
            k.statement,
            k.relation,
            f"{k.p50_ms:.2f} ms",
            f"{k.planning_ms:.2f} ms",
            f"{k.beside_ms:.3f} ms",
            multiple(k.to_beside),
            mark(k.correct),
        )
    return table


def _base_writes(results: Results) -> Table:
    table = new_table(
        "Base table writes while views are kept",
        "views",
        "pipeline",
        "k ops/s",
        "x no views",
        "correct",
    )
    plain = next((b for b in results.base_writes if b.views == 0), None)
    for b in results.base_writes:
        times = multiple(b.ops_per_s / plain.ops_per_s if plain else None)
        table.add_row(
            str(b.views),
            "another process" if b.pipeline else "not running",
            kops(b.ops_per_s),
            times,
            mark(b.correct),
        )
    return table


def _memory(results: Results) -> Table:
    table = new_table(
        "Memory of the pipeline's process tree, peak MiB",
        "view",
        "backlog",
        "resident",
        "anonymous",
        "k ops/s",
        "epochs",
        "correct",
    )
    for m in results.memory:
        sizes = (f"{m.resident_mb:,}", f"{m.anonymous_mb:,}", kops(m.backlog / m.seconds))
        table.add_row(m.view, f"{m.backlog:,}", *sizes, epoch_sizes(m.epochs), mark(m.correct))
    return table


def _tpch(results: Results) -> Table:
    table = new_table(
        "TPC-H: cost of a changed row",
        "query",
        "scale factor",
        "base rows",
        "epoch",
        "maintain us",
        "x smallest",
        "correct",
    )
    for query in dict.fromkeys(p.query for p in results.tpch):
        points = sorted((p for p in results.tpch if p.query == query), key=lambda p: p.scale)
        for p in points:
            cost = (
                f"{p.maintain_us:.2f}",
                multiple(tpch_growth([points[0], p]) if p is not points[0] else 1.0),
            )
            sizes = (f"{p.scale:g}", f"{p.base_rows:,}", f"{p.rows:,}")
            table.add_row(query, *sizes, *cost, mark(p.correct), end_section=p is points[-1])
    return table


def _many_views(results: Results) -> Table:
    table = new_table(
        "Many views of one table",
        "views",
        "epochs of",
        "us each operation",
        "operators",
        "state tables",
        "correct",
    )
    for m in sorted(results.many_views, key=lambda m: m.views):
        kept = (f"{m.kept_nodes:,} for {m.nodes:,}", f"{m.kept_tables:,} for {m.tables:,}")
        table.add_row(f"{m.views:,}", f"{m.size:,}", f"{m.us_per_op:.2f}", *kept, mark(m.correct))
    table.caption = (
        "operators and state tables: what there is, for what there would be if every view had"
        " its own"
    )
    return table


def _verdicts(results: Results) -> Table:
    found = verdicts(results)
    table = new_table(
        f"Targets: {sum(v.reached for v in found)} of {len(found)} reached",
        "figure",
        "measured",
        "target",
        "unit",
        "reached",
    )
    for v in found:
        table.add_row(
            v.name,
            _amount(v, v.measured),
            ("at least " if v.at_least else "at most ") + _amount(v, v.target),
            v.unit,
            mark(v.reached),
        )
    return table


def _amount(verdict: Verdict, number: float) -> str:
    return f"{number:.2f}" if verdict.unit.startswith("x ") else f"{number:,.0f}"


def _reading_order(rate: Rate) -> tuple[int, int, int]:
    """Ingest first, then view by view: maintain from large epochs to small, then end to end."""
    place = EVERY.index(rate.view) if rate.view in EVERY else -1
    return (
        place,
        (INGEST, MAINTAIN, END_TO_END).index(rate.figure),
        -rate.size,
    )
