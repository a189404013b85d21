"""Blocks: some binary columns of equal length as one LMDB value.

Log blocks and sections have this form.

    header    table u32, rows u32, time f64, columns u16, bit i set: column i has NULLs u16, 1 for
              operations that pass, else 0 u32
    column    offsets i32 × (rows + 1), validity bits (only if it has NULLs), data; each padded to 8
              bytes

The buffers are Arrow's own, so decoding makes no Python object per row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct
from typing import Any, NamedTuple

from belvedere.errors import Damaged
from belvedere.libraries import np, pa

HEADER = Struct("<IIdHHI")
_OFFSETS_OF_ONE = Struct("<ii")
_PAD = [b"\0" * n for n in range(8)]
_VALID_OF_ONE = (b"\0" * 8, b"\1" + b"\0" * 7)


class Block(NamedTuple):
    table: int
    time: float
    columns: list[pa.BinaryArray]
    passes: bool = False


def encode(
    table: int, time: float, columns: Sequence[pa.BinaryArray], passes: bool = False
) -> bytes:
    rows = len(columns[0])
    nulls = sum(1 << i for i, column in enumerate(columns) if column.null_count)
    parts: list[Any] = [HEADER.pack(table, rows, time, len(columns), nulls, passes)]
    for column in columns:
        parts.extend(_column_parts(column, rows))
    return b"".join(parts)


def _column_parts(column: pa.BinaryArray, rows: int) -> Iterator[Any]:
    _, offset_buffer, data = column.buffers()
    if rows == 0 or offset_buffer is None:
        yield from _padded(bytes(4 * (rows + 1)))
        low = high = 0
    else:
        offsets = np.frombuffer(offset_buffer, np.int32, rows + 1, 4 * column.offset)
        low, high = int(offsets[0]), int(offsets[-1])
        yield from _padded((offsets if low == 0 else offsets - np.int32(low)).tobytes())
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        yield from _padded(np.packbits(valid, bitorder="little").tobytes())
    if high > low:
        yield from _padded(memoryview(data)[low:high])


def _padded(part: Any) -> tuple[Any, bytes]:
    return part, _PAD[-len(part) % 8]


def encode_one(table: int, time: float, items: Sequence[bytes | None]) -> bytes:
    """The block of one row, without going through Arrow: single puts are made of these."""
    nulls = 0
    parts = [b""]
    for i, item in enumerate(items):
        if item is None:
            nulls |= 1 << i
            parts += (_OFFSETS_OF_ONE.pack(0, 0), _VALID_OF_ONE[0])
        else:
            size = len(item)
            parts += (_OFFSETS_OF_ONE.pack(0, size), item, _PAD[-size % 8])
    parts[0] = HEADER.pack(table, 1, time, len(items), nulls, 0)
    return b"".join(parts)


def encode_few(table: int, time: float, columns: Sequence[Sequence[bytes | None]]) -> bytes:
    """The same block as `encode` makes, without Arrow: in less time if the rows are few."""
    rows, nulls = len(columns[0]), 0
    parts = [b""]
    for i, column in enumerate(columns):
        there = [item or b"" for item in column]
        parts += _padded(struct.pack(f"<{rows + 1}i", 0, *accumulate(map(len, there))))
        if None in column:
            nulls |= 1 << i
            valid = sum(1 << row for row, item in enumerate(column) if item is not None)
            parts += _padded(valid.to_bytes((rows + 7) // 8, "little"))
        parts += _padded(b"".join(there))
    parts[0] = HEADER.pack(table, rows, time, len(columns), nulls, 0)
    return b"".join(parts)


def decode(value: bytes) -> Block:
    """The only block of a value."""
    return decode_all(value)[0]


def decode_all(value: bytes) -> list[Block]:
    """All blocks of a value, which stand one behind the other."""
    try:
        return list(_decode(value))
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise Damaged(f"a block of {len(value)} bytes cannot be read ({error})") from error


def _decode(value: bytes) -> Iterator[Block]:
    buffer, at = pa.py_buffer(value), 0
    while at < len(value):
        block, at = _decode_at(value, buffer, at)
        yield block


def _decode_at(value: bytes, buffer: pa.Buffer, at: int) -> tuple[Block, int]:
    """The block that begins at a place, and where the next one begins."""
    table, rows, time, count, nulls, passes = HEADER.unpack_from(value, at)
    columns = []
    end = at + HEADER.size
    for offsets, validity, data, size in _layout(value, rows, count, nulls, at):
        end = data + ((size + 7) & ~7)
        valid = buffer.slice(validity, (rows + 7) // 8) if validity else None
        buffers = [valid, buffer.slice(offsets, 4 * (rows + 1)), buffer.slice(data, size)]
        columns.append(pa.Array.from_buffers(pa.binary(), rows, buffers))
        columns[-1].validate(full=True)  # Arrow would read what is not there
    return Block(table, time, columns, passes == 1), end


def heads(value: Any) -> Iterator[tuple[int, int, int]]:
    """Where each block of a value begins, its table, and its rows."""
    at = 0
    while at < len(value):
        table, rows, _, count, nulls, _ = HEADER.unpack_from(value, at)
        yield at, table, rows
        at += HEADER.size
        for _, _, data, size in _layout(value, rows, count, nulls, at - HEADER.size):
            at = data + ((size + 7) & ~7)


def operations_at(value: bytes, at: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of the block at a place, one by one: for few of them, and without Arrow."""
    rows = rows_at(value, at)
    (keys, _, keys_at, _), (values, valid, values_at, _) = layout_at(value, at)[:2]
    for row in range(rows):
        low, high = _OFFSETS_OF_ONE.unpack_from(value, keys + 4 * row)
        start, stop = _OFFSETS_OF_ONE.unpack_from(value, values + 4 * row)
        is_there = not valid or value[valid + (row >> 3)] >> (row & 7) & 1
        found = value[values_at + start : values_at + stop] if is_there else None
        yield value[keys_at + low : keys_at + high], found


def rows_at(value: Any, at: int) -> int:
    return int(HEADER.unpack_from(value, at)[1])


def passes_at(value: Any, at: int) -> bool:
    """Whether the operations of the block at a place pass."""
    return int(HEADER.unpack_from(value, at)[5]) == 1


def layout_at(value: Any, at: int) -> list[tuple[int, int, int, int]]:
    """Where the columns of the block at a place are (`_layout`)."""
    _, rows, _, count, nulls, _ = HEADER.unpack_from(value, at)
    return list(_layout(value, rows, count, nulls, at))


def columns_at(value: Any, at: int) -> list[pa.BinaryArray]:
    """The columns of the block at a place whose bytes are known to be right; nothing is copied."""
    buffer, rows = pa.py_buffer(value), rows_at(value, at)
    columns = []
    for offsets, validity, data, size in layout_at(value, at):
        valid = buffer.slice(validity, (rows + 7) // 8) if validity else None
        buffers = [valid, buffer.slice(offsets, 4 * (rows + 1)), buffer.slice(data, size)]
        columns.append(pa.Array.from_buffers(pa.binary(), rows, buffers))
    return columns


def _layout(
    value: Any, rows: int, count: int, nulls: int, start: int = 0
) -> Iterator[tuple[int, int, int, int]]:
    """Of each column: where its offsets, its validity bits (0: it has none) and its data begin, and
    the data's size.
    """
    at = start + HEADER.size
    for i in range(count):
        offsets = at
        at += (4 * (rows + 1) + 7) & ~7
        validity = 0
        if nulls >> i & 1:
            validity = at
            at += ((rows + 7) // 8 + 7) & ~7
        size = int.from_bytes(value[offsets + 4 * rows : offsets + 4 * rows + 4], "little")
        yield offsets, validity, at, size
        at += (size + 7) & ~7
