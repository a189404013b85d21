"""Engines that are measured beside ours in the same run. Each runs in a process of its own.

A peer's module has `run(ops_path, view, state_dir, ...)`, which starts that process and returns its
PeerResult, and `measure` with the same arguments, which does the work where it is called.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from belvedere.bench import process

PROBES = 20


@dataclass(frozen=True, slots=True)
class PeerResult:
    """One run over a log; `batch` is the number of operations per durable transaction, or per
    refresh.
    """

    engine: str
    view: str
    ops: int
    batch: int
    ops_per_s: float
    seconds: float
    correct: bool
    p50_10ops_ms: float
    rss_mb: int


def in_process(module: str, ops_path: Path, view: str, state_dir: Path, batch: int) -> PeerResult:
    return PeerResult(**process.run_json(module, str(ops_path), view, str(state_dir), str(batch)))


def main(measure: Callable[[Path, str, Path, int], PeerResult], arguments: list[str]) -> None:
    """The body of `python -m`: OPS.parquet VIEW STATE_DIR BATCH, answered with one JSON line."""
    ops_path, view, state_dir, batch = arguments
    print(
        json.dumps(asdict(measure(Path(ops_path), view, Path(state_dir), int(batch)))), flush=True
    )


def timed(steps: Iterable[Callable[[], None]]) -> list[float]:
    seconds = []
    for step in steps:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds


def p50_ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1_000
