"""Pages of mapped files: what a process has touched of them counts as its memory until they are
unmapped.

The system takes such pages back when it needs room, so nothing is wrong with them. But a worker
that goes through a log of many gigabytes would seem to need as many, and whoever watches or limits
resident memory takes it for a leak. So workers unmap between two tasks what they have of the
store's files. It stays in the system's cache, and comes back page by page.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Collection, Iterator

from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.run_files import ENDING

_ALLOWED = 256 << 20  # bytes of mapped files, libraries included, that are not worth the call
_PAGE = mmap.PAGESIZE


def unmap(folders: Collection[str]) -> bool:
    """Give back the mapped pages of the LMDB and run files in these folders if they are many;
    whether they were.
    """
    if _resident() < _ALLOWED:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    for start, size in _mappings(set(folders)):
        if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED):
            raise OSError(ctypes.get_errno(), "madvise")
    return True


def _resident() -> int:
    """Bytes of files that this process has in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[2]) * _PAGE


def _mappings(folders: Collection[str]) -> Iterator[tuple[int, int]]:
    """Start and size of each mapping of the data files in these folders."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.rstrip("\n").split(maxsplit=5)
            if len(fields) == 6 and _is_data(fields[5], folders):
                start, end = (int(address, 16) for address in fields[0].split("-"))
                yield start, end - start


def _is_data(path: str, folders: Collection[str]) -> bool:
    """A file that is removed has a word behind its name."""
    folder, _, name = path.removesuffix(" (deleted)").rpartition("/")
    return folder in folders and (name == DATA or name.endswith(ENDING))
