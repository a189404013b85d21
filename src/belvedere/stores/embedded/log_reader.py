"""The change log as it is read: its segments, as far as they are known."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

from belvedere.errors import Damaged, StoreError
from belvedere.stores.embedded import log_segments
from belvedere.stores.embedded.files import RESTORE
from belvedere.stores.embedded.log_ends import Ends
from belvedere.stores.embedded.log_segments import FOLDER, Segment
from belvedere.types import Position

_TRIES = 100
_MANY, _MUCH = 512, 8 << 20  # records, and bytes of them, that are read at once
_ALL = (1 << 64) - 1


class LogReader:
    """Of one store object. `trimmed` tells the trim point."""

    writable = False

    def __init__(self, path: str, trimmed: Callable[[], Position]) -> None:
        self.path = os.path.join(path, FOLDER)
        self._trimmed = trimmed
        self.ends = Ends()
        self._is_open = False
        self._before = 0  # bytes of segments before the last one
        self._room = 0  # bytes of the last one that are written, with zeros
        self._looking = threading.RLock()  # at segments
        self._segments: list[Segment] = []

    def open(self) -> None:
        with self._looking:
            if self._is_open:
                return
            if not os.path.isdir(self.path):
                raise StoreError(f"{self.path} is missing, a part of this store is lost. {RESTORE}")
            self._open()
            self._is_open = True

    def _open(self) -> None:
        self._open_to_read()

    def _open_to_read(self) -> None:
        """What is published, as far as somebody says so; else what is whole."""
        self.ends = Ends.seen(self.path)
        known = self.ends.acknowledged()
        self._load()
        if known is None:
            self._take_what_is_whole()
            return
        last = self._segments[-1]
        last.walk(known, known)
        self._check_end(last, known)

    def _take_what_is_whole(self) -> None:
        last = self._segments[-1]
        last.walk(_ALL, 0)
        self.ends = Ends()
        self.ends.publish(last.end)

    def reach(self, position: Position) -> None:
        """It was published up to there: shared memory that says less is from before a loss of
        power. Then what is whole counts, as for who opens it to write.
        """
        if self.end < position:
            with self._looking:
                self._look_again()

    def _look_again(self) -> None:
        self._load()
        self._take_what_is_whole()

    def _check_end(self, last: Segment, known: Position | None) -> None:
        if known is not None and last.end < known:
            raise Damaged(f"{last.path}: the log ends at {last.end:,}, and should at {known:,}")

    def _load(self) -> None:
        """Know all segments that are not trimmed, and no others."""
        for _ in range(_TRIES):
            try:
                return self._load_once()
            except FileNotFoundError as error:  # trimmed meanwhile
                gone = error
        raise gone

    def _load_once(self) -> None:
        with self._looking:
            firsts = log_segments.needed(log_segments.first_positions(self.path), self._trimmed())
            if not firsts:
                raise Damaged(f"{self.path} has no segment of the log")
            known = {each.first: each for each in self._segments}
            opened = self._opened([first for first in firsts if first not in known])
            self._segments = [known.get(first) or opened[first] for first in firsts]
            for first, segment in known.items():  # last: who fails above tries again with them
                if first not in firsts:
                    segment.close()
            sizes = [os.fstat(each.descriptor).st_size for each in self._segments]
            self._before, self._room = sum(sizes[:-1]), sizes[-1]

    def _opened(self, firsts: Sequence[Position]) -> dict[Position, Segment]:
        """All of them, or none."""
        found: dict[Position, Segment] = {}
        try:
            for first in firsts:
                found[first] = Segment.open(self.path, first, self.writable)
        except BaseException:  # whatever it was, nobody would close them
            for segment in found.values():
                segment.close()
            raise
        return found

    def check(self, store: str) -> None:
        """Raise unless the log is of this store, and has all from the trim point on."""
        self.open()
        trimmed = self._trimmed()  # not before: others trim meanwhile
        with self._looking:
            for segment in self._segments:
                if segment.store != store:
                    raise StoreError(f"{segment.path} belongs to another store. {RESTORE}")
            if self._segments[0].first > trimmed:
                raise self._missing(trimmed)
            for segment, following in pairwise(self._segments):
                segment.walk(following.first)
                if segment.end != following.first:
                    raise self._missing(segment.end)

    def _missing(self, position: Position) -> Damaged:
        return Damaged(f"the log in {self.path} has no record at position {position:,}")

    @property
    def end(self) -> Position:
        """What is published."""
        if not self._is_open:
            self.open()
        return self.ends.published

    def number(self) -> int:
        """The clock of the log is its end (`parts.py`); a forked child need not open it."""
        return self.ends.published if self.ends.is_shared else self.end

    def last(self) -> tuple[int, int]:
        """Bytes that were ever logged, and the number of the catalog that the last writer saw."""
        with self._looking:
            self._know(self.end)
            return self._segments[-1].total, self._segments[-1].catalog

    def used_bytes(self) -> int:
        with self._looking:
            self._load()
            return self._before + self._segments[-1].offset

    def _know(self, high: Position) -> None:
        """All records up to a position, which was appended."""
        if not self._is_open:
            self.open()
        if self.writable and self.ends.last != self._segments[-1].first:
            self._load()
        if self._segments[-1].end < high:
            self._segments[-1].walk(high)
            if self._segments[-1].end < high:
                self._load()
                self._segments[-1].walk(high)
        for segment, following in pairwise(self._segments):
            segment.walk(following.first)
            if segment.end != following.first:
                raise segment.broken(segment.end)
        if self._segments[-1].end < high:
            raise self._segments[-1].broken(self._segments[-1].end)

    def records(self, low: Position, high: Position) -> list[tuple[Position, bytes]]:
        """Some values from `low`, which is a boundary, on; none if it is no boundary."""
        with self._looking:
            high = min(high, self.ends.appended if self.writable else self.end)
            self._know(high)
            segment = self._at(low)
            found: list[tuple[Position, bytes]] = []
            if not segment.has(low):  # it was trimmed meanwhile
                return found
            size = 0
            for position, value in segment.records(low, high, _MANY):
                found.append((position, value))
                size += len(value)
                if size >= _MUCH:
                    break
            return found

    def _at(self, position: Position) -> Segment:
        firsts = [each.first for each in self._segments]
        return self._segments[max(bisect_right(firsts, position) - 1, 0)]

    def boundary_below(self, position: Position) -> Position:
        """Of records; the first one of all if there is none."""
        with self._looking:
            self._know(min(position, self.end))
            segment = self._at(position)
            if position >= segment.end:
                return segment.end
            number = bisect_right(segment.positions, position)
            return segment.positions[number - 1] if number else segment.first

    def boundary_above(self, position: Position) -> Position:
        with self._looking:
            end = self.end
            self._know(end)
            segment = self._at(position)
            number = bisect_left(segment.positions, position + 1)
            is_inside = number < len(segment.positions)
            return min(segment.positions[number] if is_inside else segment.end, end)
