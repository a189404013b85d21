"""Files that are linked or copied into a directory of our own, and directories that are complete
only at their end.

A file with a run is never changed, so another name for it is as good as a copy and costs nothing;
on another file system it is copied.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import lmdb

from belvedere.errors import BelvedereError, StoreError, StoreFull
from belvedere.stores.embedded import files
from belvedere.stores.embedded.environment import Environment, Transaction

_PIECE = 4 << 20
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# another file system, one without links, one file with too many, a file of somebody else
_NO_LINK = (
    errno.EXDEV,
    errno.EPERM,
    errno.EMLINK,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EACCES,
)


def link(source: Path, target: Path) -> bool:
    """Whether it was possible; FileNotFoundError if the source is gone."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno in _NO_LINK:
            return False
        raise
    return True


def copy_open(source: int, target: Path) -> None:
    """Copy a file that is open, from its start, and wait for the disk."""
    with open(source, "rb", closefd=False) as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, _PIECE)
        writing.flush()
        os.fsync(writing.fileno())


def copy(source: Path, target: Path) -> None:
    with source.open("rb") as file:
        copy_open(file.fileno(), target)


def copy_environment(environment: Environment, transaction: Transaction, target: Path) -> None:
    """The environment as of a transaction, under that transaction's number, on disk."""

    def body(transaction: Transaction) -> None:
        with target.open("xb") as file:
            try:
                environment.copy_to(transaction, file.fileno())
            except lmdb.Error as error:
                raise _translated(environment.path, target, error) from error

    environment.inside(transaction, body)
    files.renumber(str(target), transaction.id())
    sync_file(target)


def _translated(path: str, target: Path, error: lmdb.Error) -> Exception:
    """LMDB says EIO when a disk took only a part."""
    code = getattr(error, "code", 0)
    if code in (*_NO_ROOM, errno.EIO) or isinstance(error, lmdb.DiskError):
        return OSError(code or errno.ENOSPC, os.strerror(code or errno.ENOSPC), str(target))
    return StoreError(
        f"{path} cannot be copied: {error}. Stop all processes, copy the whole directory as it is,"
        " and please report this"
    )


def checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = crc32(piece, found)
    return found


def sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_new(path: Path, content: bytes) -> None:
    """A file that must not be there, on disk when this returns."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(folder: Path, begun: str, final: str) -> Iterator[None]:
    """A directory that is empty or new, and complete when it has the file `final`.

    Until then it has the file `begun`, so what a kill leaves is recognised; the block replaces its
    content, and it gets its final name when all is on disk. What an error leaves is removed.
    """
    made = _make_empty(folder)
    try:
        with told(folder):
            write_new(folder / begun, b"")
            yield
            sync_file(folder / begun)
            _sync_tree(folder)
            (folder / begun).rename(folder / final)
            sync_folder(folder)
            for each in made:
                sync_folder(each.parent)
    except BaseException:  # whatever it was, nothing is left that looks like something
        _remove(folder, folder in made)
        raise


def _make_empty(folder: Path) -> list[Path]:
    """The directories that were made; the last one must not have had content."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file: choose an empty or new directory")
    try:
        made = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StoreError(f"{folder} is not empty: choose an empty or new directory")
    except OSError as error:
        raise StoreError(f"{folder} cannot be used: {error.strerror}") from error
    return made


def _remove(folder: Path, also_itself: bool) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if also_itself:
        folder.rmdir()


def _sync_tree(folder: Path) -> None:
    for inside, _, _ in os.walk(folder):
        sync_folder(Path(inside))


@contextlib.contextmanager
def told(folder: Path, outcome: str = "nothing is left there") -> Iterator[None]:
    """Errors of the file system in our words."""
    try:
        yield
    except BelvedereError:
        raise
    except OSError as error:
        where = error.filename or folder
        if error.errno in _NO_ROOM:
            raise StoreFull(
                f"the disk of {folder} is full or over a limit; {outcome}. Make room, retry"
                f" ({error.strerror})"
            ) from error
        raise StoreError(
            f"{where}: {error.strerror}; {outcome}. Check rights and disk of {folder}"
        ) from error


def chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]
