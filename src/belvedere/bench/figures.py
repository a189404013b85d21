"""What engines that are not run here reached on the same workload.

Measured 2026-11-15 on 2 cores and 24 GiB: 1 M operations, 250 k keys, 1,000 groups, uniform.
Thousand operations per second, end to end, start-up excluded, one or two runs; differences below 30
% are noise. Batches of 10,000 operations unless said. V5 is the join `r JOIN s ON grp` over a log
of two tables, 20 % of it on the small one. The log holds no before-images, so like is compared with
like only beside our *end to end*.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MEASURED = "2026-11-15, 2 cores, 24 GiB"


@dataclass(frozen=True, slots=True)
class Published:
    """Thousand operations per second by view; views that were not measured are missing."""

    engine: str
    durable: str
    kops: dict[str, float] = field(default_factory=dict)
    note: str = ""


def _all(v1: float, v2: float, v3: float, v4: float, v_all: float, v5: float) -> dict[str, float]:
    return {"V1": v1, "V2": v2, "V3": v3, "V4": v4, "V_all": v_all, "V5": v5}


PUBLISHED = (
    Published(
        "Rust hash maps, 2 threads", "no", _all(2120, 3559, 1644, 2005, 1061, 401), "the limit"
    ),
    Published(
        "Rust hash maps, 1 thread, fsynced log",
        "log only",
        {"V2": 2030, "V4": 1170, "V_all": 480, "V5": 234},
    ),
    Published(
        "Rust + LMDB + log",
        "yes",
        {"V2": 345, "V4": 209, "V_all": 132, "V5": 182},
        "batches of 100 k: V2 910, V_all 239",
    ),
    Published(
        "differential-dataflow 0.25, 2 workers",
        "no",
        _all(1996, 1476, 381, 714, 241, 193),
        "V1: one worker; V1 is kept nowhere",
    ),
    Published(
        "dbsp 0.375 (Feldera), 2 workers",
        "no",
        _all(562, 465, 363, 518, 274, 50),
        "V1 is kept nowhere",
    ),
    Published("dbsp 0.375, checkpoint every 100 k", "per checkpoint", {"V2": 244, "V_all": 143}),
    Published("dbsp 0.375, checkpoint every 10 k", "per checkpoint", {"V2": 99}),
    Published("Python dict, one thread", "no", _all(302, 291, 164, 292, 125, 16)),
    Published("LMDB by hand in Python", "yes", _all(196, 132, 129, 130, 65, 8)),
    Published("DuckDB 2.0, upsert and recompute", "yes", _all(81, 149, 123, 66, 51, 66)),
    Published("Pathway 0.33", "no", _all(61, 76, 60, 67, 25, 9)),
    Published("Flink SQL 2.3, heap state", "no", _all(142, 89, 52, 133, 32, 30), "blackhole sink"),
    Published(
        "Flink SQL 2.3, RocksDB state", "with checkpoints", {"V2": 51}, "with 1 s checkpoints: 38"
    ),
    Published("PostgreSQL 15, statement trigger", "yes", {"V2": 72}),
    Published(
        "Spark 4.3, foreachBatch over Parquet",
        "files",
        {"V2": 39, "V_all": 27, "V5": 28},
        "batches of 100 k",
    ),
)
RUN_HERE = {
    "LMDB by hand in Python": "lmdb_by_hand",
    "DuckDB 2.0, upsert and recompute": "duckdb_refresh",
}

FRESHNESS_MS = {
    "Rust in memory": "0.003",
    "differential-dataflow": "0.04",
    "Rust, fsynced log": "0.3",
    "dbsp": "0.3-1.2",
    "LMDB by hand in Python": "0.8",
    "Pathway": "0.9",
    "Rust LMDB": "1.1",
    "PostgreSQL trigger": "2-4",
    "Flink": "2.3 (buffer timeout 0) to 150 (default)",
    "DuckDB recompute": "14-160",
    "Spark batch": "700-1200",
}
"""Ten operations written until visible, p50."""

EMPTY_JOB_MS = {"one stage of mapInArrow": "100-130", "two stages": "250", "three stages": "340"}
"""An empty Spark job, warm, p50."""
