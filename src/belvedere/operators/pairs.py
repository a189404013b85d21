"""Pairs: which rows of two lists have the same key.

Keys are numbers here, so nothing is hashed and nothing is sorted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from belvedere.encoding.arrays import Ints
from belvedere.libraries import np


@dataclass(frozen=True, slots=True)
class Index:
    """Rows sorted by the number of their key: those of key k are
    start[k] .. start[k] + count[k].
    """

    start: Ints
    count: Ints

    @classmethod
    def of(cls, place: Ints, keys: int) -> Index:
        """`place` rises; there are `keys` different keys."""
        count = np.bincount(place, minlength=keys)
        return cls(np.cumsum(count) - count, count)


def pairs(place: Ints, index: Index, batch: int) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of a row with a key in `place` and a row of the index with the same key, `batch` at
    a time.
    """
    count = index.count[place]
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, batch):
        end = min(begin + batch, total)
        first, last = np.searchsorted(ends, [begin, end - 1], side="right").tolist()
        rows = slice(first, last + 1)
        before = ends[rows] - count[rows]  # pairs of the rows above
        here = np.minimum(ends[rows], end) - np.maximum(before, begin)
        row = np.repeat(np.arange(first, last + 1), here)
        yield row, np.arange(begin, end) + np.repeat(index.start[place[rows]] - before, here)
