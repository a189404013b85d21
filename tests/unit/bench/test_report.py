"""A run can be stored, read back, judged and shown."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from belvedere.bench.disk_results import BaseRead, DiskUse, Explanation
from belvedere.bench.feed_results import CompleteCost, FeedCost, WholeScan
from belvedere.bench.hbase_results import (
    HBaseCapture,
    HBaseFreshness,
    HBaseMaintain,
    HBaseResults,
    HBaseWrites,
)
from belvedere.bench.peers import PeerResult
from belvedere.bench.report import plot, report
from belvedere.bench.results import (
    END_TO_END,
    INGEST,
    MAINTAIN,
    BaseWrite,
    FanOut,
    FlatPoint,
    Freshness,
    JoinCost,
    KeyedStatement,
    ManyViews,
    MemoryPeak,
    PointRead,
    Rate,
    Results,
    Scan,
    SinglePut,
    TpchPoint,
    merged,
)
from belvedere.bench.source_results import (
    SourceCapture,
    SourceCopy,
    SourceFreshness,
    SourceLoad,
    SourceResults,
)
from belvedere.bench.targets import Verdict, verdicts
from belvedere.bench.transaction_results import TransactionCost
from belvedere.bench.views import JOIN, NAMES

MILLION = 1_000_000
EPOCHS = (200_000,) * 5


def made_up() -> Results:
    """Invented figures; LMDB by hand does 100 k operations per second on every view."""
    rates = [Rate(INGEST, "-", MILLION, 4.0, 10_000, True)]
    peers = []
    for view in NAMES:
        rates.append(Rate(MAINTAIN, view, MILLION, 1.0, MILLION, True, epochs=(MILLION,)))
        rates.append(Rate(MAINTAIN, view, MILLION, 2.0, 200_000, True, epochs=EPOCHS))
        rates.append(
            Rate(END_TO_END, view, MILLION, 5.0, 300_000, True, epochs=(100_000, 300_000, 600_000))
        )
        peers.append(
            PeerResult("lmdb_by_hand", view, MILLION, 10_000, 100_000.0, 10.0, True, 0.5, 180)
        )
        peers.append(
            PeerResult("duckdb_refresh", view, MILLION, 10_000, 80_000.0, 12.5, True, 40.0, 240)
        )
    rates.append(Rate(MAINTAIN, JOIN, MILLION, 5.0, 200_000, True, epochs=EPOCHS))
    rates.append(Rate(END_TO_END, JOIN, MILLION, 8.0, 300_000, True, epochs=(300_000,) * 3))
    peers.append(
        PeerResult("duckdb_refresh", JOIN, MILLION, 10_000, 65_000.0, 15.4, True, 60.0, 260)
    )
    return Results(
        rates=tuple(rates),
        peers=tuple(peers),
        freshness=(
            Freshness(
                "V2",
                MILLION,
                30,
                150.0,
                190.0,
                2.0,
                140.0,
                {"intent": 1.5, "job": 120.0},
                110.0,
                True,
            ),
        ),
        flatness=(
            FlatPoint("V2", 100_000, 10_000, 5, 3.0, 10.0, 1.5, True),
            FlatPoint("V2", 10_000_000, 10_000, 5, 3.5, 13.0, 9.0, True),
        ),
        single_puts=(SinglePut(1_000, 1.5, 3.0, 1.0, 2.0, 1.2, 73, True),),
        transactions=(TransactionCost("a put", 1_000, 1.08, 1.0, True),),
        point_reads=(PointRead("V2", 20_000, 12.0, 5.0, 1.0, True),),
        scans=(Scan("V4", 200_000, 0.2, True),),
        disk=(
            DiskUse(
                "sustained", "V2", 5 * MILLION, MILLION, 10.0, 100, 350, 300, 200, 100, correct=True
            ),
        ),
        base_reads=(
            BaseRead(0, 20_000, 3.0, 1.2, True),
            BaseRead(100_000, 20_000, 6.0, 1.2, True),
        ),
        feeds=(FeedCost("V1", MILLION, 1.05, 1.0, 200_000, 0.2, True),),
        whole_scans=(WholeScan("V1", 125_000, 0.1, 0.1, 0.15, True),),
        complete=(CompleteCost(500, 5_000, 10.0, 0.5, True),),
        explanations=(Explanation("V1", 200, 1, 8.5, True),),
        keyed=(KeyedStatement("r", "SELECT of a row", 1_000, 2.5, 1.5, 0.01, True),),
        base_writes=(
            BaseWrite(0, False, MILLION, 4.0, True),
            BaseWrite(10, True, MILLION, 5.0, True),
        ),
        memory=(MemoryPeak("V_all", 10 * MILLION, 2_500, 1_900, 30.0, True, (MILLION,) * 10),),
        joins=(
            JoinCost(1, 10_000, 20.0, 10_000, 25.0, True),
            JoinCost(1_000, 10_000, 21.0, 100, 4_000.0, True),
        ),
        many_views=(
            ManyViews(10, MILLION, 2.0, 200_000, 40, 40, 30, 30, True),
            ManyViews(200, MILLION, 5.0, 200_000, 800, 421, 600, 221, True),
        ),
        tpch=(
            TpchPoint("q03", 0.01, 87_000, 8_000, 5, 40.0, True),
            TpchPoint("q03", 0.1, 875_000, 8_000, 5, 60.0, True),
        ),
        fan_out=(FanOut(MILLION, 4.0, 2_000, 1_500, True),),
        sources=(of_sources(),),
        hbase=(of_hbase(),),
    )


def of_sources() -> SourceResults:
    return SourceResults(
        copies=(SourceCopy("postgres", 500_000, 2.0, 0.5, True),),
        captures=(SourceCapture("mariadb", 200_000, 4.0, 3.0, True),),
        loads=(SourceLoad("postgres", 5, 1_234.0, 1_300.0),),
        freshness=(SourceFreshness("mariadb", 30, 432.1, 210.0, True),),
    )


def of_hbase() -> HBaseResults:
    return HBaseResults(
        capture=(HBaseCapture(200_000, 0.5),),
        maintain=(
            HBaseMaintain("V2", 1, 200_000, 3, 50_000, 2.0, 0.5, 0.4, True),
            HBaseMaintain("V2", 2, 200_000, 3, 50_000, 1.0, 0.4, 0.3, True),
        ),
        writes=(
            HBaseWrites(0, False, False, 3, 50_000.0, 1.0),
            HBaseWrites(10, True, False, 3, 49_000.0, 1.0),
        ),
        freshness=(HBaseFreshness("V2", 30, 321.5, 100.0, 210.5, 305.5, 2.5, True),),
    )


def found(results: Results, name: str, unit: str) -> Verdict:
    (verdict,) = [v for v in verdicts(results) if (v.name, v.unit) == (name, unit)]
    return verdict


def test_results_survive_json(tmp_path: Path) -> None:
    results = made_up()
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results


def test_parts_are_merged_in_order() -> None:
    whole = made_up()
    assert (
        merged([Results(whole.machine, rates=whole.rates), Results(peers=whole.peers)]).peers
        == whole.peers
    )


def test_targets_are_ratios_to_the_peer_of_the_same_run() -> None:
    results = made_up()
    assert found(results, "ingest", "x lmdb_by_hand").measured == pytest.approx(2.5)
    assert found(results, "maintain V1 in one go", "x lmdb_by_hand").reached
    assert found(results, "maintain V2 in epochs of 200,000", "x lmdb_by_hand").target == 9.0
    assert not found(results, "end to end V_all", "x lmdb_by_hand").reached
    assert found(results, "end to end V_all", "x duckdb_refresh").reached
    assert not found(results, "flatness, V2 in epochs of 10,000", "x cost per operation").reached
    assert found(results, "memory, V_all", "MiB resident").reached


def test_files_and_rows_have_targets() -> None:
    results = made_up()
    assert found(results, "sustained end to end, V2", "ops/s").reached
    name = "point read of a base row, {} operations wait"
    assert found(results, name.format(0), "x LMDB get").reached
    assert not found(results, name.format("100,000"), "x LMDB get").reached


def test_the_join_is_held_against_recomputation() -> None:
    results = made_up()
    maintained = found(results, "maintain V5 in epochs of 200,000", "x duckdb_refresh")
    assert maintained.measured == pytest.approx(3.08, abs=0.01)
    assert (maintained.target, maintained.reached) == (3.0, True)
    end_to_end = found(results, "end to end V5", "x duckdb_refresh")
    assert end_to_end.measured == pytest.approx(1.92, abs=0.01)
    assert (end_to_end.target, end_to_end.reached) == (5.0, False)
    assert not [v for v in verdicts(results) if "V5" in v.name and v.unit == "x lmdb_by_hand"]


def test_sharing_growth_and_fan_out_have_targets() -> None:
    results = made_up()
    assert found(results, "200 views beside 10", "x cost per operation").measured == pytest.approx(
        2.5
    )
    assert not found(results, "TPC-H q03", "x cost per row").reached
    assert found(results, "fan-out to 1,000,000 rows", "MiB resident").reached
    small = replace(
        results,
        fan_out=(FanOut(20_000, 1.0, 900, 500, True),),
        tpch=results.tpch[:1],
        many_views=results.many_views[:1],
    )
    assert not [v for v in verdicts(small) if v.name.startswith(("fan-out", "TPC-H", "200"))]


def test_hbase_is_held_against_its_own_client() -> None:
    results = made_up()
    assert found(results, "HBase, maintain V2 in 2 task(s)", "x bare client").measured == 0.3
    assert found(results, "HBase, V2 in two tasks", "x one task").reached
    puts = found(results, "HBase, puts with 10 view(s) declared", "x not captured")
    assert (puts.measured, puts.reached) == (0.98, True)


def test_a_wrong_result_reaches_no_target() -> None:
    results = made_up()
    wrong = replace(results, rates=tuple(replace(r, correct=False) for r in results.rates))
    assert not any(v.reached for v in verdicts(wrong) if v.unit == "x lmdb_by_hand")


def test_a_peer_that_ran_twice_counts_with_its_median() -> None:
    fast = PeerResult("lmdb_by_hand", "V2", MILLION, 10_000, 300_000.0, 3.3, True, 0.5, 180)
    assert merged([made_up(), Results(peers=(fast,))]).peer("lmdb_by_hand", "V2") == 200_000.0


def test_the_report_shows_every_part() -> None:
    out = StringIO()
    report(made_up(), Console(file=out, width=200))
    text = out.getvalue()
    for part in (
        "Throughput",
        "5 of 200,000",
        "Peers in this run",
        "dbsp 0.375",
        "Freshness",
        "Flatness",
        "Single durable put",
        "beside plain calls",
        "+8%",
        "Reads",
        "Memory",
        "3.50",  # bytes that were written for each that was given
        "Point reads of base rows",
        "matched row",
        "Fan-out",
        "TPC-H",
        "421 for 800",
        "share of it",
        "x not captured",
        "321.5",
        "first copy",
        "1,234",
        "432.1",
        "Targets",
    ):
        assert part in text


def test_an_empty_run_reports_no_target() -> None:
    out = StringIO()
    report(Results(), Console(file=out, width=200))
    assert "Targets" not in out.getvalue()


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot(made_up(), tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 10_000
