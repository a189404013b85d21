"""Files of captured frames, and discovery: what of them comes next in the log.

The lengths of several files are no atomic cut. So a frame whose regions may have been in other
files before says how long those were when it was written, and it is taken after all that they had.
Everything earlier on the same rows is there: a serial peer delivers it before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from belvedere.errors import StoreError
from belvedere.stores.hbase.frames import FIXED, Head, Kind, head_size, is_whole, read_head
from belvedere.stores.hbase.log_index import Changes, Entry, Loads, Progress, State

ENDING = ".frames"
_GUESS = 4096  # bytes of a head that are read at once
# An entry ends when it has so many operations or bytes: an epoch takes all of it or nothing.
_ENTRY_OPERATIONS, _ENTRY_BYTES = 4096, 1 << 20
_ENTRIES_AT_ONCE = 2000  # cells of one change of the index


class SegmentFiles:
    """Segment files in a directory of a file system that this machine has."""

    def __init__(self, place: str) -> None:
        scheme, colon, path = place.partition("://")
        if colon and scheme != "file":
            raise StoreError(
                f"captured changes in {place} cannot be read from here: mount that file system, and"
                " name the directory by its path"
            )
        self.directory = Path(path if colon else place).absolute()

    @classmethod
    def of(cls, place: str, namespace: str) -> SegmentFiles:
        """Those of a namespace: in the directory of another its marks would be taken for ours."""
        return cls(f"{place.rstrip('/')}/{namespace}")

    @property
    def url(self) -> str:
        """The directory as Hadoop names it, which knows no %20."""
        return f"file://{self.directory}"

    def lengths(self) -> dict[str, int]:
        found = {}
        for path in self.directory.glob(f"*{ENDING}"):
            try:
                found[path.name] = path.stat().st_size
            except FileNotFoundError:
                continue  # trimmed meanwhile
        return found

    def read(self, name: str, begin: int, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        with open(self.directory / name, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, begin)

    def delete(self, name: str) -> None:
        (self.directory / name).unlink(missing_ok=True)

    def room(self) -> tuple[int, int]:
        """Bytes that files take, and the most that they could."""
        used = sum(self.lengths().values())
        return used, used + shutil.disk_usage(self.directory).free


@dataclass(frozen=True, slots=True)
class Seen:
    """A complete frame that is not indexed."""

    begin: int
    head: Head

    @property
    def stop(self) -> int:
        return self.begin + self.head.size


@dataclass
class View:
    """What a listing has shown: lengths, and the frames beyond the index, file by file."""

    lengths: dict[str, int]
    frames: dict[str, list[Seen]]
    # the files that are there by now, looked up when a frame names one that the listing lacks
    relist: Callable[[], dict[str, int]]


def look(files: SegmentFiles, state: State) -> View:
    """List the files, then read heads of frames up to their lengths."""
    lengths = files.lengths()
    frames = {}
    for name in sorted(lengths):
        progress = state.files.get(name, Progress())
        if progress.indexed < lengths[name] and not progress.ended:
            frames[name] = list(_beyond(files, name, progress.indexed, lengths[name]))
    return View(lengths, frames, files.lengths)


def _beyond(files: SegmentFiles, name: str, begin: int, length: int) -> Iterator[Seen]:
    """The complete frames of a file from a byte on.

    The last one may be torn, if a machine has lost what it had not synced: nothing follows it, and
    it was not acknowledged. All before it were synced before the next one was written.
    """
    last: Seen | None = None
    try:
        while (seen := _at(files, name, begin, length)) is not None:
            if last is not None:
                yield last
            last, begin = seen, seen.stop
        if last is not None and _is_whole(files, name, last):
            yield last
    except FileNotFoundError:
        return  # trimmed meanwhile: all of it was indexed


def _at(files: SegmentFiles, name: str, begin: int, length: int) -> Seen | None:
    where = f"the frame at byte {begin:,} of {name}"
    if begin + FIXED > length:
        return None
    data = files.read(name, begin, min(_GUESS, length - begin))
    if not any(data[:FIXED]):
        return None  # room that a machine had given to the file when it lost its power
    size = head_size(memoryview(data), where)
    if size is None or begin + size > length:
        return None
    if size > len(data):
        data = files.read(name, begin, size)
    head = read_head(memoryview(data), where)
    if head is None or begin + head.size > length:
        return None
    return Seen(begin, head)


def _is_whole(files: SegmentFiles, name: str, seen: Seen) -> bool:
    body = files.read(name, seen.begin + seen.head.head_size, seen.head.body_size)
    return is_whole(seen.head, memoryview(body))


@dataclass
class Plan:
    """What a discovery adds to the index."""

    state: State
    view: View
    entries: list[Entry] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)  # frames of each file
    changes: Changes = field(default_factory=Changes)

    def __post_init__(self) -> None:
        self.end = self.state.end
        self._progress: dict[str, Progress] = {}
        self._marks: dict[tuple[str, bytes], int] = {}
        self._loads: dict[str, Loads] = {}
        self._relisted: dict[str, int] | None = None

    def run(self) -> Changes:
        """Take frames while there is one whose predecessors are taken."""
        moved = True
        while moved and len(self.entries) < _ENTRIES_AT_ONCE:
            moved = False
            for name in self.view.frames:
                while (seen := self._next(name)) is not None and self._may_follow(seen):
                    self._take(name, seen)
                    moved = True
                    if len(self.entries) >= _ENTRIES_AT_ONCE:
                        break
        return self._finish()

    def _next(self, name: str) -> Seen | None:
        frames = self.view.frames.get(name, [])
        number = self.taken.get(name, 0)
        return frames[number] if number < len(frames) else None

    def _may_follow(self, seen: Seen) -> bool:
        return all(self._has(file, length) for file, length in seen.head.after)

    def _has(self, file: str, length: int) -> bool:
        """Whether everything is taken that a file had when it was so long."""
        if file in self.view.lengths:
            following = self._next(file)
            is_visible = self.view.lengths[file] >= length
            return is_visible and (following is None or following.stop > length)
        if file in self.state.files:
            return True  # trimmed
        if self._relisted is None:
            self._relisted = self.view.relist()
        return file not in self._relisted  # trimmed long ago, or younger than the listing

    def _take(self, name: str, seen: Seen) -> None:
        self.taken[name] = self.taken.get(name, 0) + 1
        self._progress[name] = Progress(seen.stop, seen.head.kind is Kind.END)
        for row, number in seen.head.marks:
            mark = seen.head.queue, row
            known = max(self.state.marks.get(mark, 0), self._marks.get(mark, 0))
            self._marks[mark] = max(number, known)
        for region in seen.head.regions:
            if region.is_loaded:
                self._count_load(region.table)
        if seen.head.operations:
            self._append(name, seen)

    def _count_load(self, table: str) -> None:
        known = self._loads.get(table) or self.state.loads.get(table, Loads())
        self._loads[table] = Loads(self.end, known.count + 1)

    def _append(self, name: str, seen: Seen) -> None:
        """A new entry, or more of the last one."""
        operations = seen.head.operations
        last = self.entries[-1] if self.entries else None
        if last is not None and last.file == name and last.stop == seen.begin and _is_open(last):
            more = last.operations + operations
            self.entries[-1] = Entry(last.position, name, last.begin, seen.stop, more)
        else:
            self.entries.append(Entry(self.end, name, seen.begin, seen.stop, operations))
        self.end += operations

    def _finish(self) -> Changes:
        for entry in self.entries:
            self.changes.add(entry)
        for name, progress in self._progress.items():
            self.changes.file(name, progress)
        for mark, number in self._marks.items():
            self.changes.mark(mark, number)
        for table, loads in self._loads.items():
            self.changes.loads(table, loads)
        if self.end != self.state.end:
            self.changes.end(self.end)
        return self.changes


def _is_open(entry: Entry) -> bool:
    return entry.operations < _ENTRY_OPERATIONS and entry.size < _ENTRY_BYTES
