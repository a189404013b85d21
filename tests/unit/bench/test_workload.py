"""The log is fixed by its definition: one operation at a time, as the docstring of the module says
it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from belvedere.bench import workload

Operation = tuple[int, str, str, str | None, int | None]


def one_at_a_time(ops: int, keys: int, groups: int, seed: int, share: float) -> list[Operation]:
    rng = np.random.default_rng(seed)
    draw, wanted = rng.integers(0, keys, ops), rng.random(ops) < share
    grp, val = rng.integers(0, groups, ops), rng.integers(0, 10_000, ops)
    live: set[int] = set()
    log: list[Operation] = []
    for i, key in enumerate(draw.tolist()):
        if wanted[i] and key in live:
            live.remove(key)
            log.append((i, "delete", f"k{key:09d}", None, None))
        else:
            live.add(key)
            log.append((i, "put", f"k{key:09d}", f"x{grp[i]:06d}", int(val[i])))
    return log


def digest(table: object) -> str:
    return hashlib.sha256(repr(table.to_pylist()).encode()).hexdigest()[:16]  # type: ignore[attr-defined]  # Arrow has no stubs


@pytest.mark.parametrize(
    ("mix", "share"), [((50, 35, 15), 0.15), ((1, 1, 8), 0.8), ((0, 0, 1), 1.0)]
)
def test_the_log_is_what_drawing_one_operation_after_the_other_gives(
    mix: tuple[int, int, int], share: float
) -> None:
    table = workload.generate(3_000, 200, 20, "uniform", mix, seed=11)
    assert [tuple(row.values()) for row in table.to_pylist()] == one_at_a_time(
        3_000, 200, 20, 11, share
    )


def test_published_figures_stay_comparable_because_the_log_of_a_seed_never_changes() -> None:
    assert digest(workload.generate(5_000, 500, 50, "uniform", seed=7)) == "de707fe6c06db5e8"
    assert digest(workload.generate(5_000, 500, 50, "zipf", seed=7)) == "d5ffe67e413bd34f"


def test_a_delete_names_a_live_row() -> None:
    live: set[str] = set()
    for row in workload.generate(5_000, 300, 10, "zipf", (1, 1, 2), seed=3).to_pylist():
        if row["op"] == "delete":
            assert row["key"] in live
            live.remove(row["key"])
        else:
            live.add(row["key"])


def test_a_cached_log_is_written_once_and_reads_back(tmp_path: Path) -> None:
    path = workload.cached(tmp_path / "logs", 1_000, 100, 10)
    written = path.stat().st_mtime_ns
    assert workload.cached(tmp_path / "logs", 1_000, 100, 10).stat().st_mtime_ns == written
    assert pq.read_table(path).equals(workload.generate(1_000, 100, 10))


def test_touched_keys_are_all_different() -> None:
    keys = workload.touch(500, 1_000)["key"].to_pylist()
    assert len(set(keys)) == 500


def test_numbers_that_need_more_digits_are_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into 6 digits"):
        workload.generate(2_000, 10, groups=5_000_000)
