"""A store made of a backup.

It gets an id of its own. From here on it has another history than the store that was backed up, and
than other stores that are made of the same backup: with an id of their own, parts of one are never
taken for parts of the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import lmdb

from belvedere.errors import StoreError
from belvedere.stores.embedded import backup, copies, layout, log_copies, parts
from belvedere.stores.embedded.backup import Listed
from belvedere.stores.embedded.environment import translated
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.layout import FORMAT, FORMAT_FILE, RESTORE_BEGUN, Format
from belvedere.stores.embedded.log_segments import FOLDER

if TYPE_CHECKING:
    from belvedere.stores.embedded.store import EmbeddedStore

_ROOM = 1 << 20  # bytes for a mark


def restore(source: Path, target: Path, finish: Callable[[EmbeddedStore], None]) -> None:
    """Make a store in a new directory; `finish` may change it before it counts."""
    layout.check_free(target, source)
    listed = backup.read(source)
    if listed.format.version != FORMAT:
        raise StoreError(
            f"{source} has format {listed.format.version}, this version of Belvedere restores"
            f" format {FORMAT}: restore it with the version that wrote it"
        )
    _check_files(source, listed)
    made = Format(FORMAT, listed.format.slots, layout.new_id())
    with copies.new_folder(target, RESTORE_BEGUN, FORMAT_FILE):
        _bring(source, target, listed)
        for part in parts.names(made.slots):
            _claim(target / part, made.id, part)
        log_copies.claim(target / "base", made.id)
        _finish(target, made, finish)
        (target / RESTORE_BEGUN).write_bytes(layout.to_bytes(made))


def _check_files(source: Path, listed: Listed) -> None:
    """Before anything is made."""
    needed = {f"{part}/{DATA}" for part in parts.names(listed.format.slots)}
    if not needed <= set(listed.checksums) <= set(listed.sizes):
        raise StoreError(f"{source / layout.BACKUP} does not list all parts: use another backup")
    for path, size in listed.sizes.items():
        file = source / path
        found = file.stat().st_size if file.is_file() else None
        if found is None:
            raise StoreError(f"{file} is missing, this backup is not whole: use another one")
        if found != size:
            raise StoreError(
                f"{file} has {found:,} bytes and should have {size:,}, this backup is damaged: use"
                " another one"
            )


def _bring(source: Path, target: Path, listed: Listed) -> None:
    """Runs are linked if that is possible; what will be written to is always a copy."""
    for part in parts.names(listed.format.slots):
        (target / part).mkdir(parents=True)
    (target / "base" / FOLDER).mkdir()
    for path in listed.sizes:
        wanted = listed.checksums.get(path)
        if wanted is not None or not copies.link(source / path, target / path):
            copies.copy(source / path, target / path)
        if wanted is not None and copies.checksum(target / path) != wanted:
            raise StoreError(
                f"{source / path} is damaged, its checksum is wrong: use another backup"
            )


def _claim(path: Path, store: str, part: str) -> None:
    size = os.stat(path / DATA).st_size
    try:
        with (
            lmdb.open(str(path), map_size=size + _ROOM) as environment,
            environment.begin(write=True) as transaction,
        ):
            parts.claim(transaction, store, part)
    except lmdb.Error as error:
        raise translated(str(path), error) from error


def _finish(target: Path, made: Format, finish: Callable[[EmbeddedStore], None]) -> None:
    from belvedere.stores.embedded.store import EmbeddedStore

    with EmbeddedStore.of(target, made, layout.SMALL_MAP) as store:
        finish(store)
