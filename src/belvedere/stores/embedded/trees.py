"""The pages of an LMDB file, read without LMDB: what it would not notice, or would end the process
for, is found here.

LMDB's pages have no checksums, but they say much of what they should be. As of one transaction:

    a page      has its own number in it, and is of the kind that its place in the tree asks for
    its nodes   stand one behind the other up to the end of the page, their keys rise, and are
                within the bounds that the pages above give
    a tree      has as many pages and entries as the meta page says
    every page  up to the last one is in the tree of records, in that of free pages, or free: once
    the list    of free pages has its last entry from the transaction itself: each one replaces the
                root, so an older state under a newer number is noticed

So whatever is flipped outside of values and keys is found, or does not matter. A value is its
owner's to check (`checked.py`), together with its key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct, unpack_from
from typing import Any

from belvedere.stores.embedded.files import NO_PAGE, PAGE_HEAD, Meta, TreeMeta

Report = Callable[[str], None]  # of what is damaged
Skip = Callable[[bytes, bytes | None], bool]  # of the keys from one on up to another one
_NODE = Struct("<HHHH")
_NUMBER = Struct("<Q")
_PAGES, _PAGES_AT = Struct("<I"), 12  # of large data, in their first page's head
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4  # kinds of pages
_LARGE = 1  # a node whose data are pages of their own
_FIRST_PAGE = 2  # behind the meta pages
# key; child or size of the data; where data begin, minus that if there is only their page; end
Node = tuple[bytes, int, int, int]
_MOST_DEPTH = 32  # LMDB's own limit


@dataclass
class Tree:
    """The entries of one of the two trees of a file; what is damaged is told, and left out."""

    descriptor: int
    meta: Meta
    root: TreeMeta
    report: Report
    used: dict[int, int]  # first page, and how many: of pages that were met
    skip: Skip | None = None
    numbers: bool = False  # whether keys are numbers of this machine
    entries: int = 0
    kinds: dict[int, int] = field(default_factory=lambda: {_BRANCH: 0, _LEAF: 0, _OVERFLOW: 0})
    skipped: bool = False

    def read(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries in their order."""
        if self.root.root == NO_PAGE:
            if self.root.entries:
                self.report(f"it has no root page, and should have {self.root.entries:,} entries")
            return
        if not 0 < self.root.depth <= _MOST_DEPTH:
            self.report(f"its tree would have {self.root.depth:,} levels")
            return
        yield from self._below(self.root.root, self.root.depth, b"", None)
        self._check_counts()

    def _check_counts(self) -> None:
        if self.skipped:
            return
        found = self.entries, *self.kinds.values()
        should = self.root.entries, self.root.branches, self.root.leaves, self.root.overflows
        if found != should:
            names = ("entries", "branch pages", "leaf pages", "large pages")
            for name, one, other in zip(names, found, should, strict=True):
                if one != other:
                    self.report(f"it has {one:,} {name}, and should have {other:,}")

    def _below(
        self, number: int, depth: int, low: bytes, high: bytes | None
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries below a page; `depth` is 1 for a leaf."""
        kind = _LEAF if depth == 1 else _BRANCH
        page = self._page(number, kind)
        if page is None:
            return
        nodes = self._nodes(page, number, kind)
        if kind == _LEAF:
            yield from self._leaf(page, number, nodes, low, high)
            return
        keys = [low, *(key for key, *_ in nodes[1:])]
        self._check_order(keys, number, low, high)
        for place, (_, child, *_) in enumerate(nodes):
            behind = keys[place + 1] if place + 1 < len(keys) else high
            if self.skip is not None and depth == 2 and self.skip(keys[place], behind):
                self.skipped = True
                continue
            yield from self._below(child, depth - 1, keys[place], behind)

    def _page(self, number: int, kind: int) -> bytes | None:
        """A page of the tree, if it is one and was not met before."""
        if not self._meet(number, 1):
            return None
        size = self.meta.page_size
        page = os.pread(self.descriptor, size, number * size)
        if len(page) < size:
            self.report(f"page {number:,} is cut off")
            return None
        own, _, flags, lower, upper = PAGE_HEAD.unpack_from(page)
        if own != number or flags != kind or not PAGE_HEAD.size <= lower <= upper <= size:
            self.report(f"page {number:,} is not what was written there")
            return None
        self.kinds[kind] += 1
        return page

    def _meet(self, number: int, count: int) -> bool:
        if not _FIRST_PAGE <= number <= self.meta.last_page - count + 1:
            self.report(f"page {number:,} is named, and there is none")
            return False
        if number in self.used:
            self.report(f"page {number:,} is in use twice")
            return False
        self.used[number] = count
        return True

    def _nodes(self, page: bytes, number: int, kind: int) -> list[Node]:
        """The nodes of a page, if they fill it from where it says to its end, one behind the other
        in whatever order; else none.
        """
        _, _, _, lower, upper = PAGE_HEAD.unpack_from(page)
        count = (lower - PAGE_HEAD.size) // 2
        offsets = unpack_from(f"<{count}H", page, PAGE_HEAD.size)
        inside = len(page) - _NODE.size
        read = _branch_node if kind == _BRANCH else _leaf_node
        found = [read(page, start) for start in offsets if start <= inside]
        starts = {*offsets, len(page)}
        ends = {upper, *(end + (end & 1) for _, _, _, end in found)}
        if not count or len(starts) != count + 1 or starts != ends:
            self.report(f"page {number:,} has nodes that are not what was written")
            return []
        return found

    def _leaf(
        self,
        page: bytes,
        number: int,
        nodes: list[Node],
        low: bytes,
        high: bytes | None,
    ) -> Iterator[tuple[bytes, bytes]]:
        self._check_order([low, *(key for key, *_ in nodes)], number, low, high)
        self.entries += len(nodes)
        for key, size, data, _ in nodes:
            if data >= 0:
                yield key, page[data : data + size]
                continue
            value = self._large(_NUMBER.unpack_from(page, -data)[0], size)
            if value is not None:
                yield key, value

    def _check_order(self, keys: list[bytes], number: int, low: bytes, high: bytes | None) -> None:
        """That keys rise within bounds; the first of them is the lower bound, which may be equal to
        the second.
        """
        order: list[Any] = [_numeric(key) for key in keys] if self.numbers else keys
        is_rising = all(one < other for one, other in pairwise(order[1:]))
        if len(order) > 1:
            is_rising &= not low or order[0] <= order[1]
            is_rising &= high is None or order[-1] < (_numeric(high) if self.numbers else high)
        if not is_rising:
            self.report(f"page {number:,} has keys that are out of order")

    def _large(self, number: int, size: int) -> bytes | None:
        """Data that have pages of their own."""
        page_size = self.meta.page_size
        needed = (PAGE_HEAD.size - 1 + size) // page_size + 1
        if not self._meet(number, needed):
            return None
        found = os.pread(self.descriptor, PAGE_HEAD.size + size, number * page_size)
        if len(found) < PAGE_HEAD.size + size:
            self.report(f"page {number:,} is cut off")
            return None
        own, _, flags, *_ = PAGE_HEAD.unpack_from(found)
        (pages,) = _PAGES.unpack_from(found, _PAGES_AT)
        if own != number or flags != _OVERFLOW or pages < needed:
            self.report(f"page {number:,} is not what was written there")
            return None
        self.used[number] = pages  # a value that became smaller keeps its pages
        self.kinds[_OVERFLOW] += pages
        return found[PAGE_HEAD.size :]


def _branch_node(page: bytes, start: int) -> Node:
    low, high, more, length = _NODE.unpack_from(page, start)
    end = start + _NODE.size + length
    return page[start + _NODE.size : end], low | high << 16 | more << 32, 0, end


def _leaf_node(page: bytes, start: int) -> Node:
    low, high, flags, length = _NODE.unpack_from(page, start)
    data = start + _NODE.size + length
    key, size = page[start + _NODE.size : data], low | high << 16
    if flags == _LARGE:
        return key, size, -data, data + _NUMBER.size
    return key, size, data, data + size if not flags else 0  # other flags: no end fits


def _numeric(key: bytes) -> int:
    return int.from_bytes(key, "little")


def entries(
    descriptor: int, meta: Meta, report: Report, skip: Skip | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """All entries of a file as of a meta page; what is damaged is told as it is met.

    With `skip`, leaves of some ranges are left out, and what then cannot be known: how many pages
    and entries there are.
    """
    used: dict[int, int] = {}
    main = Tree(descriptor, meta, meta.main, report, used, skip)
    yield from main.read()
    free = Tree(descriptor, meta, meta.free, report, used, numbers=True)
    released: list[int] = []
    last = 0
    for key, value in free.read():
        last = _numeric(key)
        released += _free_pages(value, report)
    if last > meta.number or (last < meta.number and free.entries):
        report(f"its list of free pages is of transaction {last:,}, not of {meta.number:,}")
    if not main.skipped:
        _check_all(meta, used, released, report)


def _free_pages(value: bytes, report: Report) -> list[int]:
    """A number of pages, then their numbers."""
    count = _NUMBER.unpack_from(value)[0] if len(value) >= _NUMBER.size else -1
    if not 0 <= count < len(value) // _NUMBER.size:
        report("its list of free pages cannot be read")
        return []
    return list(unpack_from(f"<{count}Q", value, _NUMBER.size))


def _check_all(meta: Meta, used: dict[int, int], released: list[int], report: Report) -> None:
    """That every page is in use or free, once."""
    taken = [page for first, count in used.items() for page in range(first, first + count)]
    known = {*taken, *released}
    if len(known) != len(taken) + len(released):
        report("a page is in use twice, or in use and free")
    elif len(known) != meta.last_page - 1 or (known and max(known) > meta.last_page):
        missing = meta.last_page - 1 - len(known)
        report(f"{missing:,} of its {meta.last_page + 1:,} pages are neither in use nor free")
