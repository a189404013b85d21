"""Base tables: rows and log in one environment of their own, so that view maintenance never holds the writers' lock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from belvedere.encoding.order import stable_order
from belvedere.errors import Conflict, StoreError
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.embedded import blocks, log, records
from belvedere.stores.embedded.environment import MAX_KEY, Environment, Transaction
from belvedere.stores.embedded.records import Batch
from belvedere.types import Position

_ROWS_PER_DROP = 10_000


class EmbeddedSnapshot:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.position = log.ends(transaction)[0]

    def get(self, table: TableId, key: bytes) -> bytes | None:
        value: bytes | None = self._transaction.get(records.prefix(table) + key) if len(key) <= MAX_KEY else None
        return value

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return records.get_many(self._transaction, table, keys, None)

    def scan(self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000) -> Iterator[Batch]:
        def read(start: bytes, stop: bytes, count: int) -> records.Chunk:
            return records.read_chunk(self._transaction, start, stop, count, None)

        return records.batches(read, table, low, high, batch)


class EmbeddedBase:
    streams: tuple[str, ...] = (log.STREAM,)

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def write(
        self, table: TableId, keys: pa.BinaryArray, values: pa.BinaryArray, before_images: bool, unless_after: Position | None = None
    ) -> Position:
        """Sorted by key (in the order of operations for one key), a batch costs LMDB one walk along the tree."""
        records.check_columns(keys, values)
        records.check_keys(keys)
        order = pa.array(stable_order(keys))
        keys, values = keys.take(order), values.take(order)
        full, new = records.prefixed(table, keys).to_pylist(), values.to_pylist()
        now = time.time()
        block = None if before_images or not full else blocks.encode(table, now, (keys, values))
        deletes = values.null_count > 0

        def body(transaction: Transaction) -> Position:
            if unless_after is not None and log.table_end(transaction, table) > unless_after:
                raise Conflict(f"table {table} was written after position {unless_after}: read again and retry")
            if not full:
                return log.ends(transaction)[0]
            if block is not None:
                _put(transaction, full, new, deletes)
                return log.append(transaction, table, len(full), block)
            old = records.binary(_replace(transaction, full, new, deletes))
            return log.append(transaction, table, len(full), blocks.encode(table, now, (keys, values, old)))

        return self._environment.write(body)

    def put_one(self, table: TableId, key: bytes, value: bytes | None, before_images: bool) -> Position:
        records.check_key(key)
        full = records.prefix(table) + key
        now = time.time()

        def body(transaction: Transaction) -> Position:
            old: bytes | None
            if not before_images:
                if value is None:
                    transaction.delete(full)
                else:
                    transaction.put(full, value)
                return log.append(transaction, table, 1, blocks.encode_one(table, now, (key, value)))
            old = transaction.pop(full) if value is None else transaction.replace(full, value)
            return log.append(transaction, table, 1, blocks.encode_one(table, now, (key, value, old)))

        return self._environment.write(body)

    @contextmanager
    def snapshot(self) -> Iterator[EmbeddedSnapshot]:
        environment = self._environment  # it stays the one to end in, also when the store has been closed meanwhile
        transaction = environment.begin_read()
        try:
            yield EmbeddedSnapshot(transaction)
        finally:
            environment.end_read(transaction)

    def end(self) -> dict[str, Position]:
        return {log.STREAM: self._environment.read(log.ends)[0]}

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        self._check(stream)
        return log.read(self._environment, low, high)

    def cut(self, stream: str, low: Position, rows: int) -> Position:
        self._check(stream)
        return self._environment.read(lambda transaction: log.cut(transaction, low, rows))

    def room(self) -> tuple[int, int]:
        return self._environment.used_bytes, self._environment.max_size

    def trim(self, stream: str, position: Position) -> None:
        self._check(stream)
        while self._environment.write(lambda transaction: log.trim_some(transaction, position), frees=True):
            pass  # a few blocks at a time: this takes the writers' lock

    def drop(self, table: TableId) -> None:
        while self._environment.write(lambda transaction: drop_some(transaction, table), frees=True):
            pass

    def _check(self, stream: str) -> None:
        if stream != log.STREAM:
            raise StoreError(f"there is no stream {stream!r}: the only stream of this store is {log.STREAM!r}")


def _replace(transaction: Transaction, keys: list[bytes], values: list[bytes | None], deletes: bool) -> list[bytes | None]:
    """Apply the operations; return the rows before. One descent per row does both."""
    with transaction.cursor() as cursor:
        replace, pop = cursor.replace, cursor.pop
        if deletes:
            return [pop(key) if value is None else replace(key, value) for key, value in zip(keys, values, strict=True)]
        return [replace(key, value) for key, value in zip(keys, values, strict=True)]


def _put(transaction: Transaction, keys: list[bytes], values: list[bytes | None], deletes: bool) -> None:
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


def drop_some(transaction: Transaction, table: TableId) -> bool:
    """Delete some records of a table; whether there may be more. Short, because it takes the writers' lock."""
    start, stop = records.bounds(table, b"", None)
    with transaction.cursor() as cursor:
        if not cursor.set_range(start):
            return False
        for _ in range(_ROWS_PER_DROP):
            if cursor.key() >= stop or not cursor.key():
                return False
            cursor.delete()
    return True
