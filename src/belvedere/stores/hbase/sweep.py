"""Sweeping: removal of versions that nobody can need any more (H4, H5).

In this order, else a late write could come back to life or a reader see a gap:

    1  the catalog's floor rises, in the transaction that commits an epoch
    2  some time passes, in which servers that are cut off stop answering
    3  the floors in the rows of the table rise: from now on late writes are refused
    4  versions are removed, each at its own timestamp

A sweep can be repeated, be late, or run twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from belvedere.errors import BelvedereError, StoreError, TableGone
from belvedere.stores.base import Slot, TableId
from belvedere.stores.hbase import counts
from belvedere.stores.hbase.client import Cell, Cells, Client
from belvedere.stores.hbase.tables import Place, Registry
from belvedere.types import Epoch

ROWS = 10_000  # looked at in one call
_LEAST = 10_000  # versions for which a sweep is worth it
_PAUSE = 60.0  # seconds between looks at all tables
_FLOOR = b"_"
_log = logging.getLogger(__name__)


def floor_cells(row: bytes, floor: Epoch) -> list[Cell]:
    """A floor in its row. The timestamp is the floor itself: one that comes late and is smaller
    changes nothing.
    """
    value = floor.to_bytes(8, "big")
    old = [Cell(row, counts.FAMILY, _FLOOR, floor - 1, kind="C")] if floor else []
    return [*old, Cell(row, counts.FAMILY, _FLOOR, floor, value)]


class Sweeper:
    def __init__(
        self,
        client: Client,
        registry: Registry,
        floor: Callable[[], Epoch],
        slots: int,
        grace: float,
    ) -> None:
        self._client, self._registry, self._floor, self._slots = client, registry, floor, slots
        self._grace = grace
        self._noted: list[tuple[float, Epoch]] = []  # when a floor was there, the oldest first
        self._working = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked = -_PAUSE

    def note(self, keep: Epoch) -> None:
        """The catalog's floor has reached `keep`. Now and then a thread looks what can go."""
        self._noted.append((time.monotonic(), keep))
        self.start()

    def start(self) -> None:
        """Look in the background, unless that was done a moment ago."""
        now, keep = time.monotonic(), self._settled()
        is_busy = self._thread is not None and self._thread.is_alive()
        if keep == 0 or is_busy or now - self._looked < _PAUSE or self._stop.is_set():
            return
        self._looked = now
        self._thread = threading.Thread(
            target=self._look, args=(keep,), name="belvedere-sweep", daemon=True
        )
        self._thread.start()

    def _settled(self) -> Epoch:
        """The largest floor that is there for long enough; 0 if none is."""
        until = time.monotonic() - self._grace
        old = [noted for noted in self._noted if noted[0] <= until]
        if len(old) > 1:
            self._noted = self._noted[len(old) - 1 :]
        return max((keep for _, keep in old), default=0)

    def _look(self, keep: Epoch) -> None:
        try:
            self.sweep_due(keep)
        except BelvedereError as error:  # the next look tries again
            _log.warning("old versions could not be removed: %s", error)

    def sweep_due(self, keep: Epoch) -> list[TableId]:
        """Sweep tables of which half was written since they were swept; returns which."""
        swept = []
        for place in self._registry.all():
            slots = [s for s in range(self._slots) if not place.is_dropped and self._due(place, s)]
            for slot in slots:
                self.sweep(place.table, slot, keep)
            if slots:
                swept.append(place.table)
        return swept

    def _due(self, place: Place, slot: Slot) -> bool:
        if self._stop.is_set():
            return False
        try:
            found = counts.total(self.versions(place, slot))
        except TableGone:
            return False
        return found.written >= max(_LEAST, found.records // 2)

    def sweep_all(self, keep: Epoch) -> int:
        """Sweep everything now; returns the rows of which something was removed."""
        places = [place for place in self._registry.all() if not place.is_dropped]
        return sum(self.sweep(p.table, slot, keep) for p in places for slot in range(self._slots))

    def sweep(self, table: TableId, slot: Slot, keep: Epoch) -> int:
        """Sweep one slot of a table; returns the rows of which something was removed."""
        if self._floor() < keep:
            raise StoreError(
                f"versions up to epoch {keep} cannot be removed: the catalog's floor is below"
            )
        place = self._registry.find(table)
        if place is None or place.is_dropped:
            return 0
        with self._working:
            records, cells = self._registry.records(place), self._cells(place)
            row = records.floor_row(slot)
            cells.apply(floor_cells(row, keep))
            removed, last = 0, None
            while True:
                page = records.sweep(slot, last, keep, ROWS)
                removed, last = removed + page.counted, page.last
                if last is None:
                    cells.apply(counts.fold(row, self.versions(place, slot), keep))
                    return removed
                if self._stop.is_set():
                    return removed

    def versions(self, place: Place, slot: Slot) -> list[Cell]:
        """What epochs added to a table, and the total below."""
        row = self._registry.records(place).floor_row(slot)
        return self._cells(place).versions(row, counts.FAMILY, counts.QUALIFIER)

    def close(self) -> None:
        """Stop between two calls, and wait for that."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _cells(self, place: Place) -> Cells:
        return self._client.cells(self._registry.full_name(place.name))
