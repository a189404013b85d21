"""The monitor of a MariaDB server: follows its binary log as a replica does."""

from __future__ import annotations

import time
from collections.abc import Sequence

from belvedere.sources.base import Event, Quiet, Relation
from belvedere.sources.mariadb.groups import PARTS, Groups
from belvedere.sources.mariadb.places import LogPosition
from belvedere.sources.mariadb.reading import LogReader, wires
from belvedere.sources.mariadb.settings import Settings

_ENOUGH = 20_000  # images of rows in one answer of `poll`


class LogMonitor:
    def __init__(
        self, settings: Settings, relations: Sequence[Relation], position: LogPosition
    ) -> None:
        tables = {relation.name for relation in relations} | {PARTS}
        self._reader = LogReader(settings, position.start, tables)
        self._groups = Groups(settings.database, relations, position, self._reader.columns, wires)
        self._said = str(position)

    def poll(self, timeout: float) -> Sequence[Event]:
        deadline = time.monotonic() + timeout
        while self._more(deadline):
            self._groups.event(self._reader.next(), self._reader.place)
        return self._events()

    def _more(self, deadline: float) -> bool:
        """Whether to read on: to the end of a transaction always, else while there is something to
        read and not enough was found; waits only if nothing was found yet.
        """
        groups = self._groups
        if groups.is_open:
            return True
        if groups.images >= _ENOUGH:
            return False
        if groups.has_taken or str(groups.position) != self._said:
            return self._reader.is_ready() and time.monotonic() < deadline
        return self._reader.wait(max(0.0, deadline - time.monotonic()))

    def _events(self) -> list[Event]:
        found = self._groups.take()
        position = str(self._groups.position)
        if not self._groups.is_open and position not in (self._said, _last(found)):
            found.append(Quiet(position))
        if found:
            self._said = _last(found)
        return found

    def confirm(self, position: str) -> None:
        """MariaDB keeps its log as long as it is set to, whoever reads it."""

    def close(self) -> None:
        self._reader.close()


def _last(events: Sequence[Event]) -> str:
    return events[-1].position if events else ""
