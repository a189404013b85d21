"""Waiting until what sources have by now is in our log: each is asked for its position once, at the
beginning.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from belvedere.capture.awaited import note_awaited
from belvedere.capture.condition import read_conditions
from belvedere.capture.progress import Progress, read_progress
from belvedere.capture.threads import Capture, Connect
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.state import CatalogState, committed, read_state
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.lease import LEASE_SECONDS, Lease
from belvedere.errors import BelvedereError, SourceError, Timeout
from belvedere.stores.base import Store, TableId
from belvedere.types import Vector
from belvedere.waiting import wait_until
from belvedere.warehouse.covered import read_covered
from belvedere.warehouse.keeping import read_notes, sources_of


class Arrival:
    """`errors` are of sources that are not waited for any more, by their names."""

    def __init__(self, store: Store, connect: Connect, sources: Iterable[SourceDefinition]) -> None:
        self._store, self._connect, self._began = store, connect, time.time()
        self._wanted: dict[str, tuple[SourceDefinition, str]] = {}
        self.errors: dict[str, BelvedereError] = {}
        for source in sources:
            try:
                self._wanted[source.name.lower()] = source, connect(source).position()
            except SourceError as error:
                self.errors[source.name.lower()] = error
        self._kept = kept_sources(store.catalog.read(read_state), connect, self.errors)

    def is_over(self) -> bool:
        """Whether everything has arrived that will."""
        if not self._wanted and not self._kept:
            return True
        state = self._store.catalog.read(read_state)
        self._look_at_kept(state)
        wrong = {n: c for n, c in read_conditions(self._store).items() if c.is_wrong}
        for name, (source, position) in list(self._wanted.items()):
            if name not in state.sources:
                del self._wanted[name]  # dropped meanwhile
                continue
            progress, _ = read_progress(self._store, source.progress)
            if name in wrong and wrong[name].time >= self._began:
                self.errors[name] = SourceError(f"source {source.name}: {wrong[name].message}")
                del self._wanted[name]
            elif self._has_arrived(state, source, progress, position):
                self._note_refused(state, source, progress)
                del self._wanted[name]
        return not self._wanted and not self._kept

    def _look_at_kept(self, state: CatalogState) -> None:
        """Views that are kept by an algorithm are waited for until they cover what is wanted."""
        tables, notes = {t.id: t for t in state.joined()}, read_notes(self._store)
        for number, wanted in list(self._kept.items()):
            note, table = notes.get(number), tables.get(number)
            if table is None or number in state.dropping:
                del self._kept[number]  # dropped meanwhile
            elif note is not None and note.is_wrong and note.time >= self._began:
                self.errors[table.name] = SourceError(f"{table.name}: {note.message}")
                del self._kept[number]
            elif is_kept_up(self._store, self._connect, state, table, wanted) is not None:
                del self._kept[number]

    def _has_arrived(
        self, state: CatalogState, source: SourceDefinition, progress: Progress, position: str
    ) -> bool:
        if not progress.position or progress.generation != state.source(source.name).generation:
            return False
        coming = uncopied(state, source.name) - _refused(state, source.name, progress).keys()
        return not coming and _covers(self._store, self._connect, source, progress, position)

    def _note_refused(
        self, state: CatalogState, source: SourceDefinition, progress: Progress
    ) -> None:
        """Relations that were to be copied and cannot be."""
        refused = _refused(state, source.name, progress)
        for table in uncopied(state, source.name) & refused.keys():
            self.errors[source.name.lower()] = SourceError(refused[table])

    @property
    def behind(self) -> str:
        """What is still waited for, for a message."""
        names = {source.name for source, _ in self._wanted.values()}
        return ", ".join(sorted(names.union(*self._kept.values())))


def kept_sources(
    state: CatalogState, connect: Connect, errors: dict[str, BelvedereError]
) -> dict[TableId, dict[str, str]]:
    """Where the sources are now of which views are kept by an algorithm."""
    found: dict[TableId, dict[str, str]] = {}
    for table in state.joined():
        if table.id in state.dropping:
            continue
        try:
            of = sources_of(state, table)
            found[table.id] = {name: connect(source).position() for name, source in of.items()}
        except SourceError as error:
            errors[table.name] = error
    return found


def is_kept_up(
    store: Store,
    connect: Connect,
    state: CatalogState,
    table: TableDefinition,
    wanted: dict[str, str],
) -> Vector | None:
    """A vector with which a view covers these positions of its sources; None while it does not."""
    assert table.joined is not None
    covered, vector = read_covered(store, table.joined.progress)
    if not covered.positions or state.adopting.get(table.id, vector) is None:
        return None
    for name, position in wanted.items():
        if not connect(state.source(name)).covers(covered.positions[name], position):
            return None
    return vector


def uncopied(state: CatalogState, source: str) -> set[TableId]:
    """Relations of which a copy is wanted and not there."""
    wanted = {table for table, vector in state.adopting.items() if vector is None}
    return wanted & {table.id for table in state.relations_of(source)}


def _refused(state: CatalogState, source: str, progress: Progress) -> dict[TableId, str]:
    """Why relations cannot be copied, with definitions as they are now."""
    found = {}
    for table in state.relations_of(source):
        relation = table.followed.relation if table.followed is not None else ""
        if progress.refused.get(relation) == state.head.version:
            found[table.id] = f"{table.name} cannot be followed: {progress.stopped[relation]}"
    return found


def has_sources(state: CatalogState) -> bool:
    """Whether anybody uses something of a source."""
    return bool(followed_sources(state) or state.joined())


def followed_sources(state: CatalogState) -> list[SourceDefinition]:
    """Sources of which somebody uses something."""
    return [s for s in state.sources.values() if not s.dropping and state.relations_of(s.name)]


def positions(state: CatalogState, connect: Connect) -> dict[str, str]:
    """Where sources are now, by their names."""
    used = {source.name: source for source in followed_sources(state)}
    for table in state.joined():
        used |= sources_of(state, table)
    return {name: connect(source).position() for name, source in used.items()}


def await_positions(
    store: Store, connect: Connect, wanted: dict[str, str], timeout: float
) -> Vector:
    """A vector that contains what sources had at these positions."""
    end = wait_until(lambda: _arrived(store, connect, wanted), timeout)
    if end is None:
        raise Timeout(
            f"after {timeout:g} s what was written at {', '.join(wanted)} has not arrived: see"
            " belvedere status, or give the session a longer timeout"
        )
    return end


def _arrived(store: Store, connect: Connect, wanted: dict[str, str]) -> Vector | None:
    """None while something has not arrived."""
    state, end = store.catalog.read(read_state), Vector()
    for name, position in wanted.items():
        source = state.source(name)
        if not state.relations_of(name):
            continue
        progress, vector = read_progress(store, source.progress)
        if not progress.position or not _covers(store, connect, source, progress, position):
            return None
        end = end.merge(vector)
    for table in state.joined():
        there = {name: wanted[name] for name in sources_of(state, table) if name in wanted}
        found = is_kept_up(store, connect, state, table, there)
        if found is None:
            return None
        end = end.merge(found)
    return end


def _covers(
    store: Store, connect: Connect, source: SourceDefinition, progress: Progress, position: str
) -> bool:
    """Whether this is written; if not, who follows is told that it is waited for."""
    opened = connect(source)
    if opened.covers(progress.position, position):
        return True
    note_awaited(store, source.name, opened, position)
    return False


def await_arrival(
    arrival: Arrival,
    capture: Capture,
    coordinator: Coordinator,
    timeout: float | None,
    deadline: float,
) -> None:
    """Followed from here, by `capture`, if nobody else has the lease."""

    def is_over() -> bool | None:
        if arrival.is_over():
            return True
        if coordinator.lease is None or _is_late(coordinator.lease):
            coordinator.acquire()
        if coordinator.lease is not None:
            capture.tend()
        return None

    try:
        left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
        if wait_until(is_over, left) is None:
            raise Timeout(
                f"after {timeout:g} s not everything has arrived that {arrival.behind} had: allow"
                " more time, or see belvedere status",
                reached=committed(coordinator.store).vector,
            )
    finally:
        capture.stop()
        coordinator.release()


def _is_late(lease: Lease) -> bool:
    return time.time() > lease.expires - LEASE_SECONDS / 2
