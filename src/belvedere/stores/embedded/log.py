"""The change log: blocks under the position of their first operation.

    00000000 'm' "end"             end of the log, trim point, number of the catalog that its writer
                                   saw (`parts.py`), bytes that were ever logged (u64 each)
    00000000 'm' "table" u32       position after the last operation on a table (u64; or that it was
                                   dropped: `dropping.py`)
    00000000 'l' position u64      a block: keys and values; of older formats also before-images

Everything but reading and decoding a block works on keys alone: a block ends where the next one
begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct

from belvedere.errors import Damaged, Stale
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.embedded import blocks
from belvedere.stores.embedded.checked import CHECK_SIZE, opened, seal
from belvedere.stores.embedded.dropping import put_table_entry, table_entry
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.types import Position

STREAM = "log"
# a table, and how many operations on it
Written = tuple[TableId, int]
Operation = tuple[TableId, bytes, bytes | None]
_END = b"\0\0\0\0mend"
_ENDS, _ALL_ENDS = Struct(">QQ"), Struct(">QQQQ")
_SEEN_AT, _BYTES_AT = 16, 24
_TABLE_END = Struct(">Q")
_BLOCK = b"\0\0\0\0l"
_AFTER_BLOCKS = b"\0\0\0\0m"
_BLOCKS_PER_READ = 64
_BYTES_PER_READ = 8 << 20
_BLOCKS_PER_TRIM = 256
_FEW = 64  # operations that are looked at one by one in less time


def key_of(position: Position) -> bytes:
    return _BLOCK + position.to_bytes(8, "big")


def is_block(key: bytes) -> bool:
    return key.startswith(_BLOCK)


def ends(transaction: Transaction) -> tuple[Position, Position]:
    """The end of the log and its trim point."""
    stored = _stored_ends(transaction)
    return _ENDS.unpack_from(stored) if stored else (0, 0)


def seen(transaction: Transaction) -> int:
    return _number(transaction, _SEEN_AT)


def logged_bytes(transaction: Transaction) -> int:
    """Of all that was ever logged; what an older format had is not counted."""
    return _number(transaction, _BYTES_AT)


def _number(transaction: Transaction, at: int) -> int:
    return int.from_bytes(_stored_ends(transaction)[at : at + 8], "big")


def _stored_ends(transaction: Transaction) -> bytes:
    stored = transaction.get(_END)
    return opened(_END, bytes(stored)) if stored else b""


def note(transaction: Transaction, catalog: int) -> None:
    """That the writer of this transaction has seen the catalog's transaction of this number."""
    _put_ends(transaction, *ends(transaction), catalog)


def _put_ends(
    transaction: Transaction, end: Position, trimmed: Position, catalog: int, more: int = 0
) -> None:
    total = logged_bytes(transaction) + more
    transaction.put(_END, seal(_END, _ALL_ENDS.pack(end, trimmed, catalog, total)))


def table_end(transaction: Transaction, table: TableId) -> Position:
    stored = table_entry(transaction, table)
    return int(_TABLE_END.unpack_from(stored)[0]) if stored else 0


def append(
    transaction: Transaction, value: bytes, written: Sequence[Written], catalog: int
) -> Position:
    """Put the blocks of a transaction at the end, as one value; returns the new end."""
    end, trimmed = ends(transaction)
    key = key_of(end)
    transaction.put(key, seal(key, value))
    for _, rows in written:
        end += rows
    _put_ends(transaction, end, trimmed, catalog, len(value))
    for table, _ in written:
        put_table_entry(transaction, table, _TABLE_END.pack(end))
    return end


def check_trim(transaction: Transaction, position: Position) -> Position:
    """The end of the log, if it can be read from `position` on."""
    end, trimmed = ends(transaction)
    if position < trimmed:
        raise Stale(
            f"the log was trimmed to {trimmed}: position {position} cannot be read any more"
        )
    return end


@dataclass(frozen=True, slots=True)
class Stretch:
    """One transaction, as it is stored."""

    low: Position
    value: bytes

    @property
    def high(self) -> Position:
        return self.low + sum(rows for _, _, rows in blocks.heads(self.value))

    def few(self) -> list[Operation] | None:
        """Its operations, unless they are many."""
        heads = list(blocks.heads(self.value))
        if sum(rows for _, _, rows in heads) > _FEW:
            return None
        return [
            (table, key, value)
            for at, table, _ in heads
            for key, value in blocks.operations_at(self.value, at)
        ]

    def parts(self) -> dict[TableId, list[tuple[pa.BinaryArray, pa.BinaryArray]]]:
        """Keys and values by table."""
        found: dict[TableId, list[tuple[pa.BinaryArray, pa.BinaryArray]]] = {}
        for block in self.blocks():
            found.setdefault(block.table, []).append((block.keys, block.values))
        return found

    def blocks(self) -> Iterator[LogBlock]:
        start, decoded = self.low, blocks.decode_all(self.value)
        for number, (table, time, (keys, values, *images)) in enumerate(decoded, 1):
            before = images[0] if images else None
            is_last = number == len(decoded)
            block = LogBlock(STREAM, start, table, time, keys, values, before, is_last)
            start = block.end
            yield block


def read(environment: Environment, low: Position, high: Position) -> Iterator[LogBlock]:
    for stretch in stretches(environment, low, high):
        yield from stretch.blocks()


def stretches(environment: Environment, low: Position, high: Position) -> Iterator[Stretch]:
    """A few blocks are copied out per transaction, and the trim point is looked at in each."""
    position = low
    while position < high:
        found = environment.read(partial(_read_some, low=position, high=high))
        if not found:
            if position >= environment.read(ends)[0]:
                return
            raise _missing(environment, position)
        for start, value in found:
            if start != position:
                raise _missing(environment, position)
            stretch = Stretch(start, value)
            position = stretch.high
            yield stretch


def _missing(environment: Environment, position: Position) -> Damaged:
    return Damaged(f"the log in {environment.path} has no block at position {position:,}")


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
            found.append((int.from_bytes(key[5:], "big"), opened(key, value)))
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


def within(
    transaction: Transaction,
    low: Position,
    high: Position,
    size: int,
    row_size: Callable[[TableId], int],
) -> Position:
    """The boundary up to which blocks from `low` on have at most `size` bytes, after one block at
    least. Of each row that is replaced, about `row_size` will be read. Values are not read.
    """
    check_trim(transaction, low)
    cursor, stop = transaction.cursor(), key_of(high)
    if cursor.set_range(key_of(low)):
        for key, value in cursor.iternext():  # buffers
            start = bytes(key)
            if start >= stop:
                break
            heads = blocks.heads(value[:-CHECK_SIZE])
            used = len(value) + sum(rows * row_size(table) for _, table, rows in heads)
            if size < used and start != key_of(low):
                return int.from_bytes(start[5:], "big")
            size -= used
    return high


def boundary_below(transaction: Transaction, position: Position) -> Position:
    """The last boundary of transactions at or below a position that is not trimmed."""
    end, trimmed = ends(transaction)
    if position >= end:
        return end
    cursor = transaction.cursor()
    if cursor.set_range(key_of(position)) and _boundary(cursor.key()) == position:
        return position
    before = _boundary(cursor.key()) if cursor.prev() else None
    return trimmed if before is None else before


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
    _put_ends(transaction, end, trimmed, catalog)
    return trimmed > before
