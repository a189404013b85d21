"""The files of the change log: segments of records, one behind the other.

    base/log/POSITION.log   a segment; its name is the position of its first operation
    segment    head: magic, id of the store, first position u64, bytes logged before it u64, number
               of the catalog that was seen before it u64, checksum u32 of these; then records; then
               zeros, or nothing
    record     size of the value u32, operations u32, position u64, number of the catalog that its
               writer saw u64 (`parts.py`), bytes that were ever logged u64, checksum u32 of the
               value and of all this, checksum u32 of all this; then the value: blocks of keys and
               values (`blocks.py`); of older formats also before-images

A record is sealed with its position: one that stands elsewhere is none. Where records end is
found by walking along their heads.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from zlib import crc32

from belvedere.errors import Damaged
from belvedere.stores.embedded import disk
from belvedere.types import Position

FOLDER = "log"
SUFFIX = ".log"
_MAGIC = b"BELVLOG6"
_SEGMENT = Struct("<8s32sQQQ")
_RECORD = Struct("<IIQQQ")
_CHECKS, _CHECK = Struct("<II"), Struct("<I")
_PAD = [b"\0" * n for n in range(8)]
HEAD_SIZE = _RECORD.size + _CHECKS.size
SEGMENT_SIZE = _SEGMENT.size + 8
_READ_AT_ONCE = 1 << 16
_READ_MUCH = 1 << 20
_ZEROS = bytes(1 << 16)


@dataclass(frozen=True, slots=True)
class Head:
    """What stands in front of a value."""

    size: int
    rows: int
    position: Position
    catalog: int
    total: int
    checksum: int

    @property
    def length(self) -> int:
        """Of the whole record."""
        return HEAD_SIZE + self.size + -self.size % 8


def encode(value: bytes, rows: int, position: Position, catalog: int, total: int) -> list[bytes]:
    """A record, in parts."""
    size = len(value)
    head = _RECORD.pack(size, rows, position, catalog, total)
    seal = crc32(head)
    checksum = crc32(value, seal)
    checks = _CHECKS.pack(checksum, crc32(_CHECK.pack(checksum), seal))
    return [head, checks, value, _PAD[-size % 8]]


def decode(data: bytes, at: int) -> Head | None:
    """The head at a place, if it is one."""
    if at + HEAD_SIZE > len(data):
        return None
    checksum, own = _CHECKS.unpack_from(data, at + _RECORD.size)
    middle = at + _RECORD.size
    if crc32(data[at : middle + _CHECK.size]) != own:
        return None
    size, rows, position, catalog, total = _RECORD.unpack_from(data, at)
    return Head(size, rows, position, catalog, total, checksum)


def is_whole(head: Head, value: bytes) -> bool:
    known = _RECORD.pack(head.size, head.rows, head.position, head.catalog, head.total)
    return crc32(value, crc32(known)) == head.checksum


def name_of(first: Position) -> str:
    return f"{first:020}{SUFFIX}"


def first_positions(folder: str) -> list[Position]:
    """Of all segments, in order."""
    found = []
    for name in os.listdir(folder):
        stem, dot, suffix = name.partition(".")
        if dot + suffix == SUFFIX and stem.isdigit():
            found.append(int(stem))
    return sorted(found)


def needed(firsts: list[Position], trimmed: Position) -> list[Position]:
    """Without those that are trimmed: a crash may have left some of them."""
    return firsts[max(bisect_right(firsts, trimmed) - 1, 0) :]


def create(folder: str, store: str, first: Position, total: int = 0, catalog: int = 0) -> None:
    """An empty segment; it has its name when it is whole and on disk."""
    path = os.path.join(folder, name_of(first))
    head = _SEGMENT.pack(_MAGIC, store.encode(), first, total, catalog)
    descriptor = disk.create(path + ".new")
    try:
        disk.write(descriptor, [head, _CHECK.pack(crc32(head)), bytes(4)], 0)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.rename(path + ".new", path)
    disk.sync_folder(folder)


def give_to(path: Path, store: str) -> None:
    """Let a segment that nobody has open be of another store."""
    with path.open("r+b") as file:
        _, _, first, total, catalog = _parse(str(path), file.read(SEGMENT_SIZE))
        head = _SEGMENT.pack(_MAGIC, store.encode(), first, total, catalog)
        os.pwrite(file.fileno(), head + _CHECK.pack(crc32(head)), 0)
        os.fsync(file.fileno())


def _parse(path: str, data: bytes) -> tuple[bytes, bytes, int, int, int]:
    head = data[: _SEGMENT.size]
    if len(data) < SEGMENT_SIZE or data[_SEGMENT.size :][:4] != _CHECK.pack(crc32(head)):
        raise Damaged(f"{path} does not begin as a segment of the log: its head is not whole")
    return _SEGMENT.unpack(head)


@dataclass(slots=True)
class Segment:
    """One file, and what is known of it: where records are, up to some position."""

    path: str
    descriptor: int
    first: Position
    store: str
    total: int  # bytes that were ever logged up to `end`
    catalog: int
    end: Position = 0
    offset: int = SEGMENT_SIZE  # behind the last record that is known
    positions: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))

    @classmethod
    def open(cls, folder: str, first: Position, writable: bool) -> Segment:
        path = os.path.join(folder, name_of(first))
        flags = os.O_RDWR if writable else os.O_RDONLY
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            magic, store, found, total, catalog = _parse(
                path, os.pread(descriptor, SEGMENT_SIZE, 0)
            )
            if magic != _MAGIC or found != first:
                raise Damaged(f"{path} is not the segment of the log from {first:,} on")
        except BaseException:  # whatever it was, nobody would close it
            os.close(descriptor)
            raise
        return cls(path, descriptor, first, store.decode(), total, catalog, first)

    def close(self) -> None:
        os.close(self.descriptor)

    def add(self, head: Head) -> None:
        """A record behind the last one that is known."""
        self.positions.append(head.position)
        self.offsets.append(self.offset)
        self.advance(head.rows, head.length, head.total, head.catalog)

    def advance(self, rows: int, length: int, total: int, catalog: int) -> None:
        self.offset += length
        self.end += rows
        self.total, self.catalog = total, catalog

    def walk(self, stop: Position, proven: Position | None = None) -> None:
        """Get to know records up to `stop`, or to the last one. From `proven` on, their values are
        looked at too: a writer may have been killed in the middle of one.
        """
        start, data, size = 0, b"", os.fstat(self.descriptor).st_size
        while self.end < stop:
            at = self.offset - start
            if not data or at + HEAD_SIZE > len(data):
                start, data = self.offset, os.pread(self.descriptor, _READ_AT_ONCE, self.offset)
                at = 0
            head = decode(data, at)
            if head is None or head.position != self.end or not head.rows:
                return
            if self.offset + head.length > size:
                return
            if proven is not None and self.end >= proven and not self._has_value(head):
                return
            self.add(head)

    def _has_value(self, head: Head) -> bool:
        value = os.pread(self.descriptor, head.size, self.offset + HEAD_SIZE)
        return len(value) == head.size and is_whole(head, value)

    def has(self, position: Position) -> bool:
        """Whether a record begins there."""
        number = bisect_left(self.positions, position)
        return number < len(self.positions) and self.positions[number] == position

    def records(self, low: Position, high: Position, most: int) -> Iterator[tuple[Position, bytes]]:
        """Values from `low`, which is a boundary, to `high`, and at most so many."""
        number = bisect_left(self.positions, low)
        last = min(number + most, bisect_left(self.positions, high))
        start, data = 0, b""
        while number < last:
            offset, stop = self.offsets[number], self._stop(number)
            if not start <= offset <= stop <= start + len(data):
                size = max(stop - offset, min(_READ_MUCH, self._stop(last - 1) - offset))
                start, data = offset, os.pread(self.descriptor, size, offset)
            yield self.positions[number], self._value(data, offset - start, number)
            number += 1

    def _stop(self, number: int) -> int:
        following = number + 1
        return self.offsets[following] if following < len(self.offsets) else self.offset

    def _value(self, data: bytes, at: int, number: int) -> bytes:
        head = decode(data, at)
        if head is not None and head.position == self.positions[number]:
            value = data[at + HEAD_SIZE : at + HEAD_SIZE + head.size]
            if len(value) == head.size and is_whole(head, value):
                return value
        raise self.broken(self.positions[number])

    def write_again(self, low: Position) -> None:
        """Records from a boundary on; Damaged if one of them is not what was written any more."""
        for number in range(bisect_left(self.positions, low), len(self.positions)):
            offset = self.offsets[number]
            data = os.pread(self.descriptor, self._stop(number) - offset, offset)
            self._value(data, 0, number)
            disk.write(self.descriptor, [data], offset)

    def broken(self, position: Position) -> Damaged:
        return Damaged(
            f"{self.path}: the record of the log at position {position:,} is not what was written"
        )

    def has_rest(self) -> bool:
        """Whether something stands behind the last record."""
        at = self.offset
        while data := os.pread(self.descriptor, len(_ZEROS), at):
            if data != _ZEROS[: len(data)]:
                return True
            at += len(data)
        return False
