"""Shards and readers: one slot as of an epoch.

Every call is one short transaction that looks at the floors first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator

from belvedere.errors import Stale, StoreError
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.base import Slot, TableId, Write
from belvedere.stores.embedded import blocks, records, undo
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.prefixes import Walk
from belvedere.stores.embedded.records import Batch, Chunk, Overlay, ReadChunk
from belvedere.types import Epoch

_PORTION = 100_000  # changed records after which a transaction is closed


class _View(ABC):
    """Records of one slot as of some epoch.

    Subclasses say what is laid over the newest records, or that it is too late.
    """

    def __init__(self, environment: Environment, slot: Slot, epoch: Epoch) -> None:
        self._environment, self.slot, self.epoch = environment, slot, epoch

    @abstractmethod
    def _overlay(self, transaction: Transaction, table: TableId) -> Overlay | None: ...

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        def body(transaction: Transaction) -> pa.BinaryArray:
            return records.get_many(transaction, table, keys, self._overlay(transaction, table))

        return self._environment.read(body)

    def _reading(
        self,
        table: TableId,
        read: Callable[[Transaction, bytes, bytes, int, Overlay | None], Chunk],
    ) -> ReadChunk:
        def read_chunk(low: bytes, high: bytes, count: int) -> Chunk:
            return self._environment.read(
                lambda transaction: read(
                    transaction, low, high, count, self._overlay(transaction, table)
                )
            )

        return read_chunk

    def _batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int
    ) -> Iterator[Batch]:
        return records.batches(self._reading(table, records.read_chunk), table, low, high, batch)


class EmbeddedShard(_View):
    """One attempt of an epoch in one slot."""

    def __init__(
        self, environment: Environment, slot: Slot, epoch: Epoch, catalog: Callable[[], int]
    ) -> None:
        super().__init__(environment, slot, epoch)
        self._catalog = catalog
        self._overlays: dict[TableId, Overlay] = {}
        self._writes: dict[TableId, Write] = {}

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        read = records.read_chunk_reverse if reverse else records.read_chunk
        return records.records(self._reading(table, read), table, low, high, reverse)

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
        walk = Walk(table, prefixes, limit)

        def read(
            transaction: Transaction,
        ) -> tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]:
            return walk.read(transaction, batch, self._overlay(transaction, table))

        while True:
            found = self._environment.read(read)
            if len(found[0]):
                yield found
            if walk.done:
                return

    def write(self, write: Write) -> None:
        if write.table in self._writes:
            raise StoreError(
                f"table {write.table} is written twice in one shard: one operator owns a table"
            )
        records.check_columns(write.keys, write.values, write.before)
        records.check_keys(write.keys)
        self._writes[write.table] = write

    def commit(self) -> None:
        """Small tables together, large ones each in a transaction of its own: records as Python
        wants them take much memory.
        """
        if not self._writes:
            self._environment.read(self._floors)
        portion: list[_Prepared] = []
        while self._writes:
            portion.append(_Prepared(self._writes.pop(next(iter(self._writes)))))
            if not self._writes or sum(write.changes for write in portion) >= _PORTION:
                self._apply(portion)
                portion = []

    def _apply(self, portion: list[_Prepared]) -> None:
        def body(transaction: Transaction) -> None:
            _, history = self._floors(transaction)
            for write in portion:
                write.apply(transaction, self.epoch)
            undo.set_floors(transaction, self.epoch, history, self._catalog())

        self._environment.write(body)

    def close(self) -> None:
        self._writes = {}

    def _floors(self, transaction: Transaction) -> tuple[Epoch, Epoch]:
        """R1 and R3.

        A history floor at e means that e-1 cannot be read any more: the attempt is from the past.
        """
        write, history = undo.floors(transaction)
        if write > self.epoch or history >= self.epoch:
            raise Stale(
                f"slot {self.slot} has moved to epoch {max(write, history)}: this attempt of epoch"
                f" {self.epoch} is too late"
            )
        return write, history

    def _overlay(self, transaction: Transaction, table: TableId) -> Overlay | None:
        write, _ = self._floors(transaction)
        if write < self.epoch:
            return None
        if table not in self._overlays:  # an undo block never changes, so it is read once
            block = transaction.get(undo.undo_key(table, self.epoch))
            if block is None:
                return None
            self._overlays[table] = Overlay([block])
        return self._overlays[table]


class _Prepared:
    """A write made ready before the transaction begins (rule R10)."""

    def __init__(self, write: Write) -> None:
        keys, values, before = write.keys, write.values, write.before
        self.table, self.changes = write.table, len(keys)
        self.undo = blocks.encode(write.table, 0.0, (keys, before))
        full = records.prefixed(write.table, keys)
        self.deletes: list[bytes] = (
            full.filter(values.is_null()).to_pylist() if values.null_count else []
        )
        self.puts: list[tuple[bytes, bytes]]
        if self.deletes:
            valid = values.is_valid()
            full, kept = full.filter(valid), values.filter(valid)
        else:
            kept = values
        self.puts = list(zip(full.to_pylist(), kept.to_pylist(), strict=True))
        self.records = before.null_count - values.null_count
        self.size = _size(keys, values) - _size(keys, before)

    def apply(self, transaction: Transaction, epoch: Epoch) -> None:
        key = undo.undo_key(self.table, epoch)
        with transaction.cursor() as cursor:
            if cursor.set_key(key):
                # another attempt of this epoch has written the table, with the same content (rule
                # R5)
                return
            cursor.putmulti(self.puts)
        # a loop of Python's own takes half as long again
        deque(map(transaction.delete, self.deletes), maxlen=0)
        transaction.put(key, self.undo)
        undo.add_to_count(transaction, self.table, self.records, self.size)


def _size(keys: pa.BinaryArray, values: pa.BinaryArray) -> int:
    """Bytes of the records that are there."""
    present = keys.filter(values.is_valid()) if values.null_count else keys
    return (pc.sum(pc.binary_length(present)).as_py() or 0) + (
        pc.sum(pc.binary_length(values)).as_py() or 0
    )


class EmbeddedReader(_View):
    """One slot as of a committed epoch."""

    def __init__(self, environment: Environment, slot: Slot, epoch: Epoch) -> None:
        self._environment, self.slot, self.epoch = environment, slot, epoch
        self._overlays: dict[TableId, tuple[list[Epoch], Overlay]] | None = None

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        return self._batches(table, low, high, batch)

    def close(self) -> None:
        """Every call is a transaction of its own, so nothing is held."""

    def _overlay(self, transaction: Transaction, table: TableId) -> Overlay | None:
        write, history = undo.floors(transaction)
        if history > self.epoch:
            raise undo.too_old(self.slot, self.epoch, history)
        epochs = undo.undo_epochs(transaction, table, self.epoch) if write > self.epoch else []
        if not epochs:
            return None
        if self._overlays is None:
            self._overlays = {}
        known = self._overlays.get(table)
        if known is None or known[0] != epochs:
            overlay = Overlay([transaction.get(undo.undo_key(table, epoch)) for epoch in epochs])
            known = self._overlays[table] = epochs, overlay
        return known[1]
