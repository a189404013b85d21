"""Base tables: rows and log in one environment of their own, so that view maintenance never holds
the writers' lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from belvedere.encoding.order import stable_order
from belvedere.errors import Conflict, StoreError, StoreFull, TooLarge
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.embedded import blocks, dropping, log, records
from belvedere.stores.embedded.environment import MAX_KEY, Environment, Transaction
from belvedere.stores.embedded.records import Batch
from belvedere.types import Position

_LARGEST_BLOCK = 128 << 20  # bytes of a log block with more than one operation
_WHEN_FULL = 0.5  # seconds of removing between two tries of a write that found no room


class EmbeddedSnapshot:
    def __init__(self, environment: Environment, transaction: Transaction) -> None:
        self._environment, self._transaction = environment, transaction
        self.position = environment.inside(transaction, log.ends)[0]

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
            return records.get_many(transaction, table, keys, None)

        return self._environment.inside(self._transaction, body)

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[Batch]:
        def read(start: bytes, stop: bytes, count: int) -> records.Chunk:
            return inside(
                self._transaction,
                lambda transaction: records.read_chunk(transaction, start, stop, count, None),
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
    streams: tuple[str, ...] = (log.STREAM,)

    def __init__(self, environment: Environment, catalog: Callable[[], int]) -> None:
        """`catalog` tells the number of the catalog's last transaction."""
        self._environment, self._catalog = environment, catalog

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Position | None = None,
    ) -> Position:
        """Sorted by key (in the order of operations for one key), a batch costs LMDB one walk along
        the tree.
        """
        records.check_columns(keys, values)
        records.check_keys(keys)
        order = pa.array(stable_order(keys))
        keys, values = keys.take(order), values.take(order)
        full, new = records.prefixed(table, keys).to_pylist(), values.to_pylist()
        now = time.time()
        block = None if before_images or not full else _log_block(table, now, keys, values)
        deletes = values.null_count > 0

        def body(transaction: Transaction) -> Position:
            dropping.check_alive(transaction, table)
            if unless_after is not None and log.table_end(transaction, table) > unless_after:
                raise Conflict(
                    f"table {table} was written after position {unless_after}: read again and retry"
                )
            if not full:
                return log.ends(transaction)[0]
            if block is not None:
                _put(transaction, full, new, deletes)
                return log.append(transaction, table, len(full), block, self._catalog())
            old = records.binary(_replace(transaction, full, new, deletes))
            block_with_images, growth = (
                _log_block(table, now, keys, values, old),
                old.null_count - values.null_count,
            )
            return log.append(
                transaction, table, len(full), block_with_images, self._catalog(), growth
            )

        return self._write(body)

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Position:
        records.check_key(key)
        full = records.prefix(table) + key
        now = time.time()

        def body(transaction: Transaction) -> Position:
            dropping.check_alive(transaction, table)
            old: bytes | None
            if not before_images:
                if value is None:
                    transaction.delete(full)
                else:
                    transaction.put(full, value)
                return log.append(
                    transaction,
                    table,
                    1,
                    blocks.encode_one(table, now, (key, value)),
                    self._catalog(),
                )
            old = transaction.pop(full) if value is None else transaction.replace(full, value)
            growth = (value is not None) - (old is not None)
            return log.append(
                transaction,
                table,
                1,
                blocks.encode_one(table, now, (key, value, old)),
                self._catalog(),
                growth,
            )

        return self._write(body)

    def _write(self, body: Callable[[Transaction], Position]) -> Position:
        """Rows of dropped tables make room for new ones, if there is no other."""
        while True:
            try:
                return self._environment.write(body)
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

    def end(self) -> dict[str, Position]:
        return {log.STREAM: self._environment.read(log.ends)[0]}

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


def _log_block(table: TableId, now: float, *columns: pa.BinaryArray) -> bytes:
    """A block that an epoch can take as a whole."""
    # as Arrow makes of more than 2 GiB
    whole = not any(isinstance(column, pa.ChunkedArray) for column in columns)
    if len(columns[0]) > 1 and not (
        whole and sum(column.nbytes for column in columns) <= _LARGEST_BLOCK
    ):
        raise TooLarge(
            f"{len(columns[0]):,} operations with the rows before them are more than"
            f" {_LARGEST_BLOCK >> 20} MiB: write fewer"
        )
    return blocks.encode(table, now, columns)


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
