"""Runs: a table of a slot is a short list of them; the newest that has a key is right.

A run is sorted records of one table, as one section or as several whose keys follow each other.
Rows are counted through all sections. Nothing here is changed after it was written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge as merge_sorted
from itertools import accumulate
from typing import Any, TypeAlias

from belvedere.encoding.order import run_starts, stable_order
from belvedere.encoding.slots import slot_hash, slot_hash_one
from belvedere.libraries import np, pa, pc
from belvedere.stores.embedded.sections import MISSING, Get, Hashes, Ints, Section

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
CHUNK_BYTES = 32 << 20  # of keys and values that are read together, about
_FIRST_RECORDS = 16  # of a scan record by record; mostly the first one is all that is wanted
_MOST_RECORDS = 4096
_GROWTH = 8
_FEW = 64  # keys that are found one by one in less time


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a section is, its rows, and `first`: its keys are not below it, those of the section
    before are. Its first key would do; a beginning of that takes less room.
    """

    file: str
    offset: int
    size: int
    rows: int
    first: bytes


RunRef = tuple[Ref, ...]
SMALL = "small-"  # the name of a section that needs no file begins like this


def is_small(name: str) -> bool:
    return name.startswith(SMALL)


Open = Callable[[Ref], Section]


class Run:
    """A run of which sections are opened when they are needed."""

    __slots__ = ("_firsts", "_open", "_sections", "_starts", "refs", "rows")

    def __init__(self, refs: RunRef, open_section: Open) -> None:
        self.refs, self._open = refs, open_section
        self._sections: list[Section | None] = [None] * len(refs)
        self._firsts = [ref.first for ref in refs]
        # the first row of each section, and behind the last one
        self._starts = [0, *accumulate(ref.rows for ref in refs)]
        self.rows = self._starts[-1]

    def section(self, number: int) -> Section:
        found = self._sections[number]
        if found is None:
            found = self._sections[number] = self._open(self.refs[number])
        return found

    @property
    def get_one(self) -> Get:
        """The function that gets one key; made once, called often."""
        return self.section(0).get_one if len(self._sections) == 1 else self._get_one

    def _get_one(self, key: bytes, hashed: int) -> Any:
        number = max(bisect_right(self._firsts, key) - 1, 0)
        return self.section(number).get_one(key, hashed)

    def find(self, keys: pa.BinaryArray, hashes: Hashes, wanted: Ints) -> Ints:
        """The rows of the wanted ones of some keys, -1 where there is none."""
        if len(self._sections) == 1:
            return self.section(0).find(keys, hashes, wanted)
        found = np.full(len(wanted), -1, np.int64)
        for number, mine in self._by_section(keys.take(pa.array(wanted))):
            rows = self.section(number).find(keys, hashes, wanted[mine])
            found[mine] = np.where(rows < 0, rows, rows + self._starts[number])
        return found

    def lowers(self, needles: pa.BinaryArray) -> Ints:
        """The first row at or behind each needle; `rows` if there is none."""
        found = np.zeros(len(needles), np.int64)
        for number, mine in self._by_section(needles):
            some = needles if len(mine) == len(needles) else needles.take(pa.array(mine))
            found[mine] = self.section(number).lowers(some) + self._starts[number]
        return found

    def lower(self, key: bytes) -> int:
        """The first row at or behind a key."""
        if not self._sections:
            return 0
        number = max(bisect_right(self._firsts, key) - 1, 0)
        return self._starts[number] + self.section(number).lower(key)

    def record(self, row: int) -> tuple[bytes, bytes | None]:
        number = bisect_right(self._starts, row) - 1
        return self.section(number).record(row - self._starts[number])

    def _by_section(self, keys: pa.BinaryArray) -> Iterator[tuple[int, Ints]]:
        """For each section that may have some of these keys, which."""
        if len(self._sections) <= 1:
            if self._sections:
                yield 0, np.arange(len(keys))
            return
        place = np.zeros(len(keys), np.int64)
        for first in self._firsts[1:]:
            place += pc.greater_equal(keys, first).to_numpy(zero_copy_only=False)
        for number in np.unique(place).tolist():
            yield number, np.flatnonzero(place == number)

    def _stretches(self, start: int, stop: int) -> Iterator[tuple[Section, int, int]]:
        """The parts of sections that rows from `start` to `stop` are in."""
        number = bisect_right(self._starts, start) - 1
        while start < stop:
            first, end = self._starts[number], min(self._starts[number + 1], stop)
            if end > start:
                yield self.section(number), start - first, end - first
            start, number = max(end, start), number + 1

    def slice(self, start: int, stop: int) -> Batch:
        parts = [
            (section.keys.slice(low, high - low), section.values.slice(low, high - low))
            for section, low, high in self._stretches(start, stop)
        ]
        return joined(parts)

    def fits(self, start: int, stop: int, rows: int, size: int = CHUNK_BYTES) -> int:
        """The row up to which there are so many rows and bytes, at least one row."""
        least, stop = start + 1, min(stop, start + rows)
        for section, low, high in self._stretches(start, stop):
            used = section.bytes_until(low, high)
            taken = int(np.searchsorted(used, size, "right"))
            if taken < high - low:
                return max(start + taken, least)
            start, size = start + high - low, size - int(used[-1])
        return stop

    def take(self, rows: Ints) -> Batch:
        """Some records, in this order."""
        keys, values = self._take(rows, [_keys_of, _values_of])
        return keys, values

    def values_at(self, rows: Ints) -> pa.BinaryArray:
        return self._take(rows, [_values_of])[0]

    def _take(self, rows: Ints, columns: Sequence[Column]) -> list[pa.BinaryArray]:
        if len(self._sections) == 1:
            section, chosen = self.section(0), pa.array(rows)
            return [column(section).take(chosen) for column in columns]
        place = np.searchsorted(self._starts, rows, "right") - 1
        parts, order = [], [np.empty(0, np.int64)]
        for number in np.unique(place).tolist():
            mine = np.flatnonzero(place == number)
            section, chosen = self.section(number), pa.array(rows[mine] - self._starts[number])
            parts.append([column(section).take(chosen) for column in columns])
            order.append(mine)
        if not parts:
            return [pa.array([], pa.binary()) for _ in columns]
        back = pa.array(_inverse(np.concatenate(order)))
        return [pa.concat_arrays(column).take(back) for column in zip(*parts, strict=True)]


Column = Callable[[Section], "pa.BinaryArray"]


def _keys_of(section: Section) -> pa.BinaryArray:
    return section.keys


def _values_of(section: Section) -> pa.BinaryArray:
    return section.values


def _inverse(places: Ints) -> Ints:
    """Where each number stands in a permutation."""
    order = np.empty(len(places), np.int64)
    order[places] = np.arange(len(places))
    return order


def joined(parts: Sequence[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    keys, values = zip(*parts, strict=True)
    return pa.concat_arrays(keys), pa.concat_arrays(values)


# ---------------------------------------------------------------- keys


def get_one(runs: Sequence[Run], key: bytes) -> bytes | None:
    return first_of([run.get_one for run in runs], key)


def first_of(gets: Sequence[Get], key: bytes) -> bytes | None:
    """What the first has that knows the key."""
    hashed = slot_hash_one(key)
    for get in gets:
        found: bytes | None = get(key, hashed)
        if found is not MISSING:
            return found
    return None


def get_many(runs: Sequence[Run], keys: pa.BinaryArray) -> pa.BinaryArray:
    """Values aligned with keys; NULL where a key is not there."""
    if len(keys) <= _FEW:
        gets = [run.get_one for run in runs]
        return pa.array([first_of(gets, key) for key in keys.to_pylist()], pa.binary())
    return in_place(find_many(runs, keys, slot_hash(keys), np.arange(len(keys))))


Found: TypeAlias = "tuple[pa.BinaryArray, Ints]"


def find_many(
    runs: Sequence[Run], keys: pa.BinaryArray, hashes: Hashes, wanted: Ints
) -> list[Found]:
    """Values of the wanted ones of some keys, run by run, with their places among all keys."""
    found = []
    for run in runs:
        if not len(wanted):
            break
        rows = run.find(keys, hashes, wanted)
        hits = np.flatnonzero(rows >= 0)
        if len(hits):
            found.append((run.values_at(rows.take(hits)), wanted.take(hits)))
            wanted = wanted.take(np.flatnonzero(rows < 0))
    return [*found, (pa.nulls(len(wanted), pa.binary()), wanted)]


def in_place(found: Sequence[Found]) -> pa.BinaryArray:
    """All values, each brought to its place."""
    parts = [values for values, _ in found if len(values)] or [found[0][0]]
    places = np.concatenate([place for _, place in found])
    values = pa.concat_arrays(parts)
    if bool((places[1:] > places[:-1]).all()):
        return values
    return values.take(pa.array(_inverse(places)))


# ---------------------------------------------------------------- ranges


def merge(parts: Sequence[Batch], drop_deleted: bool) -> Batch:
    """One sorted batch of several, NEWEST FIRST; the newest record of a key is right."""
    keys, values = joined(parts)
    if len(parts) > 1:
        order = stable_order(keys)
        keys, values = keys.take(pa.array(order)), values.take(pa.array(order))
        first = run_starts(keys)
        if not first.all():
            chosen = pa.array(first)
            keys, values = keys.filter(chosen), values.filter(chosen)
    if drop_deleted and values.null_count:
        there = values.is_valid()
        keys, values = keys.filter(there), values.filter(there)
    return keys, values


def scan(
    runs: Sequence[Run],
    low: bytes,
    high: bytes | None,
    batch: int,
    drop_deleted: bool = True,
    size: int = CHUNK_BYTES,
) -> Iterator[Batch]:
    """Records with low <= key < high in key order, at most `batch` at once."""
    at = [run.lower(low) if low else 0 for run in runs]
    ends = [run.rows if high is None else run.lower(high) for run in runs]
    while any(start < stop for start, stop in zip(at, ends, strict=True)):
        stops = [
            run.fits(start, stop, batch, size) if start < stop else start
            for run, start, stop in zip(runs, at, ends, strict=True)
        ]
        stops = _until_common_key(runs, at, stops, ends)
        parts = [
            run.slice(start, stop)
            for run, start, stop in zip(runs, at, stops, strict=True)
            if start < stop
        ]
        at = stops
        keys, values = merge(parts, drop_deleted)
        for first in range(0, len(keys), batch):
            yield keys.slice(first, batch), values.slice(first, batch)


def _until_common_key(
    runs: Sequence[Run], at: Sequence[int], stops: Sequence[int], ends: Sequence[int]
) -> list[int]:
    """Rows up to the least of the last keys of those that go on: behind it a run that is cut off
    could have something that belongs in between.
    """
    lasts = [
        run.record(stop - 1)[0]
        for run, start, stop, end in zip(runs, at, stops, ends, strict=True)
        if start < stop < end
    ]
    if not lasts:
        return list(stops)
    behind = min(lasts) + b"\0"
    return [
        min(stop, max(start, run.lower(behind)))
        for run, start, stop in zip(runs, at, stops, strict=True)
    ]


def records(
    runs: Sequence[Run], low: bytes, high: bytes | None, reverse: bool
) -> Iterator[tuple[bytes, bytes]]:
    """The same one by one, or from the end; only what is asked for is read."""
    sources = []
    for age, run in enumerate(runs):
        start, stop = run.lower(low) if low else 0, run.rows if high is None else run.lower(high)
        if start < stop:
            sources.append(_one_by_one(run, start, stop, age, reverse))
    last: bytes | None = None
    for key, _, value in merge_sorted(*sources, key=_newest_first, reverse=reverse):
        if key != last and value is not None:
            yield key, value
        last = key


_Record = tuple[bytes, int, bytes | None]


def _newest_first(record: _Record) -> tuple[bytes, int]:
    return record[:2]


def _one_by_one(run: Run, start: int, stop: int, age: int, reverse: bool) -> Iterator[_Record]:
    """Records with the age of their run, which rises in the order of reading."""
    count, age = _FIRST_RECORDS, -age if reverse else age
    first = min(count, stop - start)
    for row in range(stop - 1, stop - 1 - first, -1) if reverse else range(start, start + first):
        key, value = run.record(row)
        yield key, age, value
    start, stop = (start, stop - first) if reverse else (start + first, stop)
    while start < stop:
        low, high = (
            (max(start, stop - count), stop) if reverse else (start, min(stop, start + count))
        )
        keys, values = run.slice(low, high)
        pairs = list(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        for key, value in reversed(pairs) if reverse else pairs:
            yield key, age, value
        start, stop = (start, low) if reverse else (high, stop)
        count = min(count * _GROWTH, _MOST_RECORDS)
