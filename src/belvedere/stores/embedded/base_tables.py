"""Base tables: rows and log in one environment of their own, so that view maintenance never holds
the writers' lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from belvedere.encoding.order import stable_order
from belvedere.errors import Conflict, StoreError, StoreFull, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, Operations, TableId
from belvedere.stores.embedded import blocks, dropping, log, records
from belvedere.stores.embedded.environment import MAX_KEY, Environment, Transaction
from belvedere.stores.embedded.records import Batch
from belvedere.types import Position, Vector

_LARGEST_BLOCK = 128 << 20  # bytes of a log block with more than one operation
_WHEN_FULL = 0.5  # seconds of removing between two tries of a write that found no room


class EmbeddedSnapshot:
    def __init__(self, environment: Environment, transaction: Transaction) -> None:
        self._environment, self._transaction = environment, transaction
        self.vector = Vector({log.STREAM: environment.inside(transaction, log.ends)[0]})

    def get(self, table: TableId, key: bytes) -> bytes | None:
        def body(transaction: Transaction) -> bytes | None:
            dropping.check_alive(transaction, table)
            value: bytes | None = (
                transaction.get(records.prefix(table) + key) if len(key) <= MAX_KEY else None
            )
            return value

        return self._environment.inside(self._transaction, body)

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        def body(transaction: Transaction) -> pa.BinaryArray:
            dropping.check_alive(transaction, table)
            return records.get_many(transaction, table, keys)

        return self._environment.inside(self._transaction, body)

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        def read(start: bytes, stop: bytes, count: int) -> records.Chunk:
            return inside(
                self._transaction,
                lambda transaction: records.read_chunk(transaction, start, stop, count),
            )

        inside = self._environment.inside
        inside(self._transaction, lambda transaction: dropping.check_alive(transaction, table))
        return records.batches(read, table, low, high, batch)

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        def body(transaction: Transaction) -> tuple[bytes | None, int]:
            dropping.check_alive(transaction, table)
            return records.stretch(transaction, table, low, rows, size)

        return self._environment.inside(self._transaction, body)


class EmbeddedBase:
    def __init__(self, environment: Environment, catalog: Callable[[], int]) -> None:
        """`catalog` tells the number of the catalog's last transaction."""
        self._environment, self._catalog = environment, catalog

    def streams(self) -> tuple[str, ...]:
        return (log.STREAM,)

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        return self.write_all([Operations(table, keys, values, before_images)], unless_after)

    def write_all(
        self, operations: Sequence[Operations], unless_after: Vector | None = None
    ) -> Vector:
        now = time.time()
        parts = [_Part.of(part, now) for part in operations]
        known = None if unless_after is None else unless_after[log.STREAM]

        def body(transaction: Transaction) -> Position:
            for part in parts:
                part.check(transaction, known)
            done = [part.apply(transaction, now) for part in parts if part.full]
            if not done:
                return 0
            value = _joined([block for block, _ in done])
            written = [entry for _, entry in done]
            return log.append(transaction, value, written, self._catalog())

        return self._write(body)

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Vector:
        records.check_key(key)
        full = records.prefix(table) + key
        now = time.time()

        def body(transaction: Transaction) -> Position:
            dropping.check_alive(transaction, table)
            growth = None
            if before_images:
                old = transaction.pop(full) if value is None else transaction.replace(full, value)
                block = blocks.encode_one(table, now, (key, value, old))
                growth = (value is not None) - (old is not None)
            else:
                block = blocks.encode_one(table, now, (key, value))
                if value is None:
                    transaction.delete(full)
                else:
                    transaction.put(full, value)
            return log.append(transaction, block, ((table, 1, growth),), self._catalog())

        return self._write(body)

    def _write(self, body: Callable[[Transaction], Position]) -> Vector:
        """Rows of dropped tables make room for new ones, if there is no other."""
        while True:
            try:
                return Vector({log.STREAM: self._environment.write(body)})
            except StoreFull:
                if self._environment.read(dropping.pending) is None:
                    raise
            self.reclaim(_WHEN_FULL)

    @contextmanager
    def snapshot(self) -> Iterator[EmbeddedSnapshot]:
        # it stays the one to end in, also when the store has been closed meanwhile
        environment = self._environment
        transaction = environment.begin_read()
        try:
            yield EmbeddedSnapshot(self._environment, transaction)
        finally:
            environment.end_read(transaction)

    def end(self) -> Vector:
        return Vector({log.STREAM: self._environment.read(log.ends)[0]})

    def barrier(self) -> Vector:
        return self.end()

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        self._check(stream)
        return log.read(self._environment, low, high)

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        self._check(stream)
        high = self._environment.read(lambda transaction: log.cut(transaction, low, rows))
        if size is None or high == low:
            return high
        return self._environment.read(
            lambda transaction: log.within(transaction, low, high, size), buffers=True
        )

    def count(self, table: TableId) -> int | None:
        return self._environment.read(lambda transaction: log.table_rows(transaction, table))

    def room(self) -> tuple[int, int]:
        return self._environment.used_bytes, self._environment.max_size

    def trim(self, stream: str, position: Position) -> None:
        self._check(stream)
        while self._environment.write(
            lambda transaction: log.trim_some(transaction, position, self._catalog()), frees=True
        ):
            pass  # a few blocks at a time: this takes the writers' lock

    def drop(self, table: TableId) -> None:
        def body(transaction: Transaction) -> None:
            dropping.mark_dead(transaction, table)
            log.note(transaction, self._catalog())

        self._environment.write(body, frees=True)

    def reclaim(self, seconds: float) -> bool:
        if self._environment.read(dropping.pending) is None:
            return False
        return dropping.until(
            seconds, lambda: self._environment.write(dropping.reclaim_some, frees=True)
        )

    def _check(self, stream: str) -> None:
        if stream != log.STREAM:
            raise StoreError(
                f"there is no stream {stream!r}: the only stream of this store is {log.STREAM!r}"
            )


@dataclass(frozen=True, slots=True)
class _Part:
    """Operations on one table, sorted by key (in their order for one key): then a batch costs LMDB
    one walk along the tree.

    `full` are keys as they are stored, `new` the values, `block` the log's block if it needs no
    rows before: what can be done without the writers' lock is done here.
    """

    table: TableId
    keys: pa.BinaryArray
    values: pa.BinaryArray
    full: list[bytes]
    new: list[bytes | None]
    block: bytes | None

    @classmethod
    def of(cls, operations: Operations, now: float) -> _Part:
        table, keys, values = operations.table, operations.keys, operations.values
        records.check_columns(keys, values)
        records.check_keys(keys)
        order = pa.array(stable_order(keys))
        keys, values = keys.take(order), values.take(order)
        full = records.prefixed(table, keys).to_pylist()
        is_ready = bool(full) and not operations.before_images
        block = _log_block(table, now, keys, values) if is_ready else None
        return cls(table, keys, values, full, values.to_pylist(), block)

    def check(self, transaction: Transaction, known: Position | None) -> None:
        """Raise if the table is gone, or was written at or after a position."""
        dropping.check_alive(transaction, self.table)
        if known is not None and log.table_end(transaction, self.table) > known:
            raise Conflict(
                f"table {self.table} was written after position {known}: read again and retry"
            )

    def apply(self, transaction: Transaction, now: float) -> tuple[bytes, log.Written]:
        """Do the operations; returns the log's block, and what it says of the table."""
        deletes = self.values.null_count > 0
        if self.block is not None:
            _put(transaction, self.full, self.new, deletes)
            return self.block, (self.table, len(self.full), None)
        old = records.binary(_replace(transaction, self.full, self.new, deletes))
        growth = old.null_count - self.values.null_count
        block = _log_block(self.table, now, self.keys, self.values, old)
        return block, (self.table, len(self.full), growth)


def _log_block(table: TableId, now: float, *columns: pa.BinaryArray) -> bytes:
    """A block that an epoch can take as a whole."""
    # as Arrow makes of more than 2 GiB
    whole = not any(isinstance(column, pa.ChunkedArray) for column in columns)
    size = sum(column.nbytes for column in columns)
    if len(columns[0]) > 1 and not (whole and size <= _LARGEST_BLOCK):
        raise _too_large(f"{len(columns[0]):,} operations")
    return blocks.encode(table, now, columns)


def _joined(values: Sequence[bytes]) -> bytes:
    """The blocks of a transaction as one value."""
    if len(values) == 1:
        return values[0]
    if sum(map(len, values)) > _LARGEST_BLOCK:
        raise _too_large(f"a transaction over {len(values)} tables: its operations")
    return b"".join(values)


def _too_large(what: str) -> TooLarge:
    most = f"{_LARGEST_BLOCK >> 20} MiB"
    return TooLarge(f"{what} with the rows before them are more than {most}: write fewer")


def _replace(
    transaction: Transaction, keys: list[bytes], values: list[bytes | None], deletes: bool
) -> list[bytes | None]:
    """Apply the operations; return the rows before. One descent per row does both."""
    with transaction.cursor() as cursor:
        replace, pop = cursor.replace, cursor.pop
        if deletes:
            return [
                pop(key) if value is None else replace(key, value)
                for key, value in zip(keys, values, strict=True)
            ]
        return [replace(key, value) for key, value in zip(keys, values, strict=True)]


def _put(
    transaction: Transaction, keys: list[bytes], values: list[bytes | None], deletes: bool
) -> None:
    if not deletes:
        with transaction.cursor() as cursor:
            cursor.putmulti(zip(keys, values, strict=True))
        return
    put, delete = transaction.put, transaction.delete
    for key, value in zip(keys, values, strict=True):
        if value is None:
            delete(key)
        else:
            put(key, value)
