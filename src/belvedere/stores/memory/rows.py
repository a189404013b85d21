"""State tables of single rows, in memory: the specification of stores without slot transactions.

A record is a row of versions, one per epoch that wrote it; a delete is a version without a value.
Only one row is read or written in a step: between two rows anything can happen. It is right all the
same, by these rules, each of which can be switched off:

    versions    a read takes the newest version of its epoch or before; a write replaces its own
    tombstones  a deleted row stays as a version, until nobody can need to know of it
    looks       an attempt looks at the catalog's floor after its last read, before its first write;
                a reader looks after every batch
    removal     the floor rises first; of the versions at or below it the newest stays, unless it is
                a tombstone; what is removed are exactly the versions that were seen
    fence       a write of an epoch is refused once the fence of its table has reached the epoch,
                tested together with the write; a fence rises before its table is swept, never falls
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from belvedere.encoding import RowCodec
from belvedere.errors import Stale, StoreError
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import (
    FLOOR,
    Catalog,
    Difference,
    Getter,
    Slot,
    SlotStatus,
    TableId,
    TableShape,
    Write,
    scan_differences,
)
from belvedere.stores.memory.state import Batch, binary
from belvedere.types import Epoch

Row = dict[Epoch, bytes | None]  # versions; None is a tombstone
_TOGETHER = 3  # rows of a batch that are looked at before others may do something


@dataclass(frozen=True, slots=True)
class RowRules:
    """A rule that is off does what a naive store would do."""

    as_of: bool = True  # off: a read takes the newest version
    tombstones: bool = True  # off: a delete removes the row with its history
    look_before_writing: bool = True  # off: an attempt writes whatever it has read
    look_after_reading: bool = True  # off: a reader believes whatever it has read
    keep_newest: bool = True  # off: all versions at or below the floor are removed
    exact_removal: bool = True  # off: a row that was seen to be removable is removed as it is then
    fence: bool = True  # off: writes are not tested
    fence_grows: bool = True  # off: a collector that comes back sets the fence to its own floor


class RowState:
    def __init__(
        self, slots: int, rules: RowRules, point: Callable[[str], None], catalog: Catalog
    ) -> None:
        self.slots = slots
        self.rules, self.point, self._catalog = rules, point, catalog
        self.content: list[dict[TableId, dict[bytes, Row]]] = [{} for _ in range(slots)]
        self.created: dict[TableId, TableShape] = {}
        self.fences: dict[tuple[Slot, TableId], Epoch] = {}

    def floor(self) -> Epoch:
        """The epoch below which history may be gone."""
        return int(self._catalog.get_one(FLOOR) or b"0")

    def shard(self, slot: Slot, epoch: Epoch) -> RowShard:
        return RowShard(self, slot, epoch)

    def reader(self, slot: Slot, epoch: Epoch) -> RowReader:
        reader = RowReader(self, slot, epoch)
        reader.look()
        return reader

    def differences(
        self, slot: Slot, table: TableId, low: Epoch, high: Epoch
    ) -> Iterator[Difference]:
        old, new = self.reader(slot, low), self.reader(slot, high)
        return scan_differences(old.scan(table), new.scan(table))

    def getter(self, table: TableId) -> Getter:
        return lambda slot, epoch, key: RowReader(self, slot, epoch).get(table, key)

    def create(self, tables: Sequence[TableShape]) -> None:
        self.point("create")
        self.created |= {shape.table: shape for shape in tables}

    def sync(self, slot: Slot) -> None:
        self.point("sync")

    def collect(self, keep: Epoch) -> None:
        for slot, tables in enumerate(self.content):
            for table, rows in list(tables.items()):
                self.point("raise fence")
                old = self.fences.get((slot, table), 0) if self.rules.fence_grows else 0
                self.fences[slot, table] = max(old, keep)
                self._sweep(rows, keep)

    def _sweep(self, rows: dict[bytes, Row], keep: Epoch) -> None:
        """Row by row: look what can go, then remove it."""
        for key in sorted(rows):
            self.point("sweep look")
            gone = self._removable(rows.get(key, {}), keep)
            if not gone:
                continue
            self.point("sweep remove")
            row = rows.get(key, {})
            for epoch in gone if self.rules.exact_removal else list(row):
                row.pop(epoch, None)
            if not row:
                rows.pop(key, None)

    def _removable(self, row: Row, keep: Epoch) -> list[Epoch]:
        old = sorted(epoch for epoch in row if epoch <= keep)
        if not old:
            return []
        is_needed = self.rules.keep_newest and row[old[-1]] is not None
        return old[:-1] if is_needed else old

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        self.point("state drop")
        self.content[slot].pop(table, None)
        return True

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        self.point("count")
        rows = self.content[slot].get(table, {}).items()
        live = [(key, row[max(row)]) for key, row in rows]
        sizes = [len(key) + len(value) for key, value in live if value is not None]
        return len(sizes), sum(sizes)

    def status(self, slot: Slot) -> SlotStatus:
        floor = self.floor()
        rows = [item for table in self.content[slot].values() for item in table.items()]
        size = sum(len(key) + len(v or b"") for key, row in rows for v in row.values())
        return SlotStatus(slot, floor, floor, size)

    def read(self, slot: Slot, table: TableId, key: bytes, epoch: Epoch) -> bytes | None:
        """One row as of an epoch, in one step."""
        row = self.content[slot].get(table, {}).get(key, {})
        seen = [written for written in row if written <= epoch or not self.rules.as_of]
        return row[max(seen)] if seen else None

    def records(
        self, slot: Slot, table: TableId, low: bytes, high: bytes | None, epoch: Epoch, what: str
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows of a range as of an epoch, a few in each step."""
        at: bytes | None = low
        while at is not None:
            self.point(what)
            keys = sorted(self.content[slot].get(table, {}))
            end = len(keys) if high is None else bisect_left(keys, high)
            some = keys[bisect_left(keys, at) : end][:_TOGETHER]
            found = [(key, self.read(slot, table, key, epoch)) for key in some]
            at = some[-1] + b"\0" if len(some) == _TOGETHER else None
            yield from ((key, value) for key, value in found if value is not None)


class RowShard:
    """One attempt of an epoch in one slot."""

    def __init__(self, state: RowState, slot: Slot, epoch: Epoch) -> None:
        self.slot, self.epoch = slot, epoch
        self._state = state
        self._writes: dict[TableId, Write] = {}

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        found = []
        for number, key in enumerate(keys.to_pylist()):
            if number % _TOGETHER == 0:
                self._state.point("shard get")
            found.append(self._state.read(self.slot, table, key, self.epoch - 1))
        return binary(found)

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        records = self._records(table, low, high)
        yield from reversed(list(records)) if reverse else records

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[Batch]:
        yield from _batches(self._records(table, low, high), batch)

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        numbered = (
            (number, record)
            for number, prefix in enumerate(prefixes.to_pylist())
            for record in islice(self._records(table, prefix, prefix + b"\xff"), limit)
        )
        while some := list(islice(numbered, batch)):
            keys, values = zip(*(record for _, record in some), strict=True)
            numbers = np.array([number for number, _ in some], np.int64)
            yield numbers, binary(list(keys)), binary(list(values))

    def write(self, write: Write) -> None:
        if write.table in self._writes:
            raise StoreError(
                f"table {write.table} is written twice in one shard: one operator owns a table"
            )
        self._writes[write.table] = write

    def commit(self) -> None:
        self._state.point("shard look")
        if self._state.rules.look_before_writing and self._state.floor() >= self.epoch:
            raise Stale(f"epoch {self.epoch} is closed: this attempt is too late")
        for write in self._writes.values():
            self._check_shape(write)
            for key, value in zip(write.keys.to_pylist(), write.values.to_pylist(), strict=True):
                self._state.point("row put")
                self._put(write.table, key, value)
        self._writes = {}

    def close(self) -> None:
        self._writes = {}

    def _check_shape(self, write: Write) -> None:
        """Rows of a view are of the columns that were declared: other clients read them so."""
        shape = self._state.created.get(write.table)
        if shape is not None and shape.name and not shape.counts:
            RowCodec(tuple(column.type for column in shape.values)).decode(write.values)

    def _put(self, table: TableId, key: bytes, value: bytes | None) -> None:
        """One row, tested and written in one step."""
        state = self._state
        if table not in state.created:
            raise StoreError(f"table {table} is written, but was not created")
        if state.rules.fence and state.fences.get((self.slot, table), 0) >= self.epoch:
            raise Stale(f"epoch {self.epoch} is closed in table {table}: this write is too late")
        rows = state.content[self.slot].setdefault(table, {})
        if value is None and not state.rules.tombstones:
            rows.pop(key, None)
        else:
            rows.setdefault(key, {})[self.epoch] = value

    def _records(
        self, table: TableId, low: bytes, high: bytes | None
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._state.records(self.slot, table, low, high, self.epoch - 1, "shard scan")


class RowReader:
    """One slot as of a committed epoch."""

    def __init__(self, state: RowState, slot: Slot, epoch: Epoch) -> None:
        self._state, self._slot, self._epoch = state, slot, epoch

    def get(self, table: TableId, key: bytes) -> bytes | None:
        self._state.point("reader get")
        found = self._state.read(self._slot, table, key, self._epoch)
        self.look()
        return found

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        self._state.point("reader get")
        read = self._state.read
        found = [read(self._slot, table, key, self._epoch) for key in keys.to_pylist()]
        self.look()
        return binary(found)

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        records = self._state.records(self._slot, table, low, high, self._epoch, "reader scan")
        for some in _batches(records, batch):
            self.look()
            yield some
        self.look()

    def close(self) -> None:
        pass

    def look(self) -> None:
        """Whether what was read before is right."""
        if self._state.rules.look_after_reading and self._state.floor() > self._epoch:
            raise Stale(f"epoch {self._epoch} is no longer kept: read again")


def _batches(records: Iterator[tuple[bytes, bytes]], batch: int) -> Iterator[Batch]:
    while some := list(islice(records, batch)):
        yield binary([key for key, _ in some]), binary([value for _, value in some])
