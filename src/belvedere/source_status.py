"""Status of sources: how far each was followed, what of it is in the views, and what to do."""

from __future__ import annotations

import time
from dataclasses import dataclass

from belvedere.capture.arrival import uncopied
from belvedere.capture.condition import FOLLOWING, LOST, Condition, read_conditions
from belvedere.capture.progress import Progress, progress_in_views, read_progress, read_time
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.state import CatalogState
from belvedere.errors import Stale
from belvedere.stores.base import Store


@dataclass(frozen=True, slots=True)
class RelationInfo:
    """`state` is followed, copying or stopped; `reason` says why it is stopped. `is_kept`: its rows
    are here, and stay.
    """

    name: str
    state: str
    reason: str = ""
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """`state` is following, idle, unreachable, lost, failed or, before anybody has followed it,
    new. Lag in transactions and seconds is of what was followed and is not in the views (how many,
    and since when the oldest of them is committed); in bytes, of the source's log that was not
    read, as it was at `checked`.
    """

    name: str
    kind: str
    state: str
    message: str
    position: str
    transactions: int
    lag_transactions: int
    lag_seconds: float
    lag_bytes: int
    kept_bytes: int
    note: str
    checked: float
    relations: tuple[RelationInfo, ...]

    @property
    def is_measured(self) -> bool:
        """Whether the server has said how much of its log there is for us."""
        return self.state == FOLLOWING

    @property
    def advice(self) -> str:
        """What somebody should do."""
        if self.state == LOST:
            return (
                f"{self.name}: {self.message}. ALTER SOURCE {self.name} RELOAD loads all of its"
                " relations again"
            )
        if self.message:
            return f"{self.name}: {self.message}"
        stopped = [relation for relation in self.relations if relation.state == "stopped"]
        return "; ".join(
            f"{r.name} stays as it was: {r.reason}. ALTER SOURCE {self.name} RELOAD"
            f" {r.name.partition('.')[2]} loads it again"
            for r in stopped
        )


def read_sources(store: Store, state: CatalogState) -> tuple[SourceInfo, ...]:
    if not state.sources:
        return ()
    conditions = read_conditions(store)
    new = Condition("new", 0.0)
    return tuple(
        _source(store, state, source, conditions.get(name, new))
        for name, source in sorted(state.sources.items())
        if not source.dropping
    )


def _source(
    store: Store, state: CatalogState, source: SourceDefinition, condition: Condition
) -> SourceInfo:
    now, _ = read_progress(store, source.progress)
    try:
        seen = progress_in_views(store, source.progress, state.head.vector) or now
    except Stale:
        seen = now  # epochs have moved on meanwhile: there is no lag to speak of
    tables = sorted(state.relations_of(source.name), key=lambda table: table.name)
    behind = max(0, now.transactions - seen.transactions)
    return SourceInfo(
        source.name,
        source.kind,
        condition.state,
        condition.message,
        now.position,
        now.transactions,
        behind,
        _lag_seconds(store, source, now, seen) if behind else 0.0,
        condition.lag_bytes,
        condition.kept_bytes,
        condition.note,
        condition.time,
        tuple(_relation(state, table, now) for table in tables),
    )


def _lag_seconds(store: Store, source: SourceDefinition, now: Progress, seen: Progress) -> float:
    oldest = read_time(store, source.progress, now, seen.transactions + 1)
    return max(0.0, time.time() - oldest) if oldest else 0.0


def _relation(state: CatalogState, table: TableDefinition, progress: Progress) -> RelationInfo:
    assert table.followed is not None
    reason = progress.stopped.get(table.followed.relation)
    is_kept = state.is_kept(table)
    if reason is not None:
        return RelationInfo(table.name, "stopped", reason, is_kept)
    is_copying = table.id in uncopied(state, table.followed.source)
    return RelationInfo(table.name, "copying" if is_copying else "followed", is_kept=is_kept)
