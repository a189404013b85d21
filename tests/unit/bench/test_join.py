"""The log of the join is fixed by its definition, and its peer computes the join."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from belvedere.bench import workload, workload_join
from belvedere.bench.oracle import JoinOracle
from belvedere.bench.peers import duckdb_refresh, duckdb_refresh_join
from belvedere.bench.scenarios.join_database import join_marker_log
from belvedere.bench.views import JOIN, V5, many


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workload_join.cached(tmp_path_factory.mktemp("logs"), 5_000, 500, 50)


def digest(table: object) -> str:
    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()[:16]  # type: ignore[attr-defined]  # Arrow has no stubs


def test_published_figures_stay_comparable_because_the_log_of_a_seed_never_changes(
    log: Path,
) -> None:
    assert digest(pq.read_table(log)) == "cb30930f0aae6288"
    assert digest(workload_join.generate(3_000, 100, 10, 50, "zipf", seed=3)) == "07bbc92caadd7acb"


def test_the_log_loads_s_first_and_then_mixes_the_log_of_r_with_new_names(log: Path) -> None:
    rows = pq.read_table(log).to_pylist()
    load, rest = rows[:50], rows[50:]
    assert [(r["tbl"], r["op"], r["grp"], r["name"]) for r in load] == [
        ("S", "put", f"x{i:06d}", f"name-{i:06d}-{i:09d}") for i in range(50)
    ]
    on_r = [r for r in rest if r["tbl"] == "R"]
    assert 0.75 < len(on_r) / len(rest) < 0.85
    plain = workload.generate(len(on_r), 500, 50).to_pylist()
    assert [(r["op"], r["key"], r["grp"], r["val"]) for r in on_r] == [
        (r["op"], r["key"], r["grp"], r["val"]) for r in plain
    ]
    assert all(
        r["key"] is None and r["name"] == f"name-{r['grp'][1:]}-{r['seq']:09d}"
        for r in rest
        if r["tbl"] == "S"
    )


def test_the_peer_computes_the_join(log: Path, tmp_path: Path) -> None:
    result = duckdb_refresh_join.measure(log, JOIN, tmp_path / "state", 1_000)
    assert (result.correct, result.ops, result.view, result.engine) == (
        True,
        5_050,
        JOIN,
        duckdb_refresh.ENGINE,
    )
    with pytest.raises(ValueError, match="V2 is not a join"):
        duckdb_refresh_join.measure(log, "V2", tmp_path / "other")


def test_the_oracle_lets_a_later_log_win(log: Path) -> None:
    later = workload_join.names(np.arange(50), np.full(50, 7))
    names = JoinOracle([log, later, join_marker_log("zz")]).expected(V5)["name"].to_pylist()
    assert len(names) > 100
    assert {name[-9:] for name in names if name != "zz"} == {"000000007"}
    assert names.count("zz") == 1


def test_two_hundred_views_differ_and_contain_the_ten() -> None:
    views, ten = many(20), many(1)
    assert (len(views), len({v.name for v in views}), len({v.select for v in views}), len(ten)) == (
        200,
        200,
        200,
        10,
    )
    assert {v.select for v in ten} < {v.select for v in views}
