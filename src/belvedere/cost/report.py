"""What EXPLAIN COST answers, as data.

Numbers of records and rows are rounded estimates, exact where `exact` says so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StateSize:
    """One state table of a node; `low` and `high` bound the records."""

    what: str
    records: int
    bytes: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class NodeCost:
    """A node that keeps state. One that is `shared` with other views costs nothing new."""

    operator: str
    what: str
    level: int
    exchange: bool
    shared: tuple[str, ...]
    state: tuple[StateSize, ...]

    @property
    def records(self) -> int:
        return sum(s.records for s in self.state)

    @property
    def bytes(self) -> int:
        return sum(s.bytes for s in self.state)


@dataclass(frozen=True, slots=True)
class HeavyKey:
    """A value of the join key with many rows on one side."""

    key: tuple[Any, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join: `matches` is what one changed row of it meets on the other side, on
    average.
    """

    tables: tuple[str, ...]
    columns: tuple[str, ...]  # of the join key
    rows: int
    keys: int  # different ones
    matches: float
    unique: bool
    # the keys with most rows on this side: what a changed row of the other side meets there
    heaviest: tuple[HeavyKey, ...]


@dataclass(frozen=True, slots=True)
class JoinCost:
    what: str
    left: JoinSide
    right: JoinSide
    pairs: int
    seen: int  # pairs in the samples: what the estimate stands on
    shared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SampledTable:
    name: str
    rows: int
    sampled: int


@dataclass(frozen=True, slots=True)
class HistoryCost:
    """What is kept of the past: how much is asked for, how many epochs can be read now, and what an
    epoch wrote for the view lately (None: not known).
    """

    kept: str
    epochs: int
    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """`records` and `bytes` are those of new state; `errors` are rows that the view could not
    evaluate.
    """

    view: str
    exact: bool
    tables: tuple[SampledTable, ...]
    levels: int
    exchanges: int
    new_exchanges: int
    records: int
    bytes: int
    errors: int
    nodes: tuple[NodeCost, ...]
    joins: tuple[JoinCost, ...]
    history: HistoryCost | None = None
    is_complete: bool = False  # an epoch for every transaction of the database

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
