"""What the scenario on sources found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceCopy:
    """A first copy of a table of so many rows; a bare client read the same rows in `bare_s`."""

    kind: str
    rows: int
    seconds: float
    bare_s: float
    correct: bool

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds

    @property
    def share(self) -> float:
        """Of the rate of the bare client."""
        return self.bare_s / self.seconds


@dataclass(frozen=True, slots=True)
class SourceCapture:
    """A backlog in a server's log until all of it is in ours; a bare client read the same log in
    `bare_s`, and kept nothing. `changes` are rows.
    """

    kind: str
    changes: int
    seconds: float
    bare_s: float
    correct: bool

    @property
    def changes_per_s(self) -> float:
        return self.changes / self.seconds

    @property
    def share(self) -> float:
        """Of the rate of the bare client."""
        return self.bare_s / self.seconds


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """Transactions per second of somebody who writes at a server, medians of `rounds`, in turns:
    into a table that is followed meanwhile, and into one that nobody follows.
    """

    kind: str
    rounds: int
    followed_per_s: float
    alone_per_s: float

    @property
    def share(self) -> float:
        """What is left of the writer's rate."""
        return self.followed_per_s / self.alone_per_s


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """From a commit at a server until a view shows it, and from a put into a table of ours until
    the same view over that table does; p50 in ms, in turns, beside a running pipeline.
    """

    kind: str
    probes: int
    source_ms: float
    own_ms: float
    correct: bool


@dataclass(frozen=True, slots=True)
class SourceResults:
    copies: tuple[SourceCopy, ...] = ()
    captures: tuple[SourceCapture, ...] = ()
    loads: tuple[SourceLoad, ...] = ()
    freshness: tuple[SourceFreshness, ...] = ()
