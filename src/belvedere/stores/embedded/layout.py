"""The directory of a store: how it is made, brought to a new format, and found again after a crash
in the middle of either.

    format.json          format version, slot count, the store's id, a checksum of these; it is
                         there when all parts are
    format.json.new      the same, while parts are being made or marked
    format.json.restored   while they are brought from a backup
    backup.json          in a backup, which is no store yet (`backup.py`)

Format 2 had no ids, and its environments were made when they were first used. Formats 2 and 3 kept
state tables as records in LMDB (`older_slots.py`). Formats up to 4 had no checksums here and in
LMDB's values (`older_values.py`), and base rows in LMDB (`older_base.py`). Formats up to 5 had the
log in LMDB (`older_log.py`).
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
from shlex import quote
from typing import Any
from zlib import crc32

import lmdb

from belvedere.errors import StoreError
from belvedere.stores.embedded import files, older_base, older_log, older_slots, older_values, parts
from belvedere.stores.embedded.environment import is_open, translated
from belvedere.stores.embedded.files import DATA, LOCK, RESTORE

FORMAT = 6
_OLDEST = 2
_WITH_CHECKSUM = 5
FORMAT_FILE = "format.json"
_NEW = "format.json.new"
BACKUP, BACKUP_BEGUN = "backup.json", "backup.json.new"
RESTORE_BEGUN = "format.json.restored"  # its end is that it becomes the format file
_ROOM = 1 << 20  # bytes for a mark
SMALL_MAP = 64 << 20  # it grows: for who writes little, and does not know how much a user allows
_EPOCHS = 4  # format 2: whoever had committed more of them had opened all slots


@dataclass(frozen=True, slots=True)
class Format:
    version: int
    slots: int
    id: str  # "" in format 2


def is_store(path: str) -> bool:
    """Whether a directory is a store, or was one until parts of it were lost."""
    folder = Path(path)
    if (folder / FORMAT_FILE).is_file():
        return True
    check_no_backup(folder)
    return False


def check_no_backup(folder: Path) -> None:
    """Raise if a directory will be a store only when it is restored, or is a half one."""
    if (folder / BACKUP).exists():
        raise StoreError(
            f"{folder} is a backup: make a database of it with belvedere restore"
            f" {quote(str(folder))} NEW"
        )
    if (folder / BACKUP_BEGUN).exists():
        raise StoreError(
            f"{folder} is a backup that was interrupted, or is under way: use another one"
        )
    if (folder / RESTORE_BEGUN).exists() and not (folder / FORMAT_FILE).exists():
        raise StoreError(
            f"{folder} is being restored from a backup, or that was interrupted: remove it, and"
            " restore again"
        )


def prepare(folder: Path, wanted: int | None) -> Format:
    """The format of the store in `folder`, after making it a store if it is empty or missing, and
    of this format if it is of an older one.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            check_no_backup(folder)
            if not (folder / FORMAT_FILE).exists():
                _create(folder, max(2, min(os.cpu_count() or 1, 8)) if wanted is None else wanted)
            found = read_format(folder)
            if found.version < FORMAT:
                found = _migrate(folder, found)
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
    if not _OLDEST <= found.version <= FORMAT:
        other = (
            f"{folder} has format {found.version}, this version of Belvedere reads formats"
            f" {_OLDEST} to {FORMAT}"
        )
        raise StoreError(f"{other}: use the version that wrote it")
    return found


def current(folder: Path, why: str) -> Format:
    """The format of a store that is only read, because of `why`."""
    found = read_format(folder)
    if found.version < FORMAT:
        raise StoreError(
            f"{folder} has format {found.version}, which is brought to format {FORMAT} when it is"
            f" opened to be written: do that once ({why})"
        )
    return found


def check_free(target: Path, source: Path) -> None:
    """Raise if a new directory would be inside of a database or a backup, or around `source`."""
    place = target.resolve()
    for above in (place, *place.parents):
        if any((above / name).exists() for name in (FORMAT_FILE, _NEW, BACKUP, BACKUP_BEGUN)):
            raise StoreError(
                f"{target} is, or is inside of, a database or a backup: choose a new directory"
                " elsewhere"
            )
    if source.resolve().is_relative_to(place):
        raise StoreError(f"{source} is inside of {target}: choose a new directory elsewhere")


def _parsed(content: bytes) -> Format:
    found = json.loads(content)
    version, slots = int(found["format"]), int(found["slots"])
    if not 1 <= slots <= 999:
        raise ValueError(f"{slots} slots")
    checksum = found.pop("checksum", None)
    right = _checksum(found) if version >= _WITH_CHECKSUM else None
    if version <= FORMAT and checksum != right:  # a newer one may have another kind
        raise ValueError("its checksum is wrong")
    return Format(version, slots, str(found["id"]) if _OLDEST < version <= FORMAT else "")


def _checksum(content: dict[str, Any]) -> str:
    return f"{crc32(json.dumps(content).encode()):08x}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
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
    older_log.begin(folder / "base", made.id)
    _publish(folder)


def _begun(folder: Path) -> Format | None:
    """What a crash left behind: parts may have been made for it."""
    try:
        return _parsed((folder / _NEW).read_bytes())
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # none, or a half one: it is whole on disk before a part is made
        return None


def new_id() -> str:
    return uuid.uuid4().hex


def to_bytes(made: Format) -> bytes:
    """What a format file says."""
    said = {"format": made.version, "slots": made.slots, "id": made.id}
    content = {"belvedere": "embedded store", **said}
    return json.dumps(content | {"checksum": _checksum(content)}).encode()


def _begin(folder: Path, slots: int, known_id: str = "") -> Format:
    made = Format(FORMAT, slots, known_id or new_id())
    with (folder / _NEW).open("wb") as file:
        file.write(to_bytes(made))
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


def _migrate(folder: Path, found: Format) -> Format:
    """From an older format. All parts must be there that were in use, and no process may have the
    store open: it would go on as before.
    """
    names = parts.names(found.slots)
    missing = [part for part in names if not (folder / part / DATA).exists()]
    if len(missing) <= found.slots + 1 and (lost := _lost(folder, missing)):
        raise StoreError(f"{folder / lost} is missing, a part of this store is lost. {RESTORE}")
    why = (
        "has an older format, and other processes have it open: stop them, then open it once alone"
    )
    for part in names:
        check_unused(folder / part, f"{folder} {why}")
    made = _begun(folder) or _begin(folder, found.slots, found.id)
    for part in names:
        _make(folder / part, made.id, part, fresh=part in missing)
    older_values.convert(str(folder), found.slots)  # first: the others read what is sealed
    older_base.convert(str(folder / "base"), found.slots)
    for part in names[2:]:
        older_slots.convert(str(folder / part))
    older_log.convert(folder / "base", made.id)
    _publish(folder)
    return made


def check_unused(part: Path, why: str) -> None:
    """Raise if another process has an environment open."""
    with alone(part, why):
        return


@contextlib.contextmanager
def alone(part: Path, why: str) -> Iterator[None]:
    """While nobody has an environment open, and who would open it waits.

    LMDB has the first byte of its lock file locked as long as an environment is open. Such locks
    belong to a process: it must neither have the environment open nor open its lock file in the
    block.
    """
    lock = part / LOCK
    if is_open(str(part)):
        raise StoreError(why)
    if not lock.exists():
        yield
        return
    with lock.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError:
            raise StoreError(why) from None
        yield


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
    """How many run_lists of epochs a catalog has, as far as they matter here."""
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
