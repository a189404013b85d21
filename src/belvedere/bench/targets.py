"""What a run has to reach, and whether it did.

Throughput targets are ratios to LMDB by hand in the same run, for the join to DuckDB that
recomputes: absolute figures differ from machine to machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.bench.hbase_results import HBaseMaintain, HBaseWrites
from belvedere.bench.peers import duckdb_refresh, lmdb_by_hand
from belvedere.bench.results import (
    END_TO_END,
    INGEST,
    MAINTAIN,
    FlatPoint,
    Rate,
    Results,
    TpchPoint,
)
from belvedere.bench.views import JOIN

BACKLOG, EPOCH = 1_000_000, 200_000
MAINTAIN_BACKLOG = {"V1": 4.0, "V2": 14.0, "V3": 5.0, "V4": 5.0, "V_all": 12.0}
MAINTAIN_EPOCHS = {"V1": 2.0, "V2": 9.0, "V3": 3.0, "V4": 3.0, "V_all": 5.5}
INGEST_TO_V2 = 6.0
END_TO_END_RATIO = {"V2": 3.0, "V_all": 4.5}
FRESH_TO_EMPTY_JOB = 1.6
FLAT_WITHIN = 1.25
PUT_TO_APPEND = 1.2
READ_TO_LMDB = 3.0
BASE_READ_TO_LMDB, WAITING_READ_TO_LMDB = 3.0, 4.0
SCAN_ROWS_PER_S = 2_000_000
MEMORY_MB, MEMORY_BACKLOG = 3 * 1024, 10_000_000
SUSTAINED_OPS, SUSTAINED = 5_000_000, {"V2": 404_000, "V_all": 235_000}
JOIN_MAINTAIN, JOIN_END_TO_END = 3.0, 5.0
MANY_WITHIN = 3.0
FEED_WITHIN, SOURCE_SHARE = 1.1, 0.5
TPCH_WITHIN = 1.25
FAN_OUT_MB, FAN_OUT_ROWS = 3 * 1024, 1_000_000
TRANSACTION_WITHIN, WHY_MS = 1.1, 50.0
CAPTURE_SHARE, COPY_SHARE, LOAD_SHARE, FRESH_TO_OWN = 0.8, 0.5, 0.9, 2.0
HBASE_SHARE, HBASE_TWO_TASKS, HBASE_WRITES = 0.8, 1.7, 0.95


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target beside what was measured; `at_least` tells which side is good.

    A wrong result never reaches its target.
    """

    name: str
    measured: float
    target: float
    unit: str
    at_least: bool
    correct: bool

    @property
    def reached(self) -> bool:
        good = self.measured >= self.target if self.at_least else self.measured <= self.target
        return good and self.correct


def maintain_target(rate: Rate) -> float | None:
    """The ratio to LMDB that a maintain figure is held to, where its epochs are of a size that has
    one.
    """
    return {BACKLOG: MAINTAIN_BACKLOG, EPOCH: MAINTAIN_EPOCHS}.get(rate.size, {}).get(rate.view)


def rate_target(rate: Rate) -> float | None:
    if rate.figure == INGEST:
        return INGEST_TO_V2
    if rate.figure == MAINTAIN:
        return maintain_target(rate)
    return END_TO_END_RATIO.get(rate.view)


def duckdb_target(rate: Rate) -> float | None:
    """The ratio to DuckDB that recomputes: our end to end does the same work, so it has to be
    ahead. A join has nothing else beside it.
    """
    if rate.view == JOIN and rate.figure == MAINTAIN:
        return JOIN_MAINTAIN if rate.size == EPOCH else None
    if rate.figure == END_TO_END:
        return JOIN_END_TO_END if rate.view == JOIN else 1.0
    return None


def peer_view(rate: Rate) -> str:
    """The peer's view that a rate is compared with; ingest knows no views
    and is held against V2.
    """
    return "V2" if rate.figure == INGEST else rate.view


def verdicts(results: Results) -> list[Verdict]:
    """Every target that the results say something about."""
    parts = (
        _throughput,
        _against_duckdb,
        _latencies,
        _reads_of_rows,
        _flat,
        _many,
        _tpch,
        _capacity,
        _answers,
        _sources,
        _hbase,
    )
    return [verdict for part in parts for verdict in part(results)]


def _throughput(results: Results) -> Iterator[Verdict]:
    for rate in results.rates:
        target, ratio = rate_target(rate), results.ratio(rate, lmdb_by_hand.ENGINE, peer_view(rate))
        if target is not None and ratio is not None:
            yield Verdict(described(rate), ratio, target, "x lmdb_by_hand", True, rate.correct)


def _against_duckdb(results: Results) -> Iterator[Verdict]:
    for rate in results.rates:
        target, ratio = duckdb_target(rate), results.ratio(rate, duckdb_refresh.ENGINE, rate.view)
        if target is not None and ratio is not None:
            yield Verdict(described(rate), ratio, target, "x duckdb_refresh", True, rate.correct)


def _latencies(results: Results) -> Iterator[Verdict]:
    for f in results.freshness:
        name = f"freshness of 10 operations, {f.view}"
        yield Verdict(
            name, f.visible_ms / f.empty_job_ms, FRESH_TO_EMPTY_JOB, "x empty job", False, f.correct
        )
    for p in results.single_puts:
        yield Verdict(
            "single durable put",
            p.p50_ms / p.append_p50_ms,
            PUT_TO_APPEND,
            "x append and fsync",
            False,
            p.correct,
        )
    for r in results.point_reads:
        yield Verdict(
            f"point read, {r.view}",
            r.p50_us / r.lmdb_own_txn_us,
            READ_TO_LMDB,
            "x LMDB get",
            False,
            r.correct,
        )


def _reads_of_rows(results: Results) -> Iterator[Verdict]:
    for r in results.base_reads:
        target = WAITING_READ_TO_LMDB if r.waiting else BASE_READ_TO_LMDB
        name = f"point read of a base row, {r.waiting:,} operations wait"
        yield Verdict(name, r.p50_us / r.lmdb_us, target, "x LMDB get", False, r.correct)


def _flat(results: Results) -> Iterator[Verdict]:
    for (view, ops), points in flat_series(results).items():
        if len(points) > 1:
            name = f"flatness, {view} in epochs of {ops:,}"
            yield Verdict(
                name,
                growth(points),
                FLAT_WITHIN,
                "x cost per operation",
                False,
                all(p.correct for p in points),
            )


def flat_series(results: Results) -> dict[tuple[str, int], list[FlatPoint]]:
    """The points of every view and epoch size, from the smallest table to the largest."""
    series: dict[tuple[str, int], list[FlatPoint]] = {}
    for p in sorted(results.flatness, key=lambda p: p.base_rows):
        series.setdefault((p.view, p.ops), []).append(p)
    return series


def growth(points: list[FlatPoint]) -> float:
    """The dearest operation on any table over the cost on the smallest one."""
    smallest = min(points, key=lambda p: p.base_rows)
    return max(p.maintain_us for p in points) / smallest.maintain_us


def _many(results: Results) -> Iterator[Verdict]:
    if len(results.many_views) > 1:
        few, most = (choose(results.many_views, key=lambda m: m.views) for choose in (min, max))
        name = f"{most.views} views beside {few.views}"
        yield Verdict(
            name,
            most.us_per_op / few.us_per_op,
            MANY_WITHIN,
            "x cost per operation",
            False,
            few.correct and most.correct,
        )


def _tpch(results: Results) -> Iterator[Verdict]:
    for query in dict.fromkeys(p.query for p in results.tpch):
        points = [p for p in results.tpch if p.query == query]
        if len(points) > 1:
            yield Verdict(
                f"TPC-H {query}",
                tpch_growth(points),
                TPCH_WITHIN,
                "x cost per row",
                False,
                all(p.correct for p in points),
            )


def tpch_growth(points: list[TpchPoint]) -> float:
    """The dearest row at any scale factor over the cost at the smallest one."""
    smallest = min(points, key=lambda p: p.scale)
    return max(p.maintain_us for p in points) / smallest.maintain_us


def _capacity(results: Results) -> Iterator[Verdict]:
    for s in results.scans:
        yield Verdict(
            f"consistent scan, {s.view}", s.rows_per_s, SCAN_ROWS_PER_S, "rows/s", True, s.correct
        )
    for m in results.memory:
        if m.backlog >= MEMORY_BACKLOG:
            yield Verdict(
                f"memory, {m.view}", m.resident_mb, MEMORY_MB, "MiB resident", False, m.correct
            )
    for d in results.disk:
        if d.name == "sustained" and d.ops >= SUSTAINED_OPS:
            name = f"sustained end to end, {d.view}"
            yield Verdict(name, d.ops_per_s, SUSTAINED[d.view], "ops/s", True, d.correct)
    for c in results.feeds:
        name = f"epochs with a consumer, {c.view}"
        yield Verdict(name, c.with_s / c.without_s, FEED_WITHIN, "x without", False, c.correct)
    for w in results.whole_scans:
        name = f"data source, {w.view}"
        yield Verdict(name, w.share, SOURCE_SHARE, "x to_arrow", True, w.correct)
    for f in results.fan_out:
        if f.rows >= FAN_OUT_ROWS:
            yield Verdict(
                f"fan-out to {f.rows:,} rows",
                f.resident_mb,
                FAN_OUT_MB,
                "MiB resident",
                False,
                f.correct,
            )


def _answers(results: Results) -> Iterator[Verdict]:
    for t in results.transactions:
        name, times = f"transaction, {t.name}", t.transaction_ms / t.plain_ms
        yield Verdict(name, times, TRANSACTION_WITHIN, "x plain calls", False, t.correct)
    for e in results.explanations:
        yield Verdict(f"why, {e.view}", e.p50_ms, WHY_MS, "ms", False, e.correct)


def _sources(results: Results) -> Iterator[Verdict]:
    for found in results.sources:
        for c in found.copies:
            name = f"first copy, {c.kind}"
            yield Verdict(name, c.share, COPY_SHARE, "x bare client", True, c.correct)
        for b in found.captures:
            name = f"backlog, {b.kind}"
            yield Verdict(name, b.share, CAPTURE_SHARE, "x bare client", True, b.correct)
        for w in found.loads:
            name = f"a writer who is followed, {w.kind}"
            yield Verdict(name, w.share, LOAD_SHARE, "x not followed", True, True)
        for f in found.freshness:
            name, times = f"freshness of a commit, {f.kind}", f.source_ms / f.own_ms
            yield Verdict(name, times, FRESH_TO_OWN, "x a table of ours", False, f.correct)


def _hbase(results: Results) -> Iterator[Verdict]:
    for found in results.hbase:
        for m in found.maintain:
            name = f"HBase, maintain {m.view} in {m.tasks} task(s)"
            yield Verdict(name, m.share, HBASE_SHARE, "x bare client", True, m.correct)
        yield from _hbase_tasks(found.maintain)
        yield from _hbase_writes(found.writes)


def _hbase_tasks(maintain: Sequence[HBaseMaintain]) -> Iterator[Verdict]:
    one = {m.view: m for m in maintain if m.tasks == 1}
    for m in maintain:
        if m.tasks == 2 and m.view in one:
            times = m.ops_per_s / one[m.view].ops_per_s
            name = f"HBase, {m.view} in two tasks"
            yield Verdict(name, times, HBASE_TWO_TASKS, "x one task", True, m.correct)


def _hbase_writes(writes: Sequence[HBaseWrites]) -> Iterator[Verdict]:
    plain = {w.running: w for w in writes if not w.captured}
    for w in writes:
        if w.captured and w.running in plain:
            kept = "kept" if w.running else "declared"
            name = f"HBase, puts with {w.views} view(s) {kept}"
            times = w.puts_per_s / plain[w.running].puts_per_s
            yield Verdict(name, times, HBASE_WRITES, "x not captured", True, True)


def described(rate: Rate) -> str:
    words = [rate.figure] if rate.figure == INGEST else [rate.figure, rate.view]
    if rate.figure == MAINTAIN:
        words.append("in one go" if rate.size >= rate.ops else f"in epochs of {rate.size:,}")
    return " ".join(words)
