"""The change log as it is written: by one process at a time, synced for many at once.

    base/log/lock, sync     whoever appends, or waits for the disk, has these locked; the kernel
                            releases them when he dies. Who they are stands in `holder` files
    base/log/ends           shared memory of all processes (`log_ends.py`)

To append: lock, see what others have appended, check, write, unlock. Then wait for the disk, all
who have written meanwhile together: who gets the second lock syncs what is there, and *publishes*
it; who finds his record published has nothing left to do. Readers see only what is published, so
nothing that they see is ever lost.

    killed in a write           a part of a record is behind the last one: the next writer, or who
                                opens the log, cuts it off
    killed before the sync      the record is appended: the next sync publishes it
    killed before publishing    the same
    killed in a new segment     it has no name yet; or it has, and is empty
    power lost                  whoever opens the log walks along its records: what is whole is
                                synced and published, the rest is cut off. What was published is
                                there, else it is damaged
    a sync fails                a system may forget what it could not write, and say nothing of it
                                at the next sync: so before that it is written again
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from belvedere.errors import StoreError, StoreFull
from belvedere.stores.embedded import disk, log_segments
from belvedere.stores.embedded.holder import Holder
from belvedere.stores.embedded.log_ends import Ends
from belvedere.stores.embedded.log_reader import LogReader
from belvedere.stores.embedded.log_segments import HEAD_SIZE, Segment
from belvedere.types import Position

LOCKS = ("lock", "sync")
FULL = 16 << 20  # bytes of a segment after which the next one begins
# Zeros that are written in front of small records: a file that does not get longer is synced faster
_AHEAD = 1 << 18
_SMALL = 1 << 14
_ALL = (1 << 64) - 1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Later(threading.local):
    """Up to where a thread will wait for the disk, if it does not do so at once."""

    end: Position | None = None


class LogFile(LogReader):
    """Of one store object. `trimmed` tells the trim point; `check` is called before each write."""

    def __init__(
        self,
        path: str,
        trimmed: Callable[[], Position],
        max_size: Callable[[], int],
        check: Callable[[], None],
        writable: bool,
    ) -> None:
        super().__init__(path, trimmed)
        self._max_size, self._check = max_size, check
        self.writable = writable
        self._is_recovered = False  # by this process, or by the one that it was forked from
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        """Also in a forked child: locks of the parent's descriptors would be its own."""
        self._appending, self._syncing = threading.Lock(), threading.Lock()
        self._looking, self._segments = threading.RLock(), []
        self._later = _Later()
        self._locks: list[int] = []
        self._holders: list[Holder] = []

    def after_fork(self) -> None:
        for descriptor in [*self._locks, *(each.descriptor for each in self._segments)]:
            os.close(descriptor)  # else a lock would outlive the parent
        _inherited.extend(self._holders)
        self._is_open = False
        self._reset()

    # ------------------------------------------------------------ opening

    def _open(self) -> None:
        if self.writable:
            self._open_to_write()
        else:
            self._open_to_read()

    def _open_to_write(self) -> None:
        self._locks = [self._open_file(name) for name in LOCKS]
        self._holders = [Holder(self.path, f"holder-{name}") for name in LOCKS]
        self.ends = Ends.shared(self.path)
        if not self._recover_if_free() and self.ends.acknowledged() is None:
            with self._locked(0), self._locked(1):
                self._recover()
        self._load()

    def _recover_if_free(self) -> bool:
        """Opening and reading wait for nobody, not even for one who is stopped: what is published
        is durable, whoever writes next does the rest.
        """
        held = []
        try:
            for descriptor in self._locks:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(descriptor)
            self._recover()
        except BlockingIOError:
            return False
        finally:
            for descriptor in held:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
        return True

    def _open_file(self, name: str) -> int:
        path = os.path.join(self.path, name)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _recover(self) -> None:
        """See the table above; both locks are held."""
        known = self.ends.acknowledged()
        self._load()
        last = self._segments[-1]
        last.walk(_ALL, known or 0)
        self._check_end(last, known)
        with self._told():
            if last.has_rest():
                disk.truncate(last.descriptor, last.offset)
                self._sync_segment(last)
            if self.ends.is_changing and last.end == last.first:
                disk.sync_folder(self.path)  # who began it may not have come to that
            if known != last.end:
                self._sync_segment(last)
                self.ends.publish(last.end)
        self.ends.appended, self.ends.last = last.end, last.first
        self.ends.is_changing = False
        self._is_recovered = True

    def _look_again(self) -> None:
        if not self.writable:
            super()._look_again()
            return
        with self._locked(0), self._locked(1):
            self._recover()

    def close(self) -> None:
        with self._looking:
            ends, self.ends = self.ends, Ends()
            self.ends.publish(ends.published)
            ends.close()
            for holder in self._holders:
                holder.close()
            for descriptor in [*self._locks, *(each.descriptor for each in self._segments)]:
                os.close(descriptor)
            self._segments, self._locks, self._holders = [], [], []
            self._is_open = False

    # ------------------------------------------------------------ appending

    @contextmanager
    def _locked(self, which: int) -> Iterator[None]:
        descriptor, holder = self._locks[which], self._holders[which]
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        holder.began()
        try:
            yield
        finally:
            holder.ended()
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    @contextmanager
    def locked(self) -> Iterator[Position]:
        """While nobody can append; gives the end of what was appended."""
        self._begin()
        with self._appending, self._locked(0):
            yield self._last().end

    def _begin(self) -> None:
        if not self._is_open:
            self.open()
        if not self.writable:
            self._check()  # there are no locks

    def append(
        self, value: bytes, rows: int, catalog: int, check: Callable[[Position], None]
    ) -> Position:
        """Put a value at the end, durable; returns the new end, or 0 if there was nothing to put.

        `check` runs while nobody else can append, with the end so far, and may raise.
        """
        self._begin()
        with self._appending, self._locked(0):
            self._check()
            last = self._last()
            check(last.end)
            if not rows:
                return 0
            end = self._append(last, value, rows, catalog)
        if self._later.end is None:
            self._wait(end)
        else:
            self._later.end = end
        return end

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread appends meanwhile is durable at the end, after one wait."""
        if self._later.end is not None:  # the outer one waits
            yield
            return
        self._later.end = 0
        try:
            yield
        finally:
            end, self._later.end = self._later.end, None
            if end:
                self._wait(end)

    def _last(self) -> Segment:
        """The last segment, with all that others have appended."""
        if self.ends.is_changing or not self._is_recovered:  # somebody was killed, or may have been
            with self._syncing, self._locked(1):
                self._recover()
        last = self._segments[-1]
        if self.ends.last != last.first:
            self._load()
            last = self._segments[-1]
        if last.end != self.ends.appended:
            with self._looking:
                last.walk(self.ends.appended)
            if last.end != self.ends.appended:
                raise last.broken(last.end)
            self._room = os.fstat(last.descriptor).st_size
        return last

    def _append(self, last: Segment, value: bytes, rows: int, catalog: int) -> Position:
        need = HEAD_SIZE + len(value) + -len(value) % 8
        self._check_room(last, need)
        if last.offset >= FULL:
            last = self._begin_segment(last)
        total = last.total + len(value)
        parts = log_segments.encode(value, rows, last.end, catalog, total)
        end = last.offset + need
        if end > self._room:
            ahead = bytes(_AHEAD) if need <= _SMALL else b""
            parts.append(ahead)
            self._room = end + len(ahead)
        self.ends.is_changing = True
        try:
            disk.write(last.descriptor, parts, last.offset)
        except OSError as error:
            self._room = last.offset
            disk.truncate(last.descriptor, last.offset)
            raise self._failed(error, "nothing was written") from error
        with self._looking:
            last.positions.append(last.end)
            last.offsets.append(last.offset)
            last.advance(rows, need, total, catalog)
        self.ends.appended = last.end
        self.ends.is_changing = False
        return last.end

    def _check_room(self, last: Segment, need: int) -> None:
        most = self._max_size()
        if self._before + last.offset + need > most:
            self._load()  # others may have trimmed
            if self._before + last.offset + need > most:
                raise StoreFull(
                    f"{self.path} has reached its largest size of {most} bytes; nothing was"
                    " written. Let the log be trimmed, drop tables, or open the store with a larger"
                    " max_size"
                )

    def _begin_segment(self, last: Segment) -> Segment:
        """First what is in the old one is made durable: from now on only the new one is synced."""
        self.ends.is_changing = True
        with self._told("nothing was written"), self._syncing, self._locked(1):
            disk.truncate(last.descriptor, last.offset)
            self._sync_segment(last)
            log_segments.create(self.path, last.store, last.end, last.total, last.catalog)
        self.ends.last = last.end
        self.ends.is_changing = False
        self._load()
        return self._segments[-1]

    def _wait(self, end: Position) -> None:
        """Until a position is durable, by whomever."""
        ends = self.ends
        if ends.published >= end:
            return
        with self._syncing, self._locked(1):
            if ends.published >= end:
                return
            # in this order: what was appended is in the last segment, or in one that is synced
            appended, first = ends.appended, ends.last
            self._sync(first)
            self.ends.publish(appended)

    def _sync(self, first: Position) -> None:
        last = self._segments[-1]
        unknown = "it is not known whether this was written"
        with self._told(unknown):
            if last.first == first:
                self._sync_segment(last)
            else:
                with self._looking:
                    self._load()
                    self._sync_segment(self._segments[-1])
        self.ends.count_sync()

    def _sync_segment(self, segment: Segment) -> None:
        """The second lock is held. Who is killed in between leaves the mark of a failure."""
        if self.ends.is_unsure:
            with self._looking:
                segment.walk(self.ends.appended)
                segment.write_again(self.ends.acknowledged() or 0)
        self.ends.is_unsure = True
        disk.sync(segment.descriptor)
        self.ends.is_unsure = False

    @contextmanager
    def _told(self, outcome: str = "nothing was written") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(error, outcome) from error

    def _failed(self, error: OSError, outcome: str) -> StoreError:
        if error.errno in _NO_ROOM:
            return StoreFull(
                f"the disk of {self.path} is full, over a limit or failing; {outcome}. Make room,"
                f" retry ({error.strerror})"
            )
        return StoreError(
            f"{self.path}: {error.strerror}; {outcome}. Check its rights and its disk"
        )

    # ------------------------------------------------------------ trimming

    def remove_trimmed(self) -> None:
        """Files that are below the trim point, which is durable. Who is killed here leaves some to
        the next one.
        """
        trimmed = self._trimmed()
        with self._appending, self._locked(0):
            last = self._last()
            if last.end <= trimmed and last.offset > _AHEAD // 4 and last.end > last.first:
                self._wait(last.end)
                self._begin_segment(last)
        firsts = log_segments.first_positions(self.path)
        for first in set(firsts) - set(log_segments.needed(firsts, trimmed)):
            with suppress(FileNotFoundError):  # another one does the same
                disk.unlink(os.path.join(self.path, log_segments.name_of(first)))
        self._load()


_all: weakref.WeakSet[LogFile] = weakref.WeakSet()
_inherited: list[Holder] = []  # entries of the parent, which a child leaves alone


def _after_fork() -> None:
    for log in list(_all):
        log.after_fork()


os.register_at_fork(after_in_child=_after_fork)
