"""What the scenario `feeds` found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeedCost:
    """A view with a consumer of its changes, beside the same view without one.

    `with_s` and `without_s` are what the same epochs took, in turns; the consumer reads each of
    them after it is committed, in `feed_s` for `changes` rows.
    """

    view: str
    ops: int
    with_s: float
    without_s: float
    changes: int
    feed_s: float
    correct: bool

    @property
    def cost(self) -> float:
        """The share that is added to maintaining."""
        return self.with_s / self.without_s - 1.0

    @property
    def changes_per_s(self) -> float:
        return self.changes / self.feed_s


@dataclass(frozen=True, slots=True)
class WholeScan:
    """All rows of a view, medians of as many scans: `to_arrow`, a feed's first table, and Spark's
    data source into a sink that drops them.
    """

    view: str
    rows: int
    to_arrow_s: float
    first_s: float
    source_s: float
    correct: bool

    @property
    def share(self) -> float:
        """How fast the data source is beside `to_arrow`."""
        return self.to_arrow_s / self.source_s


@dataclass(frozen=True, slots=True)
class CompleteCost:
    """Transactions of so many operations each, with a complete view and with the same as strong."""

    transactions: int
    ops: int
    complete_s: float
    strong_s: float
    correct: bool
