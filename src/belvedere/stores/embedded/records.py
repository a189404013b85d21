"""Records of one table in an LMDB transaction: many at once, ranges in chunks.

A chunk is read in one go, and no transaction is held while the consumer works on it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import lmdb

from belvedere.errors import SchemaError
from belvedere.libraries import pa, pc
from belvedere.stores.embedded.environment import MAX_KEY, Transaction

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
# full keys, values, and where the rest begins (None: there is no rest)
Chunk = tuple[list[bytes], list[bytes], bytes | None]
ReadChunk = Callable[[bytes, bytes, int], Chunk]  # of [low, high), at most so many stored records

LONGEST = MAX_KEY + 4
LAST = b"\xff" * (LONGEST + 1)  # above every key
_FIRST_CHUNK = 16
_CHUNK_GROWTH = 8
_PIECE = 1024
CHUNK_BYTES = 32 << 20  # values in a chunk, about: a chunk of large rows has few of them
SLICE_END = (1 << 31) - 1  # None would be "to the end", but fails in pyarrow 26


def prefix(table: int) -> bytes:
    return table.to_bytes(4, "big")


def bounds(table: int, low: bytes, high: bytes | None) -> tuple[bytes, bytes]:
    """The range of full keys for a range of a table's own keys."""
    if high is not None:
        return prefix(table) + low, prefix(table) + high
    return prefix(table) + low, prefix(table + 1) if table < 0xFFFFFFFF else LAST


def prefixed(table: int, keys: pa.BinaryArray) -> pa.BinaryArray:
    return pc.binary_join_element_wise(
        pa.scalar(prefix(table), pa.binary()), keys, pa.scalar(b"", pa.binary())
    )


def check_key(key: bytes) -> None:
    if len(key) > MAX_KEY:
        raise SchemaError(
            f"a key of {len(key)} bytes is too long: encoded keys have at most {MAX_KEY} bytes in"
            " this store"
        )


def check_columns(*columns: pa.BinaryArray) -> None:
    """Blocks take Arrow's buffers as they are, so another type (large_binary, string) would be
    stored as nonsense.
    """
    for column in columns:
        if not isinstance(column, pa.BinaryArray):
            raise SchemaError(
                f"a store takes arrays of type binary, not {getattr(column, 'type', type(column))}:"
                " cast them first"
            )
        if len(column) != len(columns[0]):
            raise SchemaError(
                f"{len(columns[0])} keys but {len(column)} values: give one value, or NULL, for"
                " each key"
            )


def check_keys(keys: pa.BinaryArray) -> None:
    longest = pc.max(pc.binary_length(keys)).as_py() or 0
    if longest > MAX_KEY:
        raise SchemaError(
            f"a key of {longest} bytes is too long: encoded keys have at most {MAX_KEY} bytes in"
            " this store"
        )
    check_not_null(keys)


def check_not_null(keys: pa.BinaryArray) -> None:
    if keys.null_count:
        raise SchemaError("a key is NULL: every record needs a key")


def binary(values: Sequence[bytes | None]) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def get_many(transaction: Transaction, table: int, keys: pa.BinaryArray) -> pa.BinaryArray:
    get = transaction.get
    full = prefixed(table, keys).to_pylist()
    try:
        found = [get(key) for key in full]
    except lmdb.BadValsizeError:  # a key that is too long to be stored is not there
        found = [get(key) if len(key) <= LONGEST else None for key in full]
    return binary(found)


def seek(cursor: Any, key: bytes) -> bool:
    """Go to the first stored key at or after `key`, which may be one
    byte longer than LMDB takes.
    """
    found: bool = cursor.set_range(key[:LONGEST])
    if found and len(key) > LONGEST and cursor.key() == key[:LONGEST]:
        found = cursor.next()
    return found


def read_chunk(transaction: Transaction, low: bytes, high: bytes, count: int) -> Chunk:
    """The first `count` records of [low, high) by full key, and the `low` of the rest."""
    with transaction.cursor() as cursor:
        found = seek(cursor, low)
        keys, values, more = (
            _take(cursor.iternext(), count, lambda key: key >= high) if found else ([], [], False)
        )
    rest = keys[-1] + b"\0" if more else None
    if keys and keys[-1] >= high:
        end = bisect_left(keys, high)
        keys, values, rest = keys[:end], values[:end], None
    return keys, values, rest


def stretch(
    transaction: Transaction, table: int, low: bytes, rows: int, size: int
) -> tuple[bytes | None, int]:
    """The key up to which a table has so many rows, or so many bytes, from `low` on; and its rows.

    Piece by piece: the lengths of a piece's values are summed by C code, its keys are taken to be
    as long as its last one.
    """
    start, stop = bounds(table, low, None)
    counted, piece = 0, _FIRST_CHUNK
    with transaction.cursor() as cursor:
        if not seek(cursor, start):
            return None, 0
        while True:
            first = cursor.key()
            piece = min(piece, rows - counted)
            lengths = list(map(len, islice(cursor.iternext(keys=False, values=True), piece)))
            last = cursor.key()
            is_end = len(lengths) < piece or not last or last >= stop
            used = sum(lengths) + len(last) * len(lengths)
            if is_end or used >= size:
                return _within(cursor, first, stop, counted, rows, size)
            counted, size = counted + piece, size - used
            if counted == rows:
                return last[4:], counted
            if not cursor.next():
                return None, counted
            piece = min(piece * _CHUNK_GROWTH, _PIECE)


def _within(
    cursor: Any, first: bytes, stop: bytes, counted: int, rows: int, size: int
) -> tuple[bytes | None, int]:
    """The same, record by record, from the first key of a piece in which it ends."""
    cursor.set_range(first)
    for key, value in cursor.iternext():
        if key >= stop:
            break
        counted, size = counted + 1, size - len(key) - len(value)
        if counted == rows or size <= 0:
            return key[4:], counted
    return None, counted


def _take(
    items: Iterator[tuple[bytes, bytes]], count: int, outside: Callable[[bytes], bool]
) -> tuple[list[bytes], list[bytes], bool]:
    """At most `count` items and about `CHUNK_BYTES`, and whether there may be more; a few too many
    if the range ends before.

    In pieces: millions of tuples would keep the GC busy.
    """
    keys: list[bytes] = []
    values: list[bytes] = []
    size, room = _FIRST_CHUNK, CHUNK_BYTES
    while len(keys) < count and room > 0:
        size = min(size, count - len(keys))
        piece = list(islice(items, size))
        keys += [key for key, _ in piece]
        values += [value for _, value in piece]
        if len(piece) < size or outside(keys[-1]):
            return keys, values, False
        room -= sum(map(len, values[-size:]))
        size = next_piece(size * _CHUNK_GROWTH, _PIECE, room, CHUNK_BYTES - room, len(keys))
    return keys, values, True


def next_piece(wanted: int, most: int, room: int, used: int, records: int) -> int:
    """How many records to take next, so that they fit into `room` bytes if they are as large as
    those before.
    """
    return max(1, min(wanted, most, room * records // max(used, 1)))


def batches(
    read: ReadChunk, table: int, low: bytes, high: bytes | None, batch: int
) -> Iterator[Batch]:
    first, stop = bounds(table, low, high)
    start: bytes | None = first
    while start is not None and start < stop:
        keys, values, start = read(start, stop, batch)
        if keys:
            yield pc.binary_slice(binary(keys), 4, SLICE_END), binary(values)
