"""The change log: blocks under the position of their first operation.

    00000000 'm' "end"             end of the log, trim point, number of the catalog that its writer
                                   saw (`parts.py`; u64 each)
    00000000 'm' "table" u32       position after the last operation on a table, and its rows if
                                   they are known (u64 each; or that it was dropped: `dropping.py`)
    00000000 'l' position u64      a block: keys, values, and before-images if the table is written
                                   with them

Everything but reading and decoding a block works on keys alone: a block ends where the next one
begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from struct import Struct

from belvedere.errors import Stale, StoreError
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.embedded import blocks
from belvedere.stores.embedded.dropping import TABLE
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.types import Position

STREAM = "log"
# a table, its operations, and by how many rows it has grown, if that is known
Written = tuple[TableId, int, int | None]
_END = b"\0\0\0\0mend"
_ENDS, _ENDS_AND_SEEN = Struct(">QQ"), Struct(">QQQ")
_TABLE_END, _TABLE_END_AND_ROWS = Struct(">Q"), Struct(">QQ")
_BLOCK = b"\0\0\0\0l"
_AFTER_BLOCKS = b"\0\0\0\0m"
_BLOCKS_PER_READ = 64
_BYTES_PER_READ = 8 << 20
_BLOCKS_PER_TRIM = 256


def key_of(position: Position) -> bytes:
    return _BLOCK + position.to_bytes(8, "big")


def ends(transaction: Transaction) -> tuple[Position, Position]:
    """The end of the log and its trim point."""
    stored = transaction.get(_END)
    return _ENDS.unpack_from(stored) if stored else (0, 0)


def seen(transaction: Transaction) -> int:
    stored = transaction.get(_END) or b""
    return int(_ENDS_AND_SEEN.unpack(stored)[2]) if len(stored) == _ENDS_AND_SEEN.size else 0


def note(transaction: Transaction, catalog: int) -> None:
    """That the writer of this transaction has seen the catalog's transaction of this number."""
    transaction.put(_END, _ENDS_AND_SEEN.pack(*ends(transaction), catalog))


def table_end(transaction: Transaction, table: TableId) -> Position:
    stored = transaction.get(TABLE + table.to_bytes(4, "big"))
    return int(_TABLE_END.unpack_from(stored)[0]) if stored else 0


def table_rows(transaction: Transaction, table: TableId) -> int | None:
    """How many rows a table has; not known once it was written without
    looking at the rows before.
    """
    stored = transaction.get(TABLE + table.to_bytes(4, "big"))
    if stored is None:
        return 0
    return (
        int(_TABLE_END_AND_ROWS.unpack(stored)[1])
        if len(stored) == _TABLE_END_AND_ROWS.size
        else None
    )


def append(
    transaction: Transaction, value: bytes, written: Sequence[Written], catalog: int
) -> Position:
    """Put the blocks of a transaction at the end, as one value; returns the new end."""
    end, trimmed = ends(transaction)
    transaction.put(key_of(end), value)
    for _, rows, _ in written:
        end += rows
    transaction.put(_END, _ENDS_AND_SEEN.pack(end, trimmed, catalog))
    for table, _, growth in written:
        known = None if growth is None else table_rows(transaction, table)
        if known is None or growth is None:
            entry = _TABLE_END.pack(end)
        else:
            entry = _TABLE_END_AND_ROWS.pack(end, known + growth)
        transaction.put(TABLE + table.to_bytes(4, "big"), entry)
    return end


def check_trim(transaction: Transaction, position: Position) -> Position:
    """The end of the log, if it can be read from `position` on."""
    end, trimmed = ends(transaction)
    if position < trimmed:
        raise Stale(
            f"the log was trimmed to {trimmed}: position {position} cannot be read any more"
        )
    return end


def read(environment: Environment, low: Position, high: Position) -> Iterator[LogBlock]:
    """A few blocks are copied out per transaction, and the trim point is looked at in each."""
    position = low
    while position < high:
        found = environment.read(partial(_read_some, low=position, high=high))
        if not found:
            return
        for start, value in found:
            if start != position:
                raise StoreError(
                    f"the log is damaged: there is no block at {position}. Restore the store from a"
                    " backup"
                )
            for block in _transaction(start, value):
                position = block.end
                yield block


def _transaction(start: Position, value: bytes) -> Iterator[LogBlock]:
    """The blocks of one transaction, from its first position on."""
    decoded = blocks.decode_all(value)
    for number, (table, time, (keys, values, *images)) in enumerate(decoded, 1):
        before = images[0] if images else None
        is_last = number == len(decoded)
        block = LogBlock(STREAM, start, table, time, keys, values, before, is_last)
        start = block.end
        yield block


def _read_some(
    transaction: Transaction, low: Position, high: Position
) -> list[tuple[Position, bytes]]:
    check_trim(transaction, low)
    found: list[tuple[Position, bytes]] = []
    size = 0
    cursor = transaction.cursor()
    stop = key_of(high)
    if cursor.set_range(key_of(low)):
        for key, value in cursor.iternext():
            if key >= stop or not key.startswith(_BLOCK):
                break
            found.append((int.from_bytes(key[5:], "big"), value))
            size += len(value)
            if len(found) >= _BLOCKS_PER_READ or size >= _BYTES_PER_READ:
                break
    return found


def cut(transaction: Transaction, low: Position, rows: int) -> Position:
    end = check_trim(transaction, low)
    target = low + max(rows, 0)
    if end <= max(low, target):
        return max(end, low) if end > low else low
    cursor = transaction.cursor()
    after = _boundary(cursor.key()) if cursor.set_range(key_of(target)) else None
    if after is None:
        after = end
    if after == target and after > low:
        return after
    # the block that contains the target begins here
    before = _boundary(cursor.key()) if cursor.prev() else None
    if before is not None and before > low:
        return before
    return after if after > low else _next_boundary(transaction, low, end)


def within(transaction: Transaction, low: Position, high: Position, size: int) -> Position:
    """The boundary up to which blocks from `low` on have at most `size` bytes, after one block at
    least. Values are not read.
    """
    check_trim(transaction, low)
    cursor, stop = transaction.cursor(), key_of(high)
    if cursor.set_range(key_of(low)):
        for key, value in cursor.iternext():  # buffers
            start = bytes(key)
            if start >= stop:
                break
            if size < len(value) and start != key_of(low):
                return int.from_bytes(start[5:], "big")
            size -= len(value)
    return high


def _next_boundary(transaction: Transaction, low: Position, end: Position) -> Position:
    cursor = transaction.cursor()
    found = _boundary(cursor.key()) if cursor.set_range(key_of(low + 1)) else None
    return end if found is None else found


def _boundary(key: bytes) -> Position | None:
    return int.from_bytes(key[5:], "big") if key.startswith(_BLOCK) else None


def trim_some(transaction: Transaction, position: Position, catalog: int) -> bool:
    """Drop some blocks that end at or before `position` and raise the trim point with them; whether
    there were any.

    The transaction that finds none is not for nothing: LMDB uses freed pages again from the second
    transaction on.
    """
    end, trimmed = ends(transaction)
    before, cursor = trimmed, transaction.cursor()
    for _ in range(_BLOCKS_PER_TRIM):
        if not cursor.set_range(key_of(trimmed)) or _boundary(cursor.key()) is None:
            break
        start = cursor.key()
        following = _boundary(cursor.key()) if cursor.next() else None
        stop = end if following is None else following
        if stop > position:
            break
        transaction.delete(start)
        trimmed = stop
    transaction.put(_END, _ENDS_AND_SEEN.pack(end, trimmed, catalog))
    return trimmed > before
