"""What the scenarios found that look at files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What a workload end to end costs the disk.

    `given` are the bytes of the rows that were written, `written` what all processes gave the disk
    for them (writer, pipeline with JVM and workers), `largest` and `left` the size of the directory
    while it went on and at its end, `live` the bytes of table and views as Arrow has them.
    """

    name: str
    view: str
    ops: int
    keys: int
    seconds: float
    given: int
    written: int
    largest: int
    left: int
    live: int
    correct: bool

    @property
    def ops_per_s(self) -> float:
        return self.ops / self.seconds

    @property
    def write_amplification(self) -> float:
        return self.written / self.given

    @property
    def space_amplification(self) -> float:
        return self.left / self.live


@dataclass(frozen=True, slots=True)
class BaseRead:
    """`get` of a base row through the public table, p50, with so many operations that nobody has
    settled yet; beside a bare LMDB get in a transaction of its own.
    """

    waiting: int
    reads: int
    p50_us: float
    lmdb_us: float
    correct: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """`view.why`, p50: how long it takes, and of how many base rows the records are made."""

    view: str
    asked: int
    rows: int
    p50_ms: float
    correct: bool
