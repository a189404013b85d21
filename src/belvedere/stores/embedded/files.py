"""Whether an LMDB file is whole, before LMDB maps it: a page that is mapped and not there ends the
process without a word (SIGBUS).

An LMDB file begins with two meta pages; the one with the larger transaction number counts. In each,
by byte:

    16    magic u32, version u32
    40    page size u32
    80    root page of the list of free pages u64
    128   root page of the records u64
    136   last page in use u64
    144   number of the transaction that wrote the page, u64

Transaction n writes page n modulo 2, and readers look there: the number decides the place.

A file may be shorter than its last page says: pages that one transaction took and freed again are
never written. They are free then, and nobody reads them. So if a file is short, the tree decides:
no page of it may be behind the end.

    a page      number u64, pad u16, flags u16, end of the node offsets u16, start of the nodes u16;
                then offsets u16 of its nodes
    a node      u16, u16, flags u16, key size u16, key, data; the first three are a branch's page,
                or a leaf's data size and flags
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO

from belvedere.errors import StoreError

DATA, LOCK = "data.mdb", "lock.mdb"
RESTORE = "Restore the whole directory from one backup"
_META, _META_AT, _META_SIZE = Struct("<II16xI36xQ40xQQQ"), 16, 152
_NUMBER, _NUMBER_AT = Struct("<Q"), 144
_KNOWN = (0xBEEFC0DE, 1)  # LMDB 0.9
_PAGE = Struct("<QHHHH")
_NODE = Struct("<HHHH")
_BRANCH, _LEAF, _LARGE = 1, 2, 1  # flags of pages, and of a node whose data are pages of their own
_NONE = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Meta:
    """What a meta page says."""

    page_size: int
    roots: tuple[int, int]
    last_page: int
    number: int


def check_whole(folder: str) -> int:
    """Raise if the data file in `folder` is missing, empty or cut off.

    Returns how long it should be, or 0 if it is not too short.
    """
    path = os.path.join(folder, DATA)
    try:
        with open(path, "rb") as file:
            return _missing_bytes(file, path)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing, a part of this store is lost. {RESTORE}") from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}. Check its rights and its disk"
        ) from error


def _missing_bytes(file: BinaryIO, path: str) -> int:
    while True:
        meta = _newest_meta(file)
        # after the meta page: a writer lengthens the file first
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise StoreError(f"{path} is empty, a part of this store is lost. {RESTORE}")
        if meta is None or size >= (meta.last_page + 1) * meta.page_size:
            return 0  # what is no file of LMDB, LMDB itself says
        if _is_within(file, meta, size // meta.page_size):
            return (meta.last_page + 1) * meta.page_size
        if _newest_meta(file) == meta:  # else a writer was at work
            needed = (meta.last_page + 1) * meta.page_size
            raise StoreError(
                f"{path} is cut off: it has {size:,} bytes and should have {needed:,}. {RESTORE}"
            )


def _newest_meta(file: BinaryIO) -> Meta | None:
    first = _read_meta(file, 0)
    second = None if first is None else _read_meta(file, first.page_size)
    if first is None or second is None:
        return None
    return first if first.number > second.number else second


def _read_meta(file: BinaryIO, start: int) -> Meta | None:
    found = os.pread(file.fileno(), _META_SIZE, start)
    if len(found) < _META_SIZE:
        return None
    magic, version, page_size, free, main, last, number = _META.unpack_from(found, _META_AT)
    if (magic, version) != _KNOWN or page_size < 256:
        return None
    return Meta(page_size, (free, main), last, number)


def _is_within(file: BinaryIO, meta: Meta, pages: int) -> bool:
    """Whether all pages of the trees are among the first `pages`.

    Level by level, so that a cut is found before leaves are read.
    """
    level = [root for root in meta.roots if root != _NONE]
    while level:
        if max(level) >= pages:
            return False
        below: list[int] = []
        for number in level:
            page = os.pread(file.fileno(), meta.page_size, number * meta.page_size)
            for found, leaf in _references(page, meta.page_size):
                if found >= pages:
                    return False
                if not leaf:
                    below.append(found)
        level = below
    return True


def _references(page: bytes, page_size: int) -> Iterator[tuple[int, bool]]:
    """The pages that a page refers to, and whether they have no others below them."""
    _, _, flags, lower, _ = _PAGE.unpack_from(page)
    for at in range(_PAGE.size, min(lower, page_size), 2):
        start = int.from_bytes(page[at : at + 2], "little")
        if start + _NODE.size > page_size:
            return  # damaged, which LMDB will find
        low, high, more, key = _NODE.unpack_from(page, start)
        if flags & _BRANCH:
            yield low | high << 16 | more << 32, False
        elif flags & _LEAF and more & _LARGE:
            data = start + _NODE.size + key
            size = low | high << 16
            yield (
                int.from_bytes(page[data : data + 8], "little")
                + (_PAGE.size - 1 + size) // page_size,
                True,
            )


def lengthen(folder: str, size: int) -> None:
    """Make the data file as long as it should be.

    The caller has LMDB's write lock, so nobody else changes its length.
    """
    with open(os.path.join(folder, DATA), "r+b") as file:
        if os.fstat(file.fileno()).st_size < size:
            os.truncate(file.fileno(), size)


def renumber(path: str, number: int) -> None:
    """Let a compact copy of an environment have the number of the transaction that it was made of:
    LMDB begins with 1 again, and numbers are what tells older parts from newer ones (`parts.py`).

    Both meta pages then name the same tree, under this number and the one before.
    """
    with open(path, "r+b") as file:
        meta = _newest_meta(file)
        if meta is None:
            raise StoreError(f"{path} is not a file of LMDB 0.9: please report this")
        at = meta.page_size if _read_meta(file, meta.page_size) == meta else 0
        content = os.pread(file.fileno(), _META_SIZE - _META_AT, at + _META_AT)
        for each in (number, max(number - 1, 0)):
            start = each % 2 * meta.page_size
            os.pwrite(file.fileno(), content, start + _META_AT)
            os.pwrite(file.fileno(), _NUMBER.pack(each), start + _NUMBER_AT)
