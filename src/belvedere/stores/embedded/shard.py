"""Shards and readers: one slot as of an epoch.

Every call is one short transaction that looks at the floors and finds the runs; these do not change
any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from belvedere.errors import Stale, StoreError
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import Getter, Slot, TableId, Write
from belvedere.stores.embedded import records, run_lists, runs
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.places import NewRun, Place, name_files
from belvedere.stores.embedded.prefixes import scan_prefixes as prefixes_of
from belvedere.stores.embedded.run_files import SMALL_BYTES, RunWriter
from belvedere.stores.embedded.runs import Batch, Run
from belvedere.stores.embedded.sections import MISSING, Get
from belvedere.types import Epoch


class SlotFiles(Place):
    """One slot's state tables."""

    def __init__(self, environment: Environment, slot: Slot) -> None:
        super().__init__(environment)
        self.slot = slot


class _View(ABC):
    """Records of one slot as of some epoch; subclasses say when it is too late."""

    def __init__(self, place: SlotFiles, epoch: Epoch, as_of: Epoch) -> None:
        self._place, self._as_of = place, as_of
        self.slot, self.epoch = place.slot, epoch
        self._known: dict[TableId, tuple[Run, ...]] = {}

    @abstractmethod
    def _check(self, transaction: Transaction) -> None: ...

    def _runs(self, table: TableId) -> tuple[Run, ...]:
        """What a table was as of an epoch stays the same, so it is looked up once."""
        known = self._known.get(table)
        if known is not None:
            self._place.environment.read(self._check)
            return known

        owner = run_lists.owner_of(table)

        def find(transaction: Transaction) -> bytes:
            self._check(transaction)
            return run_lists.as_of(transaction, owner, self._as_of)

        found = self._known[table] = self._place.load(find, owner)
        return found

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return runs.get_many(self._runs(table), keys)

    def _batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int
    ) -> Iterator[Batch]:
        for found in runs.scan(self._runs(table), low, high, batch):
            yield found
            self._place.environment.read(self._check)


class EmbeddedShard(_View):
    """One attempt of an epoch in one slot."""

    def __init__(self, place: SlotFiles, epoch: Epoch, catalog: Callable[[], int]) -> None:
        super().__init__(place, epoch, epoch - 1)
        self._catalog = catalog
        self._writes: dict[TableId, Write] = {}

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return runs.records(self._runs(table), low, high, reverse)

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[Batch]:
        return self._batches(table, low, high, batch)

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        return prefixes_of(self._runs(table), prefixes, limit, batch)

    def write(self, write: Write) -> None:
        if write.table in self._writes:
            raise StoreError(
                f"table {write.table} is written twice in one shard: one operator owns a table"
            )
        records.check_columns(write.keys, write.values, write.before)
        records.check_not_null(write.keys)
        self._writes[write.table] = write

    def commit(self) -> None:
        """One file, then one transaction that names it."""
        writes, self._writes = self._writes, {}
        if not writes:
            self._place.environment.read(self._check)
            return
        changes = [write for write in writes.values() if len(write.keys)]
        while not self._try(changes):
            pass  # runs were merged meanwhile: those that it builds on are others now

    def _try(self, writes: Sequence[Write]) -> bool:
        def look(transaction: Transaction) -> list[bytes | None]:
            """What each table is built on; None if it is written already."""
            self._check(transaction)
            owners = [run_lists.owner_of(write.table) for write in writes]
            return [
                None
                if run_lists.is_written(transaction, owner, self.epoch)
                else run_lists.as_of(transaction, owner, self._as_of)
                for owner in owners
            ]

        def prepare() -> list[NewRun]:
            bases = self._place.environment.read(look)
            return [
                NewRun(
                    self._place,
                    writer,
                    run_lists.owner_of(write.table),
                    (write.keys, write.values, write.before),
                    base,
                )
                for write, base in zip(writes, bases, strict=True)
                if base is not None
            ]

        writer = RunWriter(self._place.files, self.epoch, small=SMALL_BYTES)
        return name_files(self._place, writer, prepare, lambda t, new: self._name(t, writer, new))

    def _name(self, transaction: Transaction, writer: RunWriter, new: Sequence[NewRun]) -> bool:
        self._check(transaction)
        _, history = run_lists.floors(transaction)
        missing = [
            each for each in new if not run_lists.is_written(transaction, each.owner, self.epoch)
        ]
        for each in missing:
            if run_lists.as_of(transaction, each.owner, self._as_of) != each.base:
                return False
        for each in missing:
            each.apply(transaction, self.epoch)
        for name, data in writer.small.items():
            run_lists.put_section(transaction, name, data)
        run_lists.set_floors(transaction, self.epoch, history, self._catalog())
        return True

    def close(self) -> None:
        self._writes, self._known = {}, {}

    def _check(self, transaction: Transaction) -> None:
        """R1 and R3.

        A history floor at e means that e-1 cannot be read any more: the attempt is from the past.
        """
        write, history = run_lists.floors(transaction)
        if write > self.epoch or history >= self.epoch:
            raise Stale(
                f"slot {self.slot} has moved to epoch {max(write, history)}: this attempt of epoch"
                f" {self.epoch} is too late"
            )


class EmbeddedReader(_View):
    """One slot as of a committed epoch."""

    def __init__(self, place: SlotFiles, epoch: Epoch) -> None:
        super().__init__(place, epoch, epoch)

    def runs(self, table: TableId) -> tuple[Run, ...]:
        """The runs of a table, newest first."""
        return self._runs(table)

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        return self._batches(table, low, high, batch)

    def close(self) -> None:
        self._known = {}

    def _check(self, transaction: Transaction) -> None:
        _, history = run_lists.floors(transaction)
        if history > self.epoch:
            raise run_lists.too_old(self.slot, self.epoch, history)


def getter(places: Sequence[SlotFiles], table: TableId) -> Getter:
    """Single values as of committed epochs, made for latency: runs are looked up again when the
    slot has changed.
    """
    known: list[_Gets] = [(-1, -1, ())] * len(places)
    environments = [place.environment for place in places]

    def get(slot: Slot, epoch: Epoch, key: bytes) -> bytes | None:
        mark, of_epoch, found = known[slot]
        if mark != environments[slot].mark() or of_epoch != epoch:
            _, _, found = known[slot] = _look(places[slot], table, epoch)
        hashed = crc32(key, 0xFFFFFFFF)  # `slot_hash_one` and `runs.first_of`, without their calls
        for get_one in found:
            value: bytes | None = get_one(key, hashed)
            if value is not MISSING:
                return value
        return None

    return get


_Gets = tuple[int, Epoch, Sequence[Get]]  # as of an LMDB transaction, and of an epoch


def _look(place: SlotFiles, table: TableId, epoch: Epoch) -> _Gets:
    number, owner = -1, run_lists.owner_of(table)

    def find(transaction: Transaction) -> bytes:
        nonlocal number
        number = transaction.id()
        _, history = run_lists.floors(transaction)
        if history > epoch:
            raise run_lists.too_old(place.slot, epoch, history)
        return run_lists.as_of(transaction, owner, epoch)

    found = place.load(find, owner)
    return number, epoch, [run.get_one for run in found]
