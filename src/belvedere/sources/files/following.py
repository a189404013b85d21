"""The monitor of files: takes a snapshot when it is time, and says what differs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere.sources.base import Event, Quiet, Relation, Stopped
from belvedere.sources.files.differences import difference
from belvedere.sources.files.options import Options
from belvedere.sources.files.reading import OtherColumns
from belvedere.sources.files.snapshots import Snapshots
from belvedere.waiting import wait_until


class FileMonitor:
    def __init__(
        self, options: Options, snapshots: Snapshots, relations: Sequence[Relation], position: int
    ) -> None:
        self._options, self._snapshots = options, snapshots
        self._relation = relations[0] if relations else None
        self._position = position
        self._next_look = 0.0

    def poll(self, timeout: float) -> Sequence[Event]:
        found: list[Event] | None = wait_until(self._events, max(0.0, timeout))
        return found or []

    def _events(self) -> list[Event] | None:
        found = self._event()
        return [found] if found is not None else None

    def _event(self) -> Event | None:
        """One transaction at a time: it may be large."""
        if self._relation is None:
            return self._quiet()
        now = time.monotonic()
        if self._position >= max(self._snapshots.numbers(), default=0) and now >= self._next_look:
            self._next_look = now + self._options.every
            try:
                self._snapshots.take(self._relation.schema)
            except OtherColumns as error:
                return self._stop(str(error))
        return self._next_difference(self._relation)

    def _next_difference(self, relation: Relation) -> Event | None:
        """Also of snapshots that others have taken. One that changes nothing is quiet."""
        later = [number for number in self._snapshots.numbers() if number > self._position]
        if not later:
            return None
        old, new = self._snapshots.get(self._position), self._snapshots.get(later[0])
        found = difference(relation.name, old, new)
        self._position = new.number
        change = found.changes[0]
        return found if len(change.before) or len(change.after) else Quiet(found.position)

    def _quiet(self) -> Event | None:
        latest = max(self._snapshots.numbers(), default=0)
        if latest <= self._position:
            return None
        self._position = latest
        return Quiet(str(latest))

    def _stop(self, why: str) -> Event | None:
        if self._relation is None:
            return None
        name, self._relation = self._relation.name, None
        return Stopped(name, str(self._position), f"{why}. Load it again with its new columns")

    def confirm(self, position: str) -> None:
        self._snapshots.forget(int(position))

    def close(self) -> None:
        """Nothing is open between calls."""
