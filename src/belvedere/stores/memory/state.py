"""State tables in memory, and the rules of the protocol that can be switched off; see
`stores.memory`.

State records are lists of versions (epoch, value or tombstone); the newest is last. A shard or
reader keeps nothing between calls: each read sees the store at the time of the call, as with a
remote store.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from belvedere.errors import Stale, StoreError
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import (
    Difference,
    Getter,
    Slot,
    SlotStatus,
    TableId,
    TableShape,
    Write,
    scan_differences,
)
from belvedere.types import Epoch

Versions = list[tuple[Epoch, bytes | None]]  # a value of None is a tombstone
Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of docs/rules.md that live in a store.

    A rule that is off does what a naive store would do.
    """

    # R1; off: an attempt from the past loses only the writes that meet a newer record
    abort_beyond_epoch: bool = True
    tombstones: bool = True  # R2; off: a delete removes the record with its history
    # R2; off: a second write in an epoch takes the first one's value as the value before
    keep_before: bool = True
    slot_floor: bool = True  # R3; off: attempts do not look at the slot's floors
    history_floor: bool = True  # R3; off: readers do not look at the history floor
    trim_error: bool = True  # R6; off: reading below the trim point gives what is left


def binary(values: list[bytes | None] | list[bytes]) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def inside(key: bytes, low: bytes, high: bytes | None) -> bool:
    return low <= key and (high is None or key < high)


def batches(records: list[tuple[bytes, bytes]], batch: int) -> Iterator[Batch]:
    for start in range(0, len(records), batch):
        part = records[start : start + batch]
        yield binary([key for key, _ in part]), binary([value for _, value in part])


@dataclass
class _Slot:
    """State tables of one slot.

    `written` has the tables that an attempt of an epoch has committed.
    """

    tables: dict[TableId, dict[bytes, Versions]] = field(default_factory=dict)
    written: set[tuple[TableId, Epoch]] = field(default_factory=set)
    write_floor: Epoch = 0
    history_floor: Epoch = 0


def _as_of(versions: Versions, epoch: Epoch) -> bytes | None:
    return next((value for written, value in reversed(versions) if written <= epoch), None)


class MemoryState:
    def __init__(self, slots: int, rules: Rules, point: Callable[[str], None]) -> None:
        self.slots = slots
        self.rules, self.point = rules, point
        self.content = [_Slot() for _ in range(slots)]

    def shard(self, slot: Slot, epoch: Epoch) -> MemoryShard:
        return MemoryShard(self, slot, epoch)

    def reader(self, slot: Slot, epoch: Epoch) -> MemoryReader:
        self.point("reader open")
        return MemoryReader(self, slot, epoch)

    def differences(
        self, slot: Slot, table: TableId, low: Epoch, high: Epoch
    ) -> Iterator[Difference]:
        old, new = self.reader(slot, low), self.reader(slot, high)
        return scan_differences(old.scan(table), new.scan(table))

    def getter(self, table: TableId) -> Getter:
        return lambda slot, epoch, key: MemoryReader(self, slot, epoch).get(table, key)

    def sync(self, slot: Slot) -> None:
        self.point("sync")

    def create(self, tables: Sequence[TableShape]) -> None:
        self.point("create")

    def collect(self, keep: Epoch) -> None:
        for content in self.content:
            self.point("collect")
            _collect(content, keep)

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        self.point("state drop")
        self.content[slot].tables.pop(table, None)
        return True

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        self.point("count")
        newest = [
            (key, versions[-1][1])
            for key, versions in self.content[slot].tables.get(table, {}).items()
        ]
        live = [(key, value) for key, value in newest if value is not None]
        return len(live), sum(len(key) + len(value) for key, value in live)

    def status(self, slot: Slot) -> SlotStatus:
        self.point("status")
        content = self.content[slot]
        records = [item for table in content.tables.values() for item in table.items()]
        size = sum(
            len(key) + len(value or b"") for key, versions in records for _, value in versions
        )
        return SlotStatus(slot, content.write_floor, content.history_floor, size)


def _collect(content: _Slot, keep: Epoch) -> None:
    """One slot, in one step."""
    for records in content.tables.values():
        for key, versions in list(records.items()):
            first = max(bisect_right([epoch for epoch, _ in versions], keep) - 1, 0)
            if versions[first][1] is None and versions[first][0] <= keep:
                first += 1
            records[key] = versions[first:]
            if not records[key]:
                del records[key]
    content.written = {(table, epoch) for table, epoch in content.written if epoch > keep}
    content.history_floor = max(content.history_floor, keep)
    content.write_floor = max(content.write_floor, keep)


class MemoryShard:
    """One attempt of an epoch in one slot."""

    def __init__(self, state: MemoryState, slot: Slot, epoch: Epoch) -> None:
        self.slot, self.epoch = slot, epoch
        self._state, self._rules, self._content = state, state.rules, state.content[slot]
        self._writes: dict[TableId, Write] = {}

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        self._state.point("shard get")
        self._check_floors()
        records = self._content.tables.get(table, {})
        return binary([self._read(records.get(key, [])) for key in keys.to_pylist()])

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        yield from self._records(table, low, high, reverse)

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[Batch]:
        yield from batches(self._records(table, low, high), batch)

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        self._state.point("shard scan")
        self._check_floors()
        records = self._content.tables.get(table, {})
        keys = sorted(records)
        numbers: list[int] = []
        found: list[tuple[bytes, bytes]] = []
        for number, prefix in enumerate(prefixes.to_pylist()):
            part = (
                (key, self._read(records[key]))
                for key in keys[bisect_left(keys, prefix) : bisect_left(keys, prefix + b"\xff")]
            )
            present = list(
                islice(((key, value) for key, value in part if value is not None), limit)
            )
            numbers += [number] * len(present)
            found += present
        for start, (some, values) in zip(
            range(0, len(found), batch), batches(found, batch), strict=True
        ):
            yield np.array(numbers[start : start + batch], np.int64), some, values

    def write(self, write: Write) -> None:
        if write.table in self._writes:
            raise StoreError(
                f"table {write.table} is written twice in one shard: one operator owns a table"
            )
        self._writes[write.table] = write

    def commit(self) -> None:
        """Table by table, so that everything can happen in between."""
        self._state.point("shard commit")
        self._check_floors()
        for number, write in enumerate(self._writes.values()):
            if number:
                self._state.point("shard commit")
                self._check_floors()
            self._check_records(write)
            if not self._written(write.table):
                self._apply(write)
            self._content.write_floor = max(self._content.write_floor, self.epoch)
        self._writes = {}

    def close(self) -> None:
        self._writes = {}

    def _records(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        self._state.point("shard scan")
        self._check_floors()
        found = []
        for key, versions in sorted(self._content.tables.get(table, {}).items(), reverse=reverse):
            if inside(key, low, high) and (value := self._read(versions)) is not None:
                found.append((key, value))
        return found

    def _written(self, table: TableId) -> bool:
        """Whether another attempt of this epoch has written the table.

        The plain protocol does not ask: rules off, it is not asked.
        """
        asked = self._rules.keep_before and self._rules.abort_beyond_epoch
        return asked and (table, self.epoch) in self._content.written

    def _read(self, versions: Versions) -> bytes | None:
        self._check_record(versions)
        return _as_of(versions, self.epoch - 1)

    def _check_floors(self) -> None:
        """R1 and R3.

        A history floor at e means that e-1 cannot be read any more: the attempt is from the past.
        """
        beyond = self._content.write_floor > self.epoch or self._content.history_floor >= self.epoch
        if self._rules.abort_beyond_epoch and self._rules.slot_floor and beyond:
            raise Stale(
                f"slot {self.slot} has moved beyond epoch {self.epoch}: this attempt is too late"
            )

    def _check_record(self, versions: Versions) -> None:
        if self._rules.abort_beyond_epoch and versions and versions[-1][0] > self.epoch:
            raise Stale(
                f"a record of slot {self.slot} is from epoch {versions[-1][0]}: this attempt of"
                f" {self.epoch} is too late"
            )

    def _check_records(self, write: Write) -> None:
        if (
            write.table not in self._content.tables
            and (write.table, self.epoch) in self._content.written
        ):
            return  # dropped since another attempt of this epoch wrote it
        records = self._content.tables.get(write.table, {})
        for key, before in zip(write.keys.to_pylist(), write.before.to_pylist(), strict=True):
            versions = records.get(key, [])
            self._check_record(versions)
            # Stores that count records trust `before`. Here it can be compared, so an engine that
            # gives a wrong one is found out.
            if self._rules == Rules() and before != _as_of(versions, self.epoch - 1):
                raise StoreError(
                    f"table {write.table}: the value before of key {key!r} is not the value as of"
                    f" epoch {self.epoch - 1}"
                )

    def _apply(self, write: Write) -> None:
        records = self._content.tables.setdefault(write.table, {})
        for key, value in zip(write.keys.to_pylist(), write.values.to_pylist(), strict=True):
            versions = records.setdefault(key, [])
            if versions and versions[-1][0] > self.epoch:
                continue
            if versions and versions[-1][0] == self.epoch:
                self._rewrite(versions)
            versions.append((self.epoch, value))
            if value is None and not self._rules.tombstones:
                del records[key]
        self._content.written.add((write.table, self.epoch))

    def _rewrite(self, versions: Versions) -> None:
        """Make room for a second write of this epoch: keep what was before it, or (rule off) take
        the first write for it.
        """
        _, first = versions.pop()
        if not self._rules.keep_before:
            epoch = versions.pop()[0] if versions else self.epoch - 1
            versions.append((epoch, first))


class MemoryReader:
    """One slot as of a committed epoch."""

    def __init__(self, state: MemoryState, slot: Slot, epoch: Epoch) -> None:
        self._state, self._content, self._slot, self._epoch = (
            state,
            state.content[slot],
            slot,
            epoch,
        )
        self._check()

    def get(self, table: TableId, key: bytes) -> bytes | None:
        self._state.point("reader get")
        self._check()
        return _as_of(self._content.tables.get(table, {}).get(key, []), self._epoch)

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        self._state.point("reader get")
        self._check()
        records = self._content.tables.get(table, {})
        return binary([_as_of(records.get(key, []), self._epoch) for key in keys.to_pylist()])

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        self._state.point("reader scan")
        self._check()
        found = []
        for key, versions in sorted(self._content.tables.get(table, {}).items()):
            if inside(key, low, high) and (value := _as_of(versions, self._epoch)) is not None:
                found.append((key, value))
        yield from batches(found, batch)

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self._state.rules.history_floor and self._content.history_floor > self._epoch:
            raise Stale(
                f"slot {self._slot} keeps epochs from {self._content.history_floor} on: epoch"
                f" {self._epoch} is too old"
            )
