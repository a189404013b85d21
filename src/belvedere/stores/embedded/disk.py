"""What the log and run files do to the file system, in one place: tests put a disk here that loses
its power.

`sync` makes the content of a file durable, `sync_folder` the names in a directory. Nothing else is
durable when it returns.
"""

from __future__ import annotations

import os
from typing import Any


def write(descriptor: int, parts: list[Any], offset: int) -> None:
    """All of it, or OSError when some of it may be there."""
    done = os.pwritev(descriptor, parts, offset)
    if done < sum(map(len, parts)):
        _write_rest(descriptor, parts, done, offset)


def _write_rest(descriptor: int, parts: list[Any], done: int, offset: int) -> None:
    """What is behind the first `done` bytes."""
    for part in parts:
        content = memoryview(part)
        while done < len(content):
            done += os.pwrite(descriptor, content[done:], offset + done)
        offset, done = offset + len(content), done - len(content)


def sync(descriptor: int) -> None:
    os.fdatasync(descriptor)


def truncate(descriptor: int, size: int) -> None:
    os.ftruncate(descriptor, size)


def create(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)


def create_new(path: str) -> int:
    """One that nobody has."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def rename(path: str, new: str) -> None:
    os.rename(path, new)


def unlink(path: str) -> None:
    os.unlink(path)


def sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free(path: str) -> int:
    """Bytes that a file there can still grow by."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
