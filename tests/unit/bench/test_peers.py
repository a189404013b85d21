"""A peer that computes something else would be no peer."""

from __future__ import annotations

from pathlib import Path

import pytest

from belvedere.bench import workload
from belvedere.bench.oracle import Oracle
from belvedere.bench.peers import duckdb_refresh, lmdb_by_hand
from belvedere.bench.views import NAMES, VIEWS


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workload.cached(tmp_path_factory.mktemp("logs"), 5_000, 500, 50)


@pytest.mark.parametrize("view", NAMES)
def test_lmdb_by_hand_is_correct(log: Path, tmp_path: Path, view: str) -> None:
    result = lmdb_by_hand.measure(log, view, tmp_path / "state", 1_000)
    assert (result.correct, result.ops, result.view) == (True, 5_000, view)


@pytest.mark.parametrize("view", NAMES)
def test_duckdb_refresh_is_correct(log: Path, tmp_path: Path, view: str) -> None:
    result = duckdb_refresh.measure(log, view, tmp_path / "state", 1_000)
    assert (result.correct, result.ops, result.view) == (True, 5_000, view)


def test_a_peer_runs_in_a_process_of_its_own(log: Path, tmp_path: Path) -> None:
    result = lmdb_by_hand.run(log, "V2", tmp_path / "state")
    assert result.correct
    assert result.ops_per_s == pytest.approx(5_000 / result.seconds)


def test_the_oracle_counts_missing_and_surplus_rows(log: Path) -> None:
    oracle = Oracle([log])
    right = oracle.expected(VIEWS["V2"])
    assert oracle.differences(VIEWS["V2"], right) == 0
    assert oracle.differences(VIEWS["V2"], right.slice(2)) == 2
    assert (
        oracle.differences(
            VIEWS["V2"], oracle.expected(VIEWS["V3"]).rename_columns(["grp", "n", "total"])
        )
        > 0
    )


def test_the_oracle_lets_a_later_log_win(log: Path) -> None:
    later = workload.load(500, 1, seed=1)
    (row,) = Oracle([log, later]).expected(VIEWS["V2"]).to_pylist()
    assert (row["grp"], row["n"]) == ("x000000", 500)
