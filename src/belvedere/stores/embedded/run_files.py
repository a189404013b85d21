"""The files that hold the sections of a slot's runs.

    EPOCH-WHO.run    sections one behind the other

Sections of some kilobytes stay in the slot's LMDB environment (`run_lists.py`): a small epoch then
waits for the disk once.

A file is written, synced, and then named by a run list; nobody changes it after that. One that no
run list names was left by an attempt that ended, or has been merged away: collecting removes it.
Who has a file mapped goes on reading it.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from belvedere.errors import Damaged, StoreError, StoreFull
from belvedere.libraries import pa
from belvedere.stores.embedded import disk, sections
from belvedere.stores.embedded.runs import SMALL, Batch, Ref, Run, RunRef, is_small, joined
from belvedere.stores.embedded.sections import Section, Source
from belvedere.types import Epoch

ENDING = ".run"
SECTION_ROWS, SECTION_BYTES = 1 << 19, 64 << 20
SMALL_BYTES, SMALL_TOTAL = 16 << 10, 128 << 10  # of a section, and of all of an attempt
OWN_FILE = 1 << 20  # bytes of a section that gets a file of its own: what is dead goes with it
_SHOWN = 32  # bytes of a key in errors
_MOST_MAPPED = 512  # files of a slot
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class RunFiles:
    """The run files of one slot, as this process has them mapped."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._mapped: OrderedDict[str, _Mapped] = OrderedDict()
        self._lock = threading.Lock()
        self.in_flight: set[str] = set()  # that this process is writing
        _all.add(self)

    def after_fork(self) -> None:
        """In the child: another thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def open_runs(
        self, refs: Iterable[RunRef], small: Mapping[str, bytes] | None = None
    ) -> tuple[Run, ...]:
        """All files are mapped now: who removes one does no harm any more. Raises
        FileNotFoundError if one is gone already. `small` are the sections that need no file.
        """
        return tuple(Run(run, self._held(run, small or {}).section) for run in refs)

    def _held(self, run: RunRef, small: Mapping[str, bytes]) -> _Held:
        held: dict[str, _Mapped | _Small] = {}
        for ref in run:
            if not is_small(ref.file):
                held[ref.file] = self._map(ref.file)
            elif ref.file in small:
                held[ref.file] = _Small(small[ref.file], self.folder)
            else:
                raise FileNotFoundError(errno.ENOENT, "no such section", ref.file)
        return _Held(held)

    def _map(self, name: str) -> _Mapped:
        with self._lock:
            found = self._mapped.get(name)
            if found is None:
                self._forget_removed()
                found = self._mapped[name] = _Mapped(os.path.join(self.folder, name))
            self._mapped.move_to_end(name)
            return found

    def _forget_removed(self) -> None:
        """Files that are gone take room as long as they are mapped."""
        for name in [n for n in self._mapped if not self.has(n)]:
            del self._mapped[name]
        while len(self._mapped) >= _MOST_MAPPED:
            self._mapped.popitem(last=False)

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.folder, name))

    def size(self, name: str) -> int:
        return os.stat(os.path.join(self.folder, name)).st_size

    def names(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if name.endswith(ENDING)]

    def remove(self, name: str) -> None:
        with self._lock:
            self._mapped.pop(name, None)
        try:
            disk.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            return  # somebody else was first

    def used_bytes(self) -> int:
        total = 0
        for name in self.names():
            try:
                total += os.stat(os.path.join(self.folder, name)).st_size
            except FileNotFoundError:
                continue
        return total


_all: weakref.WeakSet[RunFiles] = weakref.WeakSet()


def _after_fork() -> None:
    for files in list(_all):
        files.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def epoch_of(name: str) -> Epoch:
    """Of the attempt that has written a file, or the last one that a merge has seen."""
    return int(name.partition("-")[0])


@dataclass(frozen=True, slots=True)
class _Held:
    """What the sections of a run are in, so that it stays."""

    by_name: dict[str, _Mapped | _Small]

    def section(self, ref: Ref) -> Section:
        return self.by_name[ref.file].section(ref)


def _checked(source: Source, ref: Ref, where: str) -> Section:
    try:
        found = Section(source, ref.offset, ref.size, where)
    except Damaged as error:
        raise Damaged(f"{error.what}; its keys begin with {ref.first[:_SHOWN].hex()}") from error
    if found.rows != ref.rows:
        raise Damaged(f"{where} has {found.rows:,} records, not {ref.rows:,}")
    return found


@dataclass(frozen=True, slots=True)
class _Small:
    """A section that is in no file."""

    data: bytes
    folder: str

    def section(self, ref: Ref) -> Section:
        return _checked(self.data, ref, f"{ref.file} in {self.folder}")


class _Mapped:
    """One file; its sections as they are asked for, each checked once by this process."""

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise Damaged(f"{path} is empty")
            self._data = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
        self._sections: dict[int, Section] = {}

    def section(self, ref: Ref) -> Section:
        found = self._sections.get(ref.offset)
        if found is None:
            where = f"the section at byte {ref.offset:,} of {self._path}"
            found = self._sections[ref.offset] = _checked(self._data, ref, where)
        return found


class RunWriter:
    """Files of one attempt; `finish` makes them durable, `abandon` removes them."""

    def __init__(self, files: RunFiles, epoch: Epoch, small: int = 0) -> None:
        """`small`: sections up to so many bytes are left to the caller to keep."""
        self._files, self._epoch, self._most_small = files, epoch, small
        self.small: dict[str, bytes] = {}
        self._shared: _File | None = None  # for small sections
        self._all: list[_File] = []

    @property
    def names(self) -> list[str]:
        return [file.name for file in self._all]

    def add(self, table: int, batches: Iterable[Batch]) -> RunRef:
        """One run of sorted batches; nothing if they are empty."""
        refs, last = [], None
        for keys, values in _sized(batches):
            first = _between(last, keys[0].as_py())
            refs.append(self._add_section(table, keys, values, first))
            last = keys[len(keys) - 1].as_py()
        return tuple(refs)

    def _add_section(
        self, table: int, keys: pa.BinaryArray, values: pa.BinaryArray, first: bytes
    ) -> Ref:
        parts = sections.encode(table, keys, values)
        size = sum(map(len, parts))
        if size <= self._most_small and size + self._small_bytes() <= SMALL_TOTAL:
            name = f"{SMALL}{uuid.uuid4().hex[:12]}"
            self.small[name] = b"".join(parts)
            return Ref(name, 0, size, len(keys), first)
        file = self._file_for(size)
        return Ref(file.name, file.write(parts), size, len(keys), first)

    def _small_bytes(self) -> int:
        return sum(map(len, self.small.values()))

    def _file_for(self, size: int) -> _File:
        if size >= OWN_FILE:
            return self._new()
        if self._shared is None:
            self._shared = self._new()
        return self._shared

    def _new(self) -> _File:
        file = _File(self._files.folder, f"{self._epoch:012}-{uuid.uuid4().hex[:12]}{ENDING}")
        self._files.in_flight.add(file.name)
        self._all.append(file)
        return file

    def finish(self) -> None:
        for file in self._all:
            file.finish()
        if self._all:
            with _no_room(self._files.folder):
                disk.sync_folder(self._files.folder)

    def keep_if(self, name: Callable[[], bool]) -> bool:
        """Name the files, and remove them if that was not done, or raised; whether it was done.

        A file that is gone means that others have merged what was built upon.
        """
        try:
            is_named = name()
        except FileNotFoundError:
            is_named = False
        except BaseException:  # whatever it was, nothing is named
            self.abandon()
            raise
        if is_named:
            self.done()
        else:
            self.abandon()
        return is_named

    def done(self) -> None:
        """They are named now."""
        self._files.in_flight.difference_update(self.names)

    def abandon(self) -> None:
        for file in self._all:
            file.close()
            self._files.remove(file.name)
        self.done()


class _File:
    def __init__(self, folder: str, name: str) -> None:
        self.name, self._path, self._size = name, os.path.join(folder, name), 0
        with _no_room(self._path):
            self._fd = disk.create_new(self._path)

    def write(self, parts: list[bytes]) -> int:
        """Where it begins."""
        start = self._size
        with _no_room(self._path):
            disk.write(self._fd, parts, start)
        self._size += sum(map(len, parts))
        return start

    def finish(self) -> None:
        with _no_room(self._path):
            disk.sync(self._fd)
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _no_room:
    """A disk that is full is an error of the store."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in _NO_ROOM:
            raise StoreFull(
                f"the disk of {self._path} is full or over a limit; nothing was written. Make room,"
                f" retry ({error.strerror})"
            ) from error
        raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error


def _between(last: bytes | None, first: bytes) -> bytes:
    """The shortest beginning of a key that is behind the key before it, if there is one."""
    return b"" if last is None else first[: sections.common_length(last, first) + 1]


def _sized(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same records in batches that are as large as sections should be."""
    waiting: list[Batch] = []
    rows = size = 0
    for keys, values in batches:
        for start in range(0, len(keys), SECTION_ROWS):
            part = keys.slice(start, SECTION_ROWS), values.slice(start, SECTION_ROWS)
            more = sum(column.nbytes for column in part)
            if waiting and (rows + len(part[0]) > SECTION_ROWS or size + more > SECTION_BYTES):
                yield joined(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(part)
            rows, size = rows + len(part[0]), size + more
    if rows:
        yield joined(waiting)
