"""The directory of a store: how it is made, brought to a new format, and found again after a crash
in the middle of either.

    format.json          format version, slot count, the store's id; it is there when all parts are
    format.json.new      the same, while parts are being made or marked

Format 2 had no ids, and its environments were made when they were first used.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from belvedere.errors import StoreError
from belvedere.stores.embedded import files, parts
from belvedere.stores.embedded.environment import translated
from belvedere.stores.embedded.files import DATA, RESTORE

FORMAT = 3
FORMAT_FILE = "format.json"
_NEW = "format.json.new"
_ROOM = 1 << 20  # bytes for a mark
_EPOCHS = 4  # format 2: whoever had committed more of them had opened all slots


@dataclass(frozen=True, slots=True)
class Format:
    version: int
    slots: int
    id: str  # "" in format 2


def is_store(path: str) -> bool:
    """Whether a directory is a store, or was one until parts of it were lost."""
    return (Path(path) / FORMAT_FILE).is_file()


def prepare(folder: Path, wanted: int | None) -> Format:
    """The format of the store in `folder`, after making it a store if it is empty or missing, and
    of this format if it is of the last.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            if not (folder / FORMAT_FILE).exists():
                _create(folder, max(2, min(os.cpu_count() or 1, 8)) if wanted is None else wanted)
            found = read_format(folder)
            if found.version < FORMAT:
                found = _migrate(folder, found.slots)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be opened as a store: {error.strerror or error}"
        ) from error
    return found


def read_format(folder: Path) -> Format:
    try:
        found = _parsed((folder / FORMAT_FILE).read_bytes())
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / FORMAT_FILE} is damaged ({error}). {RESTORE}") from error
    if found.version not in (2, FORMAT):
        other = (
            f"{folder} has format {found.version}, this version of Belvedere reads formats 2 and"
            f" {FORMAT}"
        )
        raise StoreError(f"{other}: use the version that wrote it")
    return found


def _parsed(content: bytes) -> Format:
    found = json.loads(content)
    version, slots = int(found["format"]), int(found["slots"])
    if not 1 <= slots <= 999:
        raise ValueError(f"{slots} slots")
    return Format(version, slots, str(found["id"]) if version == FORMAT else "")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes may create one store at the same time; the directory itself is the lock, so no
    file is left behind.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _create(folder: Path, slots: int) -> None:
    others = {entry.name for entry in folder.iterdir()} - {_NEW}
    ours = {"catalog", "base", "slots"}
    begun = _begun(folder)
    if others and others <= ours and begun is None:
        raise StoreError(
            f"{folder / FORMAT_FILE} is missing, a part of this store is lost. {RESTORE}"
        )
    if others - ours:
        strange = min(others - ours)
        raise StoreError(
            f"{folder} is not empty and not a Belvedere store (it has {strange!r}): choose an empty"
            " or new directory"
        )
    made = begun or _begin(folder, slots)
    for part in parts.names(made.slots):
        _make(folder / part, made.id, part, fresh=True)
    _publish(folder)


def _begun(folder: Path) -> Format | None:
    """What a crash left behind: parts may have been made for it."""
    try:
        return _parsed((folder / _NEW).read_bytes())
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # none, or a half one: it is whole on disk before a part is made
        return None


def _begin(folder: Path, slots: int) -> Format:
    made = Format(FORMAT, slots, uuid.uuid4().hex)
    with (folder / _NEW).open("w", encoding="utf-8") as file:
        json.dump(
            {"belvedere": "embedded store", "format": FORMAT, "slots": slots, "id": made.id}, file
        )
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    return made


def _publish(folder: Path) -> None:
    for made in (folder / "slots", folder):
        _sync(made)
    (folder / _NEW).rename(folder / FORMAT_FILE)
    _sync(folder)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _make(path: Path, store: str, part: str, fresh: bool) -> None:
    """Mark an environment as a part of a store, after making it if it is a fresh one.

    Once more is no harm.
    """
    path.mkdir(parents=True, exist_ok=True)
    if not fresh:
        files.check_whole(str(path))
    size = (path / DATA).stat().st_size if (path / DATA).exists() else 0
    try:
        with (
            lmdb.open(str(path), map_size=size + _ROOM) as environment,
            environment.begin(write=True) as transaction,
        ):
            found = parts.owner(transaction)
            if found not in (None, f"{store} {part}") or (
                found is None and fresh and not parts.is_blank(transaction)
            ):
                raise StoreError(f"{path} has content that this store did not write. {RESTORE}")
            if found is None:
                parts.claim(transaction, store, part)
    except lmdb.Error as error:
        raise translated(str(path), error) from error
    _sync(path)


def _migrate(folder: Path, slots: int) -> Format:
    """From format 2. All parts must be there that were in use."""
    missing = [part for part in parts.names(slots) if not (folder / part / DATA).exists()]
    if len(missing) <= slots + 1 and (lost := _lost(folder, missing)):
        raise StoreError(f"{folder / lost} is missing, a part of this store is lost. {RESTORE}")
    made = _begun(folder) or _begin(folder, slots)
    for part in parts.names(slots):
        _make(folder / part, made.id, part, fresh=part in missing)
    _publish(folder)
    return made


def _lost(folder: Path, missing: list[str]) -> str | None:
    """Of parts that are not there one that had content.

    Epochs that were committed tell what must have been in use.
    """
    if "catalog" in missing:
        return "catalog"
    epochs = _committed(folder / "catalog")
    if "base" in missing and epochs:
        return "base"
    return next((part for part in missing if part != "base" and epochs > _EPOCHS), None)


def _committed(path: Path) -> int:
    """How many manifests of epochs a catalog has, as far as they matter here."""
    files.check_whole(str(path))
    try:
        with (
            lmdb.open(str(path), map_size=_ROOM, readonly=True) as environment,
            environment.begin() as transaction,
        ):
            cursor = transaction.cursor()
            keys = (
                cursor.iternext(keys=True, values=False)
                if cursor.set_range(b"commit/")
                else iter(())
            )
            return sum(
                1
                for _, key in zip(range(_EPOCHS + 1), keys, strict=False)
                if key.startswith(b"commit/")
            )
    except lmdb.Error as error:
        raise translated(str(path), error) from error
