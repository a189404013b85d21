"""The embedded store: a directory of LMDB environments.

format.json     format version and slot count
catalog/        definitions, lease, intents, commits
base/           base rows and the change log
slots/000/ ...  state tables
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.base import BaseTables, Catalog, StateTables
from belvedere.stores.closed import Closed
from belvedere.stores.embedded import environment, holder, pages
from belvedere.stores.embedded.base_tables import EmbeddedBase
from belvedere.stores.embedded.catalog import EmbeddedCatalog
from belvedere.stores.embedded.environment import Environment
from belvedere.stores.embedded.state import EmbeddedState

FORMAT = 2
_FORMAT_FILE = "format.json"
_NEW_FORMAT_FILE = "format.json.new"
MAP_SIZE = 64 << 30  # virtual; the files are as large as their content
MAX_SIZE = 1 << 40


class EmbeddedStore:
    """Open it with `EmbeddedStore.open`. It can be used by several threads, after a fork, and pickled (by path)."""

    def __init__(self, path: str, slots: int, map_size: int, max_size: int) -> None:
        self.path = path
        self.url = f"belvedere:{path}"
        self._options = {"map_size": map_size, "max_size": max_size}
        folders = [os.path.join(path, name) for name in ("catalog", "base", *(f"slots/{slot:03}" for slot in range(slots)))]
        self._environments: list[Environment] = [environment.acquire(folder, map_size, max_size) for folder in folders]
        self._parts = EmbeddedCatalog(self._environments[0]), EmbeddedBase(self._environments[1])
        self.catalog: Catalog = self._parts[0]
        self.base: BaseTables = self._parts[1]
        self.state: StateTables = EmbeddedState(self._environments[2:])

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], slots: int | None = None, map_size: int = MAP_SIZE, max_size: int = MAX_SIZE
    ) -> EmbeddedStore:
        """Open the store at `path`, creating it (with `slots` slots) if nothing is there. Maps grow from `map_size` to `max_size`."""
        _check_sizes(slots, map_size, max_size)
        folder = os.path.realpath(path)
        return cls(folder, _slots(Path(folder), slots), min(map_size, max_size), max_size)

    def maintain(self) -> int:
        """Free the reader entries of killed processes, which keep old pages from being reused; returns how many there were."""
        return sum(each.check_readers() for each in self._environments)

    def rest(self) -> None:
        pages.unmap([each.path for each in self._environments])

    def end_stuck_holders(self, deadline_seconds: float) -> list[int]:
        """Kill processes that have held a write lock of this store for longer; returns their ids (rule R10)."""
        return [pid for each in self._environments for pid in holder.end_stuck(each.path, deadline_seconds)]

    def close(self) -> None:
        """Idempotent. Environments that another store object of this process uses stay open."""
        with _cache_lock:
            if _cache.get(self.path) is self:
                del _cache[self.path]
        closed: Any = Closed(self.path)
        # Who reads often keeps a part itself, not the store: the part must not answer either, whoever else uses the files.
        self._parts[0]._environment = self._parts[1]._environment = closed
        self.catalog = self.base = self.state = closed
        environments, self._environments = self._environments, []
        for each in environments:
            environment.release(each)

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_cached, (self.path, self._options)


_cache: dict[str, EmbeddedStore] = {}
_cached_as: dict[str, tuple[int, int]] = {}  # of the format file when the store was opened
_cache_lock = threading.Lock()


def open_cached(path: str | os.PathLike[str], **options: Any) -> EmbeddedStore:
    """This process's store at `path`, opened when first asked for and then kept: for workers that run many tasks."""
    folder = os.path.realpath(path)
    with _cache_lock:
        found = _cache.get(folder)
    if found is not None and _identity(folder) != _cached_as.get(folder):
        found.close()  # the directory was removed and made anew: ours are the files of the old one
    with _cache_lock:
        if folder not in _cache:
            _cache[folder] = EmbeddedStore.open(folder, **options)
            _cached_as[folder] = _identity(folder)
        return _cache[folder]


def _identity(folder: str) -> tuple[int, int]:
    """Of the format file; a new file may get the inode of a removed one."""
    try:
        found = os.stat(os.path.join(folder, _FORMAT_FILE))
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_ctime_ns


def _open_cached(path: str, options: dict[str, Any]) -> EmbeddedStore:
    return open_cached(path, **options)


def _after_fork() -> None:
    global _cache_lock
    _cache_lock = threading.Lock()  # the cached stores themselves stay good: their environments open again


os.register_at_fork(after_in_child=_after_fork)


def _check_sizes(slots: int | None, map_size: int, max_size: int) -> None:
    """Before anything is made."""
    for name, value, least, most in (("slots", slots, 1, 999), ("map_size", map_size, 1, None), ("max_size", max_size, 1, None)):
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
            raise StoreError(f"{name} is {value!r}: use a whole number {f'from {least} to {most}' if most else 'of bytes, above 0'}")


def _slots(folder: Path, wanted: int | None) -> int:
    """The slot count of the store in `folder`, after making it a store if it is empty or missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if not (folder / _FORMAT_FILE).exists():
                _create(folder, max(2, min(os.cpu_count() or 1, 8)) if wanted is None else wanted)
            slots = _read_format(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be opened as a store: {error.strerror or error}") from error
    if wanted not in (None, slots):
        raise StoreError(f"{folder} has {slots} slots, not {wanted}: the number is fixed at creation; open it without one")
    return slots


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes may create one store at the same time; the directory itself is the lock, so no file is left behind."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _create(folder: Path, slots: int) -> None:
    others = {entry.name for entry in folder.iterdir()} - {_NEW_FORMAT_FILE}  # which a crash here leaves behind
    if others:
        raise StoreError(f"{folder} is not empty and not a Belvedere store (it has {min(others)!r}): choose an empty or new directory")
    new = folder / _NEW_FORMAT_FILE
    with new.open("w", encoding="utf-8") as file:
        json.dump({"belvedere": "embedded store", "format": FORMAT, "slots": slots}, file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(folder / _FORMAT_FILE)
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _read_format(folder: Path) -> int:
    try:
        content = json.loads((folder / _FORMAT_FILE).read_text(encoding="utf-8"))
        version, slots = int(content["format"]), int(content["slots"])
        if slots < 1:
            raise ValueError(f"{slots} slots")
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / _FORMAT_FILE} is damaged ({error}): restore it from a backup") from error
    if version != FORMAT:
        raise StoreError(f"{folder} has format {version}, this version of Belvedere reads format {FORMAT}: use the version that wrote it")
    return slots
