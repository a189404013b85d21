"""Backups of a database, databases made of them, and room given back.

Only the embedded store is a directory of ours; other stores have ways of their own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.catalog import pins
from belvedere.epochs import lease
from belvedere.errors import StoreError
from belvedere.stores.registry import check_path, embedded_path

if TYPE_CHECKING:
    from belvedere.stores.base import Store
    from belvedere.stores.embedded.backup import Taken
    from belvedere.stores.embedded.compacting import Compacted

PathLike = str | os.PathLike[str]


def backup(store: Store, target: PathLike, base: PathLike | None = None) -> Taken:
    """One cut of the store in a new directory, whatever others do meanwhile.

    `base` is an earlier backup beside the new one, whose unchanged files are linked instead of
    copied.
    """
    from belvedere.stores.embedded import EmbeddedStore

    if not isinstance(store, EmbeddedStore):
        raise _not_ours(store.url, "backed up")
    return store.backup(_path(target), None if base is None else _path(base))


def restore(source: PathLike, target: PathLike) -> None:
    """Make a database in a new directory of a backup.

    It has its own history from here on. Whoever had the lease or held an epoch in the database that
    was backed up does so there, not here.
    """
    from belvedere.stores.embedded.restoring import restore

    restore(Path(_path(source)), Path(_path(target)), _forget_processes)


def _forget_processes(store: Store) -> None:
    lease.clear(store)
    pins.clear(store)


def compact(path: PathLike) -> Compacted:
    """Give room back to the file system; nobody may have the database open."""
    from belvedere.stores.embedded.compacting import compact
    from belvedere.stores.embedded.layout import is_store

    folder = embedded_path(_path(path))
    if folder is None:
        raise _not_ours(_path(path), "compacted")
    if not is_store(folder):
        raise StoreError(f"{folder} is not a Belvedere database: check the path")
    return compact(Path(os.path.realpath(folder)), _clean)


def _clean(store: Store) -> None:
    from belvedere.epochs.coordinator import Coordinator
    from belvedere.epochs.local import LocalRunner

    coordinator = Coordinator(store, LocalRunner(store))
    if not coordinator.acquire():
        raise StoreError(
            "a coordinator keeps the views of this database, or did until 30 s ago on another"
            " machine: stop it, then wait so long"
        )
    try:
        coordinator.clean()
    finally:
        coordinator.release()


def _path(path: PathLike) -> str:
    found = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(found, str) or not found:
        raise StoreError(f"a directory is named by text: pass a str or a Path, not {path!r}")
    return check_path(found)


def _not_ours(url: str, done: str) -> StoreError:
    return StoreError(
        f"{url} cannot be {done} by Belvedere, which does so for databases in a directory only: use"
        " what its own store offers, or belvedere export"
    )
