"""Attempts and readers of one slot. Their looks at the catalog's floor are rule H3."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belvedere.errors import Stale, StoreError, TableGone
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import Slot, TableId, Write
from belvedere.stores.hbase import columns, counts
from belvedere.stores.hbase.client import Client, Records
from belvedere.stores.hbase.reading import Batch, Reading
from belvedere.stores.hbase.tables import Registry
from belvedere.types import Epoch

LONGEST_KEY = 32_000
Floor = Callable[[], Epoch]


class HBaseShard:
    """One attempt of an epoch in one slot."""

    def __init__(
        self, client: Client, registry: Registry, floor: Floor, slot: Slot, epoch: Epoch
    ) -> None:
        self.slot, self.epoch = slot, epoch
        self._client, self._registry, self._floor = client, registry, floor
        self._reading = Reading(registry, slot, epoch - 1)
        self._writes: dict[TableId, Write] = {}

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return self._reading.get_many(table, keys)

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._reading.records(table, low, high, reverse)

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[Batch]:
        return self._reading.batches(table, low, high, batch)

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        return self._reading.prefixes(table, prefixes, limit, batch)

    def write(self, write: Write) -> None:
        if write.table in self._writes:
            raise StoreError(
                f"table {write.table} is written twice in one shard: one operator owns a table"
            )
        self._writes[write.table] = write

    def commit(self) -> None:
        """After the look nothing is read any more, and regions refuse what comes too late (H5)."""
        prepared = [self._prepare(write) for write in self._writes.values() if len(write.keys)]
        if self._floor() >= self.epoch:
            raise Stale(f"epoch {self.epoch} is closed: this attempt is too late")
        try:
            commit = self._client.commit(self.slot, self.epoch)
            for records, packed, count in prepared:
                commit.add(records, packed, count)
            done = commit.finish()
        except TableGone as gone:
            raise Stale(f"a table of epoch {self.epoch} is gone: this write is too late") from gone
        if not done:
            raise Stale(f"epoch {self.epoch} is closed in a table: this write is too late")
        self._writes = {}

    def close(self) -> None:
        self._writes = {}

    def _prepare(self, write: Write) -> tuple[Records, bytes, bytes]:
        place = self._registry.find(write.table)
        if place is None:
            raise StoreError(f"table {write.table} is written, but was not created")
        if place.is_dropped:
            raise Stale(f"table {write.table} was dropped: this write is too late")
        packed = columns.pack([write.keys, *place.form.cells(write.values)])
        return self._registry.records(place), packed, counts.of_write(write).pack()


class HBaseReader:
    """One slot as of a committed epoch."""

    def __init__(self, registry: Registry, floor: Floor, slot: Slot, epoch: Epoch) -> None:
        self._reading, self._floor, self._epoch = Reading(registry, slot, epoch), floor, epoch

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        found = self._reading.get_many(table, keys)
        self._look()
        return found

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        for found in self._reading.batches(table, low, high, batch):
            self._look()
            yield found
        self._look()

    def close(self) -> None:
        pass

    def _look(self) -> None:
        """Whether what was read before is right: what is removed was below the floor before."""
        if self._floor() > self._epoch:
            raise Stale(f"epoch {self._epoch} is too old, it is no longer kept: read again")
