"""Shards and readers: one slot as of an epoch.

Every call is one short transaction that looks at the floors and finds the runs; these do not change
any more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from belvedere.errors import Damaged, Stale, StoreError, StoreFull
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.base import Getter, Slot, TableId, Write
from belvedere.stores.embedded import merging, records, run_lists, runs
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.prefixes import scan_prefixes as prefixes_of
from belvedere.stores.embedded.run_files import SMALL_BYTES, RunFiles, RunWriter
from belvedere.stores.embedded.runs import Batch, Run, RunRef
from belvedere.stores.embedded.sections import MISSING, Get
from belvedere.types import Epoch

_TRIES = 20  # a file may be merged away between its run list and its opening


class SlotFiles:
    """What one slot has: run_lists in an LMDB environment, runs in files beside it."""

    def __init__(self, environment: Environment, slot: Slot) -> None:
        self.environment, self.slot = environment, slot
        self.files = RunFiles(environment.path)

    def where(self, table: TableId) -> str:
        return f"table {table} in {self.environment.path}"

    def check_room(self) -> None:
        used, most = self.files.used_bytes(), self.environment.max_size
        if used > most:
            raise StoreFull(
                f"{self.environment.path} would have {used:,} bytes of at most {most:,}; nothing"
                " was written. Open the store with a larger max_size, or drop views"
            )

    def open_runs(self, refs: Sequence[RunRef]) -> tuple[Run, ...]:
        """Raises FileNotFoundError if a part of them is gone."""
        small = self.environment.read(lambda t: run_lists.sections_of(t, refs))
        return self.files.open_runs(refs, small)

    def load(self, find: Callable[[Transaction], bytes], table: TableId) -> tuple[Run, ...]:
        """The runs of the run list that `find` finds, all of them mapped."""

        def read(transaction: Transaction) -> tuple[bytes, Sequence[RunRef], dict[str, bytes]]:
            data = find(transaction)
            refs = run_lists.decode(data, self.where(table))
            return data, refs, run_lists.sections_of(transaction, refs)

        before = None
        for _ in range(_TRIES):
            data, refs, small = self.environment.read(read)
            try:
                return self.files.open_runs(refs, small)
            except FileNotFoundError as error:
                if data == before:
                    raise Damaged(
                        f"{error.filename} is missing, which has records of {self.where(table)}"
                    ) from error
                before = data
        raise StoreError(f"the runs of {self.where(table)} change faster than they can be opened")


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

        def find(transaction: Transaction) -> bytes:
            self._check(transaction)
            return run_lists.as_of(transaction, table, self._as_of)

        found = self._known[table] = self._place.load(find, table)
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
            return [
                None
                if run_lists.is_written(transaction, write.table, self.epoch)
                else run_lists.as_of(transaction, write.table, self._as_of)
                for write in writes
            ]

        environment = self._place.environment
        bases = environment.read(look)
        writer = RunWriter(self._place.files, self.epoch, small=SMALL_BYTES)
        try:
            new = [
                _Prepared(self._place, writer, write, base)
                for write, base in zip(writes, bases, strict=True)
                if base is not None
            ]
            if writer.names:
                writer.finish()
                self._place.check_room()
            is_done = environment.write(lambda transaction: self._name(transaction, writer, new))
        except FileNotFoundError:  # a run that would have been joined was merged away
            is_done = False
        except BaseException:  # whatever it was, nothing is named
            writer.abandon()
            raise
        if is_done:
            writer.done()
        else:
            writer.abandon()
        return is_done

    def _name(self, transaction: Transaction, writer: RunWriter, new: list[_Prepared]) -> bool:
        self._check(transaction)
        _, history = run_lists.floors(transaction)
        if not all(self._place.files.has(name) for name in writer.names):
            return False
        missing = [
            each for each in new if not run_lists.is_written(transaction, each.table, self.epoch)
        ]
        for each in missing:
            if run_lists.as_of(transaction, each.table, self._as_of) != each.base:
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


class _Prepared:
    """A table's new runs, in files already (rule R10)."""

    def __init__(self, place: SlotFiles, writer: RunWriter, write: Write, base: bytes) -> None:
        self.table, self.base = write.table, base
        known: tuple[RunRef, ...] = run_lists.decode(base, place.where(write.table))
        joined = merging.joins(len(write.keys), known)
        rest = known[joined:]
        older = place.open_runs(known[:joined])
        run = writer.add(write.table, merging.with_older(write.keys, write.values, older, not rest))
        self.runs = (run, *rest) if run else rest
        self.records = write.before.null_count - write.values.null_count
        self.size = _size(write.keys, write.values) - _size(write.keys, write.before)

    def apply(self, transaction: Transaction, epoch: Epoch) -> None:
        run_lists.put(transaction, self.table, epoch, self.runs)
        run_lists.add_to_count(transaction, self.table, self.records, self.size)


def _size(keys: pa.BinaryArray, values: pa.BinaryArray) -> int:
    """Bytes of the records that are there."""
    present = keys.filter(values.is_valid()) if values.null_count else keys
    return (pc.sum(pc.binary_length(present)).as_py() or 0) + (
        pc.sum(pc.binary_length(values)).as_py() or 0
    )


class EmbeddedReader(_View):
    """One slot as of a committed epoch."""

    def __init__(self, place: SlotFiles, epoch: Epoch) -> None:
        super().__init__(place, epoch, epoch)

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
    number = -1

    def find(transaction: Transaction) -> bytes:
        nonlocal number
        number = transaction.id()
        _, history = run_lists.floors(transaction)
        if history > epoch:
            raise run_lists.too_old(place.slot, epoch, history)
        return run_lists.as_of(transaction, table, epoch)

    found = place.load(find, table)
    return number, epoch, [run.get_one for run in found]
