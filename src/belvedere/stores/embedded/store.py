"""The embedded store: a directory of LMDB environments.

format.json     format version, slot count, the store's id
catalog/        definitions, lease, intents, commits
base/           base rows
base/log/       the change log
slots/000/ ...  state tables
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from belvedere.errors import StoreError
from belvedere.stores.base import (
    BaseTables,
    Capabilities,
    Catalog,
    ForeignTables,
    RowHistory,
    StateTables,
)
from belvedere.stores.closed import Closed
from belvedere.stores.embedded import environment, holder, layout, log, pages, parts, reading
from belvedere.stores.embedded.base_tables import EmbeddedBase
from belvedere.stores.embedded.catalog import EmbeddedCatalog
from belvedere.stores.embedded.environment import Environment
from belvedere.stores.embedded.layout import Format
from belvedere.stores.embedded.log_file import LOCKS, LogFile
from belvedere.stores.embedded.places import BasePlace, Place
from belvedere.stores.embedded.reading import ReadOnly
from belvedere.stores.embedded.state import EmbeddedState

if TYPE_CHECKING:
    from belvedere.stores.embedded.backup import Taken

MAP_SIZE = 64 << 30  # virtual; the files are as large as their content
MAX_SIZE = 1 << 40


class EmbeddedStore:
    """Open it with `EmbeddedStore.open`.

    It can be used by several threads, after a fork, and pickled (by path).
    """

    def __init__(
        self, path: str, found: Format, map_size: int, max_size: int, why_read_only: str = ""
    ) -> None:
        self.path, self.id, slots = path, found.id, found.slots
        self.url = f"belvedere:{path}"
        self._options = {
            "map_size": map_size,
            "max_size": max_size,
            "read_only": bool(why_read_only),
        }
        self.read_only = bool(why_read_only)
        self.capabilities = Capabilities()
        self._environments: list[Environment] = []
        for name in parts.names(slots):
            folder = os.path.join(path, name)
            kind = reading.kind_of(folder) if why_read_only else Environment
            self._environments.append(environment.acquire(folder, map_size, max_size, kind))
        self._make_parts(slots, why_read_only)

    def _make_parts(self, slots: int, why_read_only: str) -> None:
        catalog, base, *state = (
            cast(Environment, ReadOnly(e, why_read_only)) if why_read_only else e
            for e in self._environments
        )
        self._log = LogFile(
            base.path,
            lambda: base.read(log.trim_point),
            lambda: base.max_size,
            lambda: _check_writable(base, why_read_only),
            writable=not why_read_only,
        )
        self._rows = BasePlace(base, self._log)
        tables = EmbeddedBase(self._rows, slots, catalog.number)
        self._parts = EmbeddedCatalog(catalog, [base, *state, self._log]), tables
        self._state = EmbeddedState(state, catalog.number, self._rows)
        self.catalog: Catalog = self._parts[0]
        self.base: BaseTables = tables
        self.state: StateTables = self._state
        self.history: RowHistory | None = tables
        self.foreign: ForeignTables | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        slots: int | None = None,
        map_size: int = MAP_SIZE,
        max_size: int = MAX_SIZE,
        read_only: bool = False,
    ) -> EmbeddedStore:
        """Open the store at `path`, creating it (with `slots` slots) if nothing is there.

        Maps grow from `map_size` to `max_size`.

        A store that cannot be written, because of a mount or of rights, is opened to be read only,
        as if `read_only` were given.
        """
        _check_sizes(slots, map_size, max_size)
        folder = os.path.realpath(path)
        why = _why_read_only(Path(folder), read_only)
        found = layout.current(Path(folder), why) if why else layout.prepare(Path(folder), slots)
        if slots not in (None, found.slots):
            raise StoreError(
                f"{folder} has {found.slots} slots, not {slots}: the number is fixed at creation;"
                " open it without one"
            )
        return cls.of(Path(folder), found, map_size, max_size, why)

    @classmethod
    def of(
        cls,
        folder: Path,
        found: Format,
        map_size: int = MAP_SIZE,
        max_size: int = MAX_SIZE,
        why_read_only: str = "",
    ) -> EmbeddedStore:
        """The store in a directory that has all its parts, whatever its format file says."""
        path = os.path.realpath(folder)
        store = cls(path, found, min(map_size, max_size), max_size, why_read_only)
        try:
            parts.check(path, found.id, store._environments, store._log)
        except BaseException:  # whatever it was, nobody gets this store, so nobody would close it
            store.close()
            raise
        return store

    def backup(self, target: str | os.PathLike[str], base: str | None = None) -> Taken:
        """A copy of the whole store as of one moment in a new directory, whatever others do."""
        from belvedere.stores.embedded import backup

        folder = Path(self.path)
        found = layout.read_format(folder)
        earlier = None if base is None else Path(base)
        return backup.take(folder, found, self._environments, self._log, Path(target), earlier)

    @property
    def places(self) -> Sequence[Place]:
        """All that have runs, with their files."""
        return [self._rows, *self._state.places]

    def look_after(self, deadline: float) -> list[str]:
        self.maintain()
        return [
            f"process {process} was ended: it kept a write lock for more than {deadline:g} s"
            for process in self.end_stuck_holders(deadline)
        ]

    def maintain(self) -> int:
        """Free the reader entries of killed processes, which keep old pages from being reused;
        returns how many there were.
        """
        return sum(each.check_readers() for each in self._environments)

    def rest(self) -> None:
        pages.unmap([each.path for each in self._environments])

    def end_stuck_holders(self, deadline_seconds: float) -> list[int]:
        """Kill processes that have held a write lock of this store for longer; returns their ids
        (rule R10).
        """
        ended = [
            pid
            for each in self._environments
            for pid in holder.end_stuck(each.path, deadline_seconds)
        ]
        for name in LOCKS:
            ended += holder.end_stuck(self._log.path, deadline_seconds, f"holder-{name}")
        return ended

    def close(self) -> None:
        """Idempotent. Environments that another store object of this process uses stay open."""
        with _cache_lock:
            if _cache.get(self.path) is self:
                del _cache[self.path]
        closed: Any = Closed(self.path)
        # Who reads often keeps a part itself, not the store: the part must not answer either,
        # whoever else uses the files.
        self._parts[0]._environment = self._parts[1]._environment = closed
        self.catalog = self.base = self.state = self.history = closed
        self._state.close()
        self._parts[1].close()
        self._log.close()
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
_cache_lock = (
    threading.RLock()
)  # again by the thread that has it: a store that is refused is closed


def open_cached(path: str | os.PathLike[str], **options: Any) -> EmbeddedStore:
    """This process's store at `path`, opened when first asked for and then kept: for workers that
    run many tasks.
    """
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
        found = os.stat(os.path.join(folder, layout.FORMAT_FILE))
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_ctime_ns


def _open_cached(path: str, options: dict[str, Any]) -> EmbeddedStore:
    return open_cached(path, **options)


def _after_fork() -> None:
    global _cache_lock
    # the cached stores themselves stay good: their environments open again
    _cache_lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _check_writable(base: Environment, why_read_only: str) -> None:
    if why_read_only:
        raise StoreError(f"nothing can be written: {why_read_only}")
    if base.replaced:
        raise environment.gone(base.path)


def _why_read_only(folder: Path, wanted: bool) -> str:
    """Why a store is opened to be read only, or "" if it can be written, or is yet to be made."""
    if not isinstance(wanted, bool):
        raise StoreError(f"read_only is {wanted!r}: use True or False")
    try:
        is_store = layout.is_store(str(folder))
        if wanted and not is_store:
            raise StoreError(
                f"{folder} is not a Belvedere store, and to read only, none is made: check the path"
            )
        if not is_store:
            return ""
        slots = layout.read_format(folder).slots
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be opened as a store: {error.strerror or error}"
        ) from error
    return (
        f"{folder} was opened with read_only" if wanted else reading.why_not_writable(folder, slots)
    )


def _check_sizes(slots: int | None, map_size: int, max_size: int) -> None:
    """Before anything is made."""
    for name, value, least, most in (
        ("slots", slots, 1, 999),
        ("map_size", map_size, 1, None),
        ("max_size", max_size, 1, None),
    ):
        if value is None:
            continue
        if (
            not isinstance(value, int)
            or isinstance(value, bool)
            or value < least
            or (most is not None and value > most)
        ):
            raise StoreError(
                f"{name} is {value!r}: use a whole number"
                f" {f'from {least} to {most}' if most else 'of bytes, above 0'}"
            )
