"""A disk that loses its power: what was not synced is kept or forgotten, page by page and name by
name.

It stands where the store calls the file system (`stores/embedded/disk.py`) for the log and for
runs, and does what it is told, so that the store works; beside that it knows what would be left.
LMDB is taken as it is: it syncs before it counts, and keeps that promise. Shared memory (`ends`)
reaches the disk at any time: some earlier content of it is left, or none.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from itertools import count
from pathlib import Path

import pytest

from belvedere.stores.embedded import disk
from belvedere.stores.embedded.log_ends import ENDS

PAGE = 4096
FOLDERS = ("base/log", "base", "slots/*")
ENDINGS = (".log", ".new", ".run")


class PowerLost(Exception):
    pass


class LosingDisk:
    """Power is lost after `calls` calls; what is left is then at `target`."""

    def __init__(self, store: Path, seed: random.Random, calls: int, target: Path) -> None:
        self.store, self._seed = Path(os.path.realpath(store)), seed
        self._left, self._target = calls, target
        self.failing = ""  # the call that fails: what it should have kept is given up
        self._ends = [b""]
        self._numbers = count()  # of files: an inode is used again
        self._ids: dict[int, int] = {}  # of files, by inode
        self._durable: dict[int, bytes] = {}  # content
        self._pending: dict[int, list[tuple[int, bytes | None]]] = {}  # writes; None: cut off here
        self._names: dict[Path, int] = {}
        self._renames: list[tuple[Path, int | None]] = []
        for path in self._files(self.store):
            self._names[path] = self._new(path.stat().st_ino)
            self._durable[self._names[path]] = path.read_bytes()

    def _files(self, store: Path) -> list[Path]:
        return [
            path
            for pattern in FOLDERS
            for path in store.glob(f"{pattern}/*")
            if path.suffix in ENDINGS
        ]

    def install(self, patch: pytest.MonkeyPatch) -> None:
        self._real = {name: getattr(disk, name) for name in _CALLS}
        for name in _CALLS:
            patch.setattr(disk, name, getattr(self, name))

    def _step(self) -> None:
        ends = self.store / "base/log" / ENDS
        self._ends.append(ends.read_bytes() if ends.exists() else b"")
        self._left -= 1
        if self._left == -1:
            self.leave(self._target)
        if self._left < 0:
            raise PowerLost

    def _new(self, inode: int) -> int:
        self._ids[inode] = number = next(self._numbers)
        self._durable[number], self._pending[number] = b"", []
        return number

    def _of(self, descriptor: int) -> list[tuple[int, bytes | None]]:
        return self._pending[self._ids[os.fstat(descriptor).st_ino]]

    def write(self, descriptor: int, parts: list[bytes], offset: int) -> None:
        content = b"".join(parts)
        at = 0
        while at < len(content):  # pages reach the disk one by one
            size = PAGE - (offset + at) % PAGE
            self._of(descriptor).append((offset + at, content[at : at + size]))
            at += size
        self._step()
        self._real["write"](descriptor, parts, offset)

    def truncate(self, descriptor: int, size: int) -> None:
        self._of(descriptor).append((size, None))
        self._step()
        self._real["truncate"](descriptor, size)

    def sync(self, descriptor: int) -> None:
        self._step()
        number = self._ids[os.fstat(descriptor).st_ino]
        pending, self._pending[number] = self._pending[number], []
        self._fail_if("sync")
        self._real["sync"](descriptor)
        self._durable[number] = _written(self._durable[number], pending)
        self._step()

    def _fail_if(self, call: str) -> None:
        if self.failing == call:
            raise OSError(errno.EIO, "Input/output error")

    def create(self, path: str) -> int:
        return self._created(path, "create")

    def create_new(self, path: str) -> int:
        return self._created(path, "create_new")

    def _created(self, path: str, how: str) -> int:
        descriptor: int = self._real[how](path)
        self._renames.append((Path(path), self._new(os.fstat(descriptor).st_ino)))
        self._step()
        return descriptor

    def rename(self, path: str, new: str) -> None:
        self._renames.append((Path(new), self._ids[os.stat(path).st_ino]))
        self._renames.append((Path(path), None))
        self._step()
        self._real["rename"](path, new)

    def unlink(self, path: str) -> None:
        self._renames.append((Path(path), None))
        self._step()
        self._real["unlink"](path)

    def sync_folder(self, path: str) -> None:
        self._step()
        self._fail_if("sync_folder")
        self._real["sync_folder"](path)
        for name, number in self._renames:
            if name.parent == Path(path):
                self._name(name, number)
        self._renames = [each for each in self._renames if each[0].parent != Path(path)]
        self._step()

    def _name(self, path: Path, number: int | None) -> None:
        if number is None:
            self._names.pop(path, None)
        else:
            self._names[path] = number

    # ------------------------------------------------------------ what is left

    def leave(self, target: Path) -> None:
        """The directory of the store as it is found when power is back."""
        shutil.copytree(self.store, target)
        for path in self._files(target):
            path.unlink()
        for name, number in self._renames:
            if self._seed.random() < 0.5:
                self._name(name, number)
        for name, number in self._names.items():
            (target / name.relative_to(self.store)).write_bytes(self._content(number))
        ends = self._seed.choice(self._ends)
        (target / "base/log" / ENDS).unlink(missing_ok=True)
        if ends:
            (target / "base/log" / ENDS).write_bytes(ends)

    def _content(self, number: int) -> bytes:
        kept = self._seed.choice([0.0, 0.5, 1.0])
        some = [each for each in self._pending[number] if self._seed.random() < kept]
        return _written(self._durable[number], some)


def _written(content: bytes, pieces: list[tuple[int, bytes | None]]) -> bytes:
    found = bytearray(content)
    for offset, piece in pieces:
        if piece is None:
            del found[offset:]
            continue
        found.extend(bytes(max(offset - len(found), 0)))
        found[offset : offset + len(piece)] = piece
    return bytes(found)


_CALLS = (
    "write",
    "sync",
    "truncate",
    "create",
    "create_new",
    "rename",
    "unlink",
    "sync_folder",
)
