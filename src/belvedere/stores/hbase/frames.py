"""Frames of captured changes, as region servers write them: decoded without copying.

Java's `Frame` says where everything is. A head is read by itself, because discovery needs no more.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from belvedere.errors import Damaged, StoreError
from belvedere.libraries import np, npt, pa

FIXED = 72
_MAGIC, _VERSION = 0x31465642, 1
_HEAD = struct.Struct("<IHBxIIQIIIIqqIIIxxxx")
_SPAN = struct.Struct("<qqB")
_NUMBER = struct.Struct("<q")
_SIZE = struct.Struct("<H")
_NEW, _BULK_LOAD = 1, 2


class Kind(IntEnum):
    WAL = 1
    SCAN = 2
    MARK = 3
    END = 4


@dataclass(frozen=True, slots=True)
class Region:
    """What of a region is in a frame. `is_new`: its edits before may be in other files."""

    table: str
    name: str
    lowest: int
    highest: int
    is_new: bool
    is_loaded: bool  # in bulk: those rows are in no log


@dataclass(frozen=True, slots=True)
class Head:
    """`queue` is the server whose log it was; `after` are lengths of files that come before."""

    kind: Kind
    head_size: int
    body_size: int
    checksum: int
    operations: int
    cells: int
    columns: int
    first_time: int
    last_time: int
    queue: str
    regions: tuple[Region, ...]
    marks: tuple[tuple[bytes, int], ...]
    after: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        return self.head_size + self.body_size


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of operations, of cells, and of the columns that cells are in."""

    head: Head
    sequences: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]
    regions: npt.NDArray[np.int32]
    edits: npt.NDArray[np.int32]
    rows: pa.BinaryArray
    timestamps: npt.NDArray[np.int64]
    operations: npt.NDArray[np.int32]  # the operation of every cell
    columns: npt.NDArray[np.int32]
    types: npt.NDArray[np.uint8]
    values: pa.BinaryArray
    families: pa.BinaryArray
    qualifiers: pa.BinaryArray


def head_size(data: memoryview, where: str) -> int | None:
    """How long a head is that begins here; None if too little of it is there."""
    if len(data) < FIXED:
        return None
    magic, version, _, size = struct.unpack_from("<IHHI", data)
    if magic != _MAGIC:
        raise Damaged(f"{where} is no frame of captured changes")
    if version != _VERSION:
        raise StoreError(
            f"{where} has version {version}, which this Belvedere does not know: use the one whose"
            " jar the region servers have"
        )
    return int(size)


def read_head(data: memoryview, where: str) -> Head | None:
    """The head that begins here; None if not all of it is there."""
    size = head_size(data, where)
    if size is None or len(data) < size:
        return None
    _, _, kind, _, crc, body, body_crc, *counts = _HEAD.unpack_from(data)
    zeroed = zlib.crc32(data[16:size], zlib.crc32(b"\0\0\0\0", zlib.crc32(data[:12])))
    if zeroed != crc:
        raise Damaged(f"the checksum of the head of {where} is wrong")
    operations, cells, columns, first, last, regions, marks, files = counts
    texts = _Texts(data, FIXED)
    return Head(
        Kind(kind),
        size,
        body,
        body_crc,
        operations,
        cells,
        columns,
        first,
        last,
        texts.next().decode(),
        tuple(texts.region() for _ in range(regions)),
        tuple((texts.next(), texts.number()) for _ in range(marks)),
        tuple((texts.next().decode(), texts.number()) for _ in range(files)),
    )


class _Texts:
    """The part of a head whose size differs, from front to back."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at

    def next(self) -> bytes:
        (size,) = _SIZE.unpack_from(self._data, self._at)
        begin = self._at + 2
        self._at = begin + size
        return bytes(self._data[begin : self._at])

    def number(self) -> int:
        (number,) = _NUMBER.unpack_from(self._data, self._at)
        self._at += 8
        return int(number)

    def region(self) -> Region:
        table, name = self.next().decode(), self.next().decode()
        lowest, highest, flags = _SPAN.unpack_from(self._data, self._at)
        self._at += _SPAN.size
        return Region(table, name, lowest, highest, bool(flags & _NEW), bool(flags & _BULK_LOAD))


def is_whole(head: Head, body: memoryview) -> bool:
    return len(body) == head.body_size and zlib.crc32(body) == head.checksum


def decode(head: Head, body: memoryview, where: str) -> Frame:
    """The columns of a frame; they refer to `body`."""
    if not is_whole(head, body):
        raise Damaged(f"the checksum of {where} is wrong")
    columns = _Columns(pa.py_buffer(body))
    return Frame(
        head,
        columns.numbers(np.int64, head.operations),
        columns.numbers(np.int64, head.operations),
        columns.numbers(np.int32, head.operations),
        columns.numbers(np.int32, head.operations),
        columns.texts(head.operations),
        columns.numbers(np.int64, head.cells),
        columns.numbers(np.int32, head.cells),
        columns.numbers(np.int32, head.cells),
        columns.numbers(np.uint8, head.cells),
        columns.texts(head.cells),
        columns.texts(head.columns),
        columns.texts(head.columns),
    )


class _Columns:
    """Columns of a body, from front to back; each begins at a multiple of 8."""

    def __init__(self, body: pa.Buffer) -> None:
        self._body, self._at = body, 0

    def numbers(self, kind: Any, count: int) -> Any:
        size = count * np.dtype(kind).itemsize
        return np.frombuffer(self._take(size), kind, count)

    def texts(self, count: int) -> pa.BinaryArray:
        offsets = self._take(4 * (count + 1))
        size = int(np.frombuffer(offsets, np.int32)[count])
        data = self._take(size)
        return pa.Array.from_buffers(pa.binary(), count, [None, offsets, data])

    def _take(self, size: int) -> pa.Buffer:
        taken = self._body.slice(self._at, size)
        self._at += (size + 7) & ~7
        return taken


def frames_in(data: memoryview, where: str) -> Iterator[Frame]:
    """All frames of a stretch that is known to be complete."""
    at = 0
    while at < len(data):
        place = f"the frame at byte {at:,} of {where}"
        head = read_head(data[at:], place)
        if head is None or at + head.size > len(data):
            raise Damaged(f"{place} ends too early")
        yield decode(head, data[at + head.head_size : at + head.size], place)
        at += head.size
