"""State tables: rows of versions, one per epoch that wrote them.

row         slot (1 byte), id of the table if it shares the HBase table, key
cells       `forms.py`; their timestamp is the epoch (H1), a delete is a stamp that says so (H2)
f:_         the floor, in the row of the empty key: writes at or below it are refused (H5). Its
            timestamp is the floor itself, so the largest one counts (H4)
f:n         `counts.py`
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from belvedere.errors import StoreError
from belvedere.libraries import pa
from belvedere.stores.base import (
    FLOOR,
    Difference,
    Getter,
    Slot,
    SlotStatus,
    TableId,
    TableShape,
    scan_differences,
)
from belvedere.stores.hbase import counts
from belvedere.stores.hbase.catalog import HBaseCatalog
from belvedere.stores.hbase.client import Cell, Client
from belvedere.stores.hbase.shard import HBaseReader, HBaseShard
from belvedere.stores.hbase.sweep import ROWS, Sweeper, floor_cells
from belvedere.stores.hbase.tables import Place, Registry, place_of
from belvedere.types import Epoch

_CLOSED = 2**62  # the floor of a table that is dropped


class HBaseState:
    def __init__(
        self, client: Client, registry: Registry, catalog: HBaseCatalog, slots: int, grace: float
    ) -> None:
        self.slots = slots
        self._client, self._registry, self._catalog = client, registry, catalog
        self.sweeper = Sweeper(client, registry, self.floor, slots, grace)

    def floor(self) -> Epoch:
        """The epoch below which history may be gone, as it is now."""
        return int(self._catalog.get_one(FLOOR) or b"0")

    def shard(self, slot: Slot, epoch: Epoch) -> HBaseShard:
        self._check(slot)
        return HBaseShard(self._client, self._registry, self.floor, slot, epoch)

    def reader(self, slot: Slot, epoch: Epoch) -> HBaseReader:
        self._check(slot)
        return HBaseReader(self._registry, self.floor, slot, epoch)

    def differences(
        self, slot: Slot, table: TableId, low: Epoch, high: Epoch
    ) -> Iterator[Difference]:
        """Two scans: no index of HBase says which rows an epoch wrote."""
        old, new = self.reader(slot, low), self.reader(slot, high)
        return scan_differences(old.scan(table), new.scan(table))

    def getter(self, table: TableId) -> Getter:
        def get(slot: Slot, epoch: Epoch, key: bytes) -> bytes | None:
            found = self.reader(slot, epoch).get_many(table, pa.array([key], pa.binary()))
            value: bytes | None = found[0].as_py()
            return value

        return get

    def sync(self, slot: Slot) -> None:
        """Nothing to do: what HBase has acknowledged is in its log."""

    def create(self, tables: Sequence[TableShape]) -> None:
        """Everything that a table needs, then its entry: who finds the entry can write."""
        if all(self._registry.knows(shape.table) for shape in tables):
            return
        self._registry.refresh()
        new = [place_of(shape) for shape in tables if not self._registry.knows(shape.table)]
        floors: dict[str, list[Cell]] = {}
        for place in new:
            floors.setdefault(self._registry.full_name(place.name), []).extend(self._make(place))
        for name, cells in floors.items():
            self._client.cells(name).apply(cells)
        self._registry.add(new)

    def _make(self, place: Place) -> list[Cell]:
        """The HBase table of a view; returns the floors of a new table: 0 in every slot."""
        name = self._registry.full_name(place.name)
        if place.is_own and not self._client.tables.exists(name):
            regions = self._client.tables.region_servers()
            self._client.tables.create_state(name, place.form.family, self.slots, regions)
        records = self._registry.records(place)
        rows = [records.floor_row(slot) for slot in range(self.slots)]
        return [cell for row in rows for cell in floor_cells(row, 0)]

    def collect(self, keep: Epoch) -> None:
        """The catalog's floor closes what is below; what is there is removed later."""
        self.sweeper.note(keep)

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        self._check(slot)
        place = self._registry.find(table)
        if place is None:
            return True
        if not place.is_dropped:
            self._registry.mark_dropped(place)
        if place.is_own:
            self._client.tables.delete(self._registry.full_name(place.name))
            return True
        return self._erase(place, slot, time.monotonic() + seconds)

    def _erase(self, place: Place, slot: Slot, deadline: float) -> bool:
        """Late writes are refused from here on; those that come when the floor is gone too."""
        records = self._registry.records(place)
        cells, row = (
            self._client.cells(self._registry.full_name(place.name)),
            records.floor_row(slot),
        )
        if not cells.newest(row, {counts.FAMILY: 0}):
            return True
        cells.apply(floor_cells(row, _CLOSED))
        last: bytes | None = None
        while True:
            page = records.erase(slot, last, ROWS)
            last = page.last
            if last is None:
                cells.apply([Cell(row, counts.FAMILY, b"", _CLOSED, kind="F")])
                return True
            if time.monotonic() >= deadline:
                return False

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        self._check(slot)
        place = self._registry.find(table)
        if place is None or place.is_dropped:
            return 0, 0
        found = counts.total(self.sweeper.versions(place, slot))
        return found.records, found.size

    def status(self, slot: Slot) -> SlotStatus:
        """Without asking HBase: a coordinator wants to know this of every slot in every epoch."""
        self._check(slot)
        floor = int(self._catalog.known(FLOOR) or b"0")
        return SlotStatus(slot, floor, floor, 0)

    def close(self) -> None:
        self.sweeper.close()

    def _check(self, slot: Slot) -> None:
        if not 0 <= slot < self.slots:
            raise StoreError(f"there is no slot {slot}: this store has slots 0 to {self.slots - 1}")
