"""What a run found, as plain values that can be written to JSON and read back.

Every scenario returns a `Results` with its own part filled; `merged` puts parts together.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self, get_args, get_origin, get_type_hints

from belvedere.bench.disk_results import BaseRead, DiskUse, Explanation
from belvedere.bench.feed_results import CompleteCost, FeedCost, WholeScan
from belvedere.bench.hbase_results import HBaseResults
from belvedere.bench.peers import PeerResult
from belvedere.bench.source_results import SourceResults
from belvedere.bench.transaction_results import TransactionCost

INGEST, MAINTAIN, END_TO_END = "ingest", "maintain", "end to end"


@dataclass(frozen=True, slots=True)
class Rate:
    """Operations over time.

    `size` is the bound of one call (ingest) or epoch, `epochs` what the epochs really held.
    """

    figure: str
    view: str
    ops: int
    seconds: float
    size: int
    correct: bool
    epochs: tuple[int, ...] = ()

    @property
    def ops_per_s(self) -> float:
        return self.ops / self.seconds


@dataclass(frozen=True, slots=True)
class Freshness:
    """Ten operations: by a running pipeline until visible, and by write and `catch_up` with its
    stages; all p50 in ms.
    """

    view: str
    base_ops: int
    probes: int
    visible_ms: float
    visible_p95_ms: float
    write_ms: float
    catch_up_ms: float
    stages_ms: dict[str, float]
    empty_job_ms: float
    correct: bool


@dataclass(frozen=True, slots=True)
class FlatPoint:
    """Cost of one operation on a base table of `base_rows`, in microseconds; median of `repeats`
    epochs of `ops`.

    `lmdb_us`: what one put costs a bare LMDB table of as many rows, in durable transactions of as
    many.
    """

    view: str
    base_rows: int
    ops: int
    repeats: int
    write_us: float
    maintain_us: float
    lmdb_us: float
    correct: bool


@dataclass(frozen=True, slots=True)
class SinglePut:
    """One durable put beside one LMDB transaction, and one append with an fsync, that write the
    same bytes, taken in turns.
    """

    puts: int
    p50_ms: float
    p95_ms: float
    lmdb_p50_ms: float
    lmdb_p95_ms: float
    append_p50_ms: float
    bytes_written: int
    correct: bool


@dataclass(frozen=True, slots=True)
class PointRead:
    """`get` on a view beside LMDB with the same keys: in a read transaction of its own, and in one
    that is open.
    """

    view: str
    reads: int
    p50_us: float
    lmdb_own_txn_us: float
    lmdb_open_txn_us: float
    correct: bool


@dataclass(frozen=True, slots=True)
class Scan:
    view: str
    rows: int
    seconds: float
    correct: bool

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True)
class KeyedStatement:
    """A statement by key, p50 in ms: as a whole, its planning alone, and `get`, `put`, `delete` or
    `scan` of the same key beside it.
    """

    relation: str
    statement: str
    count: int
    p50_ms: float
    planning_ms: float
    beside_ms: float
    correct: bool

    @property
    def to_beside(self) -> float:
        """What is left after planning, as a multiple."""
        return (self.p50_ms - self.planning_ms) / self.beside_ms


@dataclass(frozen=True, slots=True)
class BaseWrite:
    """The writer's rate with a number of views; `pipeline` says whether another process kept them
    meanwhile.
    """

    views: int
    pipeline: bool
    ops: int
    seconds: float
    correct: bool

    @property
    def ops_per_s(self) -> float:
        return self.ops / self.seconds


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """Peak of the pipeline's process tree while it works off a backlog."""

    view: str
    backlog: int
    resident_mb: int
    anonymous_mb: int
    seconds: float
    correct: bool
    epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinCost:
    """Microseconds per operation of the join V5 where every row of s has `matches` rows of r;
    `matched_us` per matched row of r.

    Medians of epochs with operations on r alone, and on s alone.
    """

    matches: int
    left_ops: int
    left_us: float
    right_ops: int
    right_us: float
    correct: bool

    @property
    def matched_us(self) -> float:
        return self.right_us / self.matches


@dataclass(frozen=True, slots=True)
class ManyViews:
    """Maintenance of many views of one table; `nodes` and `tables` as if each view had its own,
    `kept_*` what there really is.
    """

    views: int
    ops: int
    seconds: float
    size: int
    nodes: int
    kept_nodes: int
    tables: int
    kept_tables: int
    correct: bool

    @property
    def us_per_op(self) -> float:
        return self.seconds / self.ops * 1e6


@dataclass(frozen=True, slots=True)
class TpchPoint:
    """Cost of one changed row for a TPC-H query at a scale factor, in microseconds; median of
    `repeats` epochs of about `rows`.
    """

    query: str
    scale: float
    base_rows: int
    rows: int
    repeats: int
    maintain_us: float
    correct: bool


@dataclass(frozen=True, slots=True)
class FanOut:
    """One row of the small side changes, and with it so many rows of the join: until committed, and
    the pipeline's peak.
    """

    rows: int
    seconds: float
    resident_mb: int
    anonymous_mb: int
    correct: bool


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    memory_gib: int
    python: str
    packages: dict[str, str]
    date: str

    @classmethod
    def here(cls) -> Machine:
        gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        names = ("duckdb", "lmdb", "numpy", "pyarrow", "pyspark")
        return cls(
            os.cpu_count() or 1,
            gib,
            platform.python_version(),
            {n: _version(n) for n in names},
            now,
        )


@dataclass(frozen=True, slots=True)
class Results:
    machine: Machine = field(default_factory=Machine.here)
    rates: tuple[Rate, ...] = ()
    peers: tuple[PeerResult, ...] = ()
    freshness: tuple[Freshness, ...] = ()
    flatness: tuple[FlatPoint, ...] = ()
    single_puts: tuple[SinglePut, ...] = ()
    transactions: tuple[TransactionCost, ...] = ()
    point_reads: tuple[PointRead, ...] = ()
    scans: tuple[Scan, ...] = ()
    keyed: tuple[KeyedStatement, ...] = ()
    base_writes: tuple[BaseWrite, ...] = ()
    memory: tuple[MemoryPeak, ...] = ()
    disk: tuple[DiskUse, ...] = ()
    base_reads: tuple[BaseRead, ...] = ()
    feeds: tuple[FeedCost, ...] = ()
    whole_scans: tuple[WholeScan, ...] = ()
    complete: tuple[CompleteCost, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    joins: tuple[JoinCost, ...] = ()
    many_views: tuple[ManyViews, ...] = ()
    tpch: tuple[TpchPoint, ...] = ()
    fan_out: tuple[FanOut, ...] = ()
    sources: tuple[SourceResults, ...] = ()
    hbase: tuple[HBaseResults, ...] = ()

    def rate(self, figure: str, view: str, size: int | None = None) -> Rate | None:
        """The figure's last measurement, or none."""
        found = [r for r in self.rates if (r.figure, r.view) == (figure, view)]
        return next((r for r in reversed(found) if size is None or r.size == size), None)

    def peer(self, engine: str, view: str) -> float | None:
        """Operations per second of a peer: the median when it ran several times."""
        found = [p.ops_per_s for p in self.peers if (p.engine, p.view) == (engine, view)]
        return statistics.median(found) if found else None

    def ratio(self, rate: Rate | None, engine: str, view: str) -> float | None:
        peer = self.peer(engine, view)
        return rate.ops_per_s / peer if rate and peer else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        built: Self = _build(cls, data)
        return built

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=1))

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls.from_json(json.loads(path.read_text()))


def merged(parts: Iterable[Results]) -> Results:
    """All parts as one; the machine is that of the first."""
    listed = list(parts)
    names = [f.name for f in fields(Results) if f.name != "machine"]
    machine = listed[0].machine if listed else Machine.here()
    return Results(
        machine,
        **{name: tuple(x for part in listed for x in getattr(part, name)) for name in names},
    )


def _build(kind: Any, data: Any) -> Any:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: _build(hints[name], value) for name, value in data.items()})  # type: ignore[operator]  # a class
    if get_origin(kind) is tuple:
        return tuple(_build(get_args(kind)[0], value) for value in data)
    return data


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"
