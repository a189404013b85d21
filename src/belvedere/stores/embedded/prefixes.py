"""Records under many prefixes, in a table that is several runs.

Where a prefix begins and ends in a run is found for all prefixes at once. So it is known how many
records there are at most, and prefixes are read together as many as fill a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from belvedere.encoding.order import run_starts, stable_order
from belvedere.libraries import np, npt, pa, pc
from belvedere.stores.embedded.runs import Run, joined, scan
from belvedere.stores.embedded.sections import Ints

# numbers of prefixes, keys, values
Found: TypeAlias = "tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]"
_NO_LIMIT = 1 << 62


def scan_prefixes(
    runs: Sequence[Run], prefixes: pa.BinaryArray, limit: int | None, batch: int
) -> Iterator[Found]:
    """Records whose key begins with one of the prefixes, in key order, at most `limit` for each."""
    if runs and len(prefixes) and limit != 0:
        most = _NO_LIMIT if limit is None else limit
        yield from _Prefixes.of(runs, prefixes, most, batch).read()


@dataclass(frozen=True, slots=True)
class _Prefixes:
    """`lows` and `highs` are rows, by run and prefix."""

    runs: Sequence[Run]
    prefixes: pa.BinaryArray
    lows: Ints
    highs: Ints
    limit: int
    batch: int

    @classmethod
    def of(cls, runs: Sequence[Run], prefixes: pa.BinaryArray, limit: int, batch: int) -> _Prefixes:
        after = pc.binary_join_element_wise(prefixes, b"\xff", b"")
        lows = np.array([run.lowers(prefixes) for run in runs])
        highs = np.array([run.lowers(after) for run in runs])
        return cls(runs, prefixes, lows, highs, limit, batch)

    def read(self) -> Iterator[Found]:
        counts = np.minimum(self.highs - self.lows, self.limit).sum(axis=0)
        first = 0
        while first < len(self.prefixes):
            if counts[first] > self.batch:
                yield from self._alone(first)
                first += 1
                continue
            used = np.cumsum(counts[first:])
            behind = first + max(int(np.searchsorted(used, self.batch, "right")), 1)
            if used[behind - first - 1]:
                yield from self._together(np.arange(first, behind))
            first = behind

    def _alone(self, number: int) -> Iterator[Found]:
        """One prefix, however many records it has."""
        prefix, left = self.prefixes[number].as_py(), self.limit
        for keys, values in scan(self.runs, prefix, prefix + b"\xff", min(self.batch, left)):
            some = keys.slice(0, left), values.slice(0, left)
            yield np.full(len(some[0]), number, np.int64), *some
            left -= len(keys)
            if left <= 0:
                return

    def _together(self, chosen: Ints) -> Iterator[Found]:
        """Some prefixes that have few records, in their order."""
        found = _without_deleted(self._first_records(chosen))
        unsure = chosen[self._is_unsure(chosen)].tolist()
        start = 0
        for number in [*unsure, len(self.prefixes)]:
            stop = int(np.searchsorted(found[0], number))
            yield from self._limited(_stretch(found, start, stop))
            start = int(np.searchsorted(found[0], number, "right"))
            if number < len(self.prefixes):
                yield from self._alone(number)

    def _is_unsure(self, chosen: Ints) -> npt.NDArray[np.bool_]:
        """Whether the first records of each run are perhaps not the first of all: a run that goes
        on could have some that come before those of another, or instead of deleted ones.
        """
        counts = (self.highs - self.lows)[:, chosen]
        return np.asarray((counts > self.limit).any(axis=0))

    def _first_records(self, chosen: Ints) -> Found:
        """Of each run the first `limit` under each prefix, merged; deleted ones are NULL."""
        parts, numbers = [], []
        for run, low, high in zip(self.runs, self.lows, self.highs, strict=True):
            start = low[chosen]
            counts = np.minimum(high[chosen] - start, self.limit)
            parts.append(run.take(_ranges(start, counts)))
            numbers.append(np.repeat(chosen, counts))
        keys, values = joined(parts)
        number = np.concatenate(numbers)
        if len(parts) == 1:
            return number, keys, values
        order = stable_order(keys)  # newest first, where keys are equal
        keys = keys.take(pa.array(order))
        newest = run_starts(keys)
        order = order[newest]
        return number[order], keys.filter(pa.array(newest)), values.take(pa.array(order))

    def _limited(self, found: Found) -> Iterator[Found]:
        """The first `limit` of each prefix, in batches."""
        numbers = found[0]
        place = np.arange(len(numbers)) - np.searchsorted(numbers, numbers, "left")
        if len(place) and place.max() >= self.limit:
            found = _chosen(found, place < self.limit)
        for start in range(0, len(found[0]), self.batch):
            yield _stretch(found, start, start + self.batch)


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, ... for each start, as many as its count."""
    ends = np.cumsum(counts)
    return np.repeat(starts - (ends - counts), counts) + np.arange(int(counts.sum()))


def _without_deleted(found: Found) -> Found:
    if not found[2].null_count:
        return found
    return _chosen(found, found[2].is_valid().to_numpy(zero_copy_only=False))


def _chosen(found: Found, which: npt.NDArray[np.bool_]) -> Found:
    mask = pa.array(which)
    return found[0][which], found[1].filter(mask), found[2].filter(mask)


def _stretch(found: Found, start: int, stop: int) -> Found:
    count = stop - start
    return found[0][start:stop], found[1].slice(start, count), found[2].slice(start, count)
