"""Whether an LMDB file is whole, before LMDB maps it: a page that is mapped and not there ends the
process without a word (SIGBUS).

An LMDB file begins with two meta pages; the one with the larger transaction number counts. In each,
by byte:

    16    magic u32, version u32
    40    the tree of free pages: page size u32, flags u16, depth u16, branch pages, leaf pages,
          large pages, entries, root page, u64 each
    88    the tree of records: the same, 0 instead of the page size
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
_META, _META_AT, _META_SIZE = Struct("<II16xIHHQQQQQIHHQQQQQQQ"), 16, 152
_NUMBER, _NUMBER_AT = Struct("<Q"), 144
_KNOWN = (0xBEEFC0DE, 1)  # LMDB 0.9
PAGE_HEAD = Struct("<QHHHH")
_NODE = Struct("<HHHH")
_BRANCH, _LEAF, _LARGE = 1, 2, 1  # flags of pages, and of a node whose data are pages of their own
NO_PAGE = (1 << 64) - 1
_TREE_FLAGS = 8, 0  # of the trees of free pages, whose keys are numbers, and of records


@dataclass(frozen=True, slots=True)
class TreeMeta:
    """What a meta page says of a tree."""

    flags: int
    depth: int
    branches: int
    leaves: int
    overflows: int
    entries: int
    root: int


@dataclass(frozen=True, slots=True)
class Meta:
    """What a meta page says."""

    page_size: int
    free: TreeMeta
    main: TreeMeta
    last_page: int
    number: int

    @property
    def roots(self) -> tuple[int, int]:
        return self.free.root, self.main.root


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
        meta = newest_meta(file)
        # after the meta page: a writer lengthens the file first
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise StoreError(f"{path} is empty, a part of this store is lost. {RESTORE}")
        if meta is None or size >= (meta.last_page + 1) * meta.page_size:
            return _check_meta(meta, path)
        if _is_within(file, meta, size // meta.page_size):
            return (meta.last_page + 1) * meta.page_size
        if newest_meta(file) == meta:  # else a writer was at work
            needed = (meta.last_page + 1) * meta.page_size
            raise StoreError(
                f"{path} is cut off: it has {size:,} bytes and should have {needed:,}. {RESTORE}"
            )


def _check_meta(meta: Meta | None, path: str) -> int:
    """LMDB believes what a meta page says of pages and flags, whatever it is."""
    if meta is None or (meta.free.flags, meta.main.flags) != _TREE_FLAGS:
        raise StoreError(
            f"{os.path.dirname(path)} is damaged or not an LMDB environment of this version."
            f" {RESTORE}"
        )
    return 0


def newest_meta(file: BinaryIO) -> Meta | None:
    """None if the file does not begin with two meta pages."""
    found = _metas(file)
    return max(found, key=lambda meta: meta.number) if found else None


def meta_of(file: BinaryIO, number: int) -> Meta | None:
    """What a transaction wrote, unless two others have followed."""
    return next((meta for meta in _metas(file) if meta.number == number), None)


def _metas(file: BinaryIO) -> list[Meta]:
    first = _read_meta(file, 0)
    second = None if first is None else _read_meta(file, first.page_size)
    if first is None or second is None or first.page_size != second.page_size:
        return []
    return [second, first]  # of two that are equal, the second one counts


def _read_meta(file: BinaryIO, start: int) -> Meta | None:
    found = os.pread(file.fileno(), _META_SIZE, start)
    if len(found) < _META_SIZE:
        return None
    magic, version, page_size, *numbers = _META.unpack_from(found, _META_AT)
    if (magic, version) != _KNOWN or page_size < 256:
        return None
    free, main = TreeMeta(*numbers[:7]), TreeMeta(*numbers[8:15])
    return Meta(page_size, free, main, *numbers[15:])


def _is_within(file: BinaryIO, meta: Meta, pages: int) -> bool:
    """Whether all pages of the trees are among the first `pages`.

    Level by level, so that a cut is found before leaves are read.
    """
    level = {root for root in meta.roots if root != NO_PAGE}
    met: set[int] = set()  # a damaged page may refer to one above it
    while level:
        if max(level) >= pages:
            return False
        met |= level
        below: set[int] = set()
        for number in level:
            page = os.pread(file.fileno(), meta.page_size, number * meta.page_size)
            for found, leaf in _references(page, meta.page_size):
                if found >= pages:
                    return False
                if not leaf:
                    below.add(found)
        level = below - met
    return True


def _references(page: bytes, page_size: int) -> Iterator[tuple[int, bool]]:
    """The pages that a page refers to, and whether they have no others below them."""
    _, _, flags, lower, _ = PAGE_HEAD.unpack_from(page)
    for at in range(PAGE_HEAD.size, min(lower, page_size), 2):
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
                + (PAGE_HEAD.size - 1 + size) // page_size,
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
        meta = newest_meta(file)
        if meta is None:
            raise StoreError(f"{path} is not a file of LMDB 0.9: please report this")
        at = meta.page_size if _read_meta(file, meta.page_size) == meta else 0
        content = os.pread(file.fileno(), _META_SIZE - _META_AT, at + _META_AT)
        for each in (number, max(number - 1, 0)):
            start = each % 2 * meta.page_size
            os.pwrite(file.fileno(), content, start + _META_AT)
            os.pwrite(file.fileno(), _NUMBER.pack(each), start + _NUMBER_AT)
