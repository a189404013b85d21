"""What the scenario on HBase found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HBaseCapture:
    """A backlog of operations until all of it is in the log."""

    ops: int
    seconds: float

    @property
    def ops_per_s(self) -> float:
        return self.ops / self.seconds


@dataclass(frozen=True, slots=True)
class HBaseMaintain:
    """Median seconds of `rounds` backlogs of `ops` operations in so many tasks, in turns with
    others.

    `rows` is what the epochs of a backlog wrote; a bare client put the same rows in `bare_s`, with
    as many threads as there were tasks. `commit_s` is the part of `seconds` in which they were
    written, on the average of the tasks.
    """

    view: str
    tasks: int
    ops: int
    rounds: int
    rows: int
    seconds: float
    commit_s: float
    bare_s: float
    correct: bool

    @property
    def ops_per_s(self) -> float:
        return self.ops / self.seconds

    @property
    def share(self) -> float:
        """Of the rate of the bare client."""
        return self.bare_s / self.seconds

    @property
    def commit_share(self) -> float:
        """The same for the writing alone."""
        return self.bare_s / self.commit_s


@dataclass(frozen=True, slots=True)
class HBaseWrites:
    """A client of HBase that writes the base table: medians of `rounds`, in turns.

    `captured` says whether the table was a base table at all, `running` whether epochs ran
    meanwhile.
    """

    views: int
    captured: bool
    running: bool
    rounds: int
    puts_per_s: float
    p50_ms: float


@dataclass(frozen=True, slots=True)
class HBaseFreshness:
    """From an acknowledged put until a view shows it, p50 in ms: by `catch_up`, by asking again and
    again, and by a session.
    """

    view: str
    probes: int
    catch_up_ms: float
    barrier_ms: float
    polling_ms: float
    session_ms: float
    get_ms: float
    correct: bool


@dataclass(frozen=True, slots=True)
class HBaseResults:
    capture: tuple[HBaseCapture, ...] = ()
    maintain: tuple[HBaseMaintain, ...] = ()
    writes: tuple[HBaseWrites, ...] = ()
    freshness: tuple[HBaseFreshness, ...] = ()
