"""Columns of byte strings as one array of bytes: how batches go to Java and come back.

    rows, columns                       8 bytes each, little endian like everything here
    each column: nulls, bytes           8 bytes each
                 which are not NULL     a bit per row, only if some are NULL
                 offsets                4 bytes each, one more than rows
                 bytes

Every part is filled up to 8 bytes. `Columns.java` is the other side.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from belvedere.libraries import np, pa, pc

_TWO = struct.Struct("<qq")


def pack(columns: Sequence[pa.BinaryArray]) -> bytes:
    """Columns of equal length."""
    parts = [_TWO.pack(len(columns[0]), len(columns))]
    for column in columns:
        _pack_column(parts, column)
    return b"".join(parts)


def _pack_column(parts: list[bytes], column: pa.BinaryArray) -> None:
    rows, nulls = len(column), column.null_count
    _, offset_buffer, data = column.buffers()
    if rows:
        offsets = np.frombuffer(offset_buffer, np.int32, rows + 1, 4 * column.offset)
    else:
        offsets = np.zeros(1, np.int32)
    start, end = int(offsets[0]), int(offsets[-1])
    parts.append(_TWO.pack(nulls, end - start))
    if nulls:
        valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
        _add(parts, np.packbits(valid, bitorder="little").tobytes())
    _add(parts, (offsets - start).tobytes() if start else offsets.tobytes())
    _add(parts, b"" if data is None else memoryview(data)[start:end].tobytes())


def _add(parts: list[bytes], part: bytes) -> None:
    parts.append(part)
    if len(part) % 8:
        parts.append(bytes(-len(part) % 8))


def unpack(packed: Any) -> list[pa.BinaryArray]:
    """The columns again; they refer to the memory of `packed`."""
    buffer = pa.py_buffer(packed)
    view = memoryview(buffer)
    rows, count = _TWO.unpack_from(view)
    columns, at = [], _TWO.size
    for _ in range(count):
        nulls, size = _TWO.unpack_from(view, at)
        at += _TWO.size
        valid, at = (_part(buffer, at, (rows + 7) // 8)) if nulls else (None, at)
        offsets, at = _part(buffer, at, 4 * (rows + 1))
        data, at = _part(buffer, at, size)
        columns.append(pa.Array.from_buffers(pa.binary(), rows, [valid, offsets, data], nulls))
    return columns


def _part(buffer: pa.Buffer, at: int, size: int) -> tuple[pa.Buffer, int]:
    return buffer.slice(at, size), at + size + -size % 8


def numbers(column: pa.BinaryArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of 8 bytes each, none NULL, as numbers."""
    return np.frombuffer(column.buffers()[2], np.int64, len(column))
