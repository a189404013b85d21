"""Shared memory of all processes that have a log open: how far it is.

`ends` only tells what was acknowledged: without it, what is whole counts.
"""

from __future__ import annotations

import mmap
import os
from struct import Struct
from struct import error as StructError

from belvedere.types import Position

ENDS = "ends"
_SIZE = 64
_TWO = Struct("=QQ")
_ALL = (1 << 64) - 1
_PUBLISHED, _TURNED, _APPENDED, _LAST, _SYNCS, _CHANGING, _UNSURE = range(7)


class Ends:
    """u64 each: the published end of the log, the same with all bits turned, the end of what was
    appended, the first position of the last segment, how often somebody waited for the disk,
    whether files are being changed, whether a sync of what is not published may have failed.
    """

    def __init__(self, mapped: mmap.mmap | None = None) -> None:
        self._map = mapped
        memory = memoryview(bytearray(_SIZE)) if mapped is None else memoryview(mapped)
        self._numbers = memory.cast("Q")

    @classmethod
    def shared(cls, folder: str) -> Ends:
        """To read and to write."""
        path = os.path.join(folder, ENDS)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size != _SIZE:
                os.ftruncate(descriptor, _SIZE)
            return cls(mmap.mmap(descriptor, _SIZE))
        finally:
            os.close(descriptor)

    @classmethod
    def seen(cls, folder: str) -> Ends:
        """To read; of its own if nobody has made them."""
        try:
            with open(os.path.join(folder, ENDS), "rb") as file:
                return cls(mmap.mmap(file.fileno(), _SIZE, prot=mmap.PROT_READ))
        except (FileNotFoundError, PermissionError, ValueError):
            return cls()

    @property
    def is_shared(self) -> bool:
        return self._map is not None

    def close(self) -> None:
        """At once, not when nobody refers to it any more: a file that is mapped keeps its file
        system busy.
        """
        self._numbers.release()
        if self._map is not None:
            self._map.flush()
            self._map.close()

    @property
    def published(self) -> Position:
        return self._numbers[_PUBLISHED]

    def publish(self, position: Position) -> None:
        self._numbers[_PUBLISHED] = position
        self._numbers[_TURNED] = _ALL ^ position

    def acknowledged(self) -> Position | None:
        """What is published, if that is not damaged."""
        return _agreed(self._numbers[_PUBLISHED], self._numbers[_TURNED])

    @property
    def appended(self) -> Position:
        return self._numbers[_APPENDED]

    @appended.setter
    def appended(self, position: Position) -> None:
        self._numbers[_APPENDED] = position

    @property
    def last(self) -> Position:
        return self._numbers[_LAST]

    @last.setter
    def last(self, first: Position) -> None:
        self._numbers[_LAST] = first

    @property
    def is_changing(self) -> bool:
        return bool(self._numbers[_CHANGING])

    @is_changing.setter
    def is_changing(self, value: bool) -> None:
        self._numbers[_CHANGING] = value

    @property
    def is_unsure(self) -> bool:
        return bool(self._numbers[_UNSURE])

    @is_unsure.setter
    def is_unsure(self, value: bool) -> None:
        self._numbers[_UNSURE] = value

    @property
    def syncs(self) -> int:
        """How often somebody has waited for the disk."""
        return self._numbers[_SYNCS]

    def count_sync(self) -> None:
        self._numbers[_SYNCS] += 1


def acknowledged(folder: str) -> Position | None:
    """What is published in the log of a folder, if somebody says so."""
    try:
        with open(os.path.join(folder, ENDS), "rb") as file:
            published, turned = _TWO.unpack_from(file.read())
    except (FileNotFoundError, StructError):
        return None
    return _agreed(int(published), int(turned))


def _agreed(published: int, turned: int) -> Position | None:
    return published if turned == _ALL ^ published else None
