"""Ordered: the pre-aggregation, values of each group in order, counted.

    count[g, x](e) = count[g, x](e-1) + sum of weights of x in g          a record per (g, x), deleted at 0

From it come MIN and MAX (the first and last record of a group's prefix), COUNT(DISTINCT) (records that appear and vanish).
An extreme is searched again only when its own record vanishes, and the search stops at the first record that stays:
deleting the minimum costs one seek, never a scan of the base table. The slot is that of the group, not of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.encoding import KeyCodec, prefix_range
from belvedere.operators.base import KEY, WEIGHT
from belvedere.operators.grouping import Ints, group_count
from belvedere.operators.sinks import counted, counts_of
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import SqlType

SUFFIX = "_x"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Touched:
    """Per group: by how much its number of distinct values grew, and its extremes after the epoch (encoded, NULL = none)."""

    distinct: Ints
    least: pa.BinaryArray
    greatest: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class _Entries:
    """The touched records in key order: group number, value, count before and after."""

    place: Ints
    suffix: pa.BinaryArray
    old: Ints
    new: Ints


@dataclass(frozen=True, slots=True)
class Ordered:
    table: TableId
    types: tuple[SqlType, ...]

    def partial(self, changes: pa.Table, inputs: Sequence[int], keys: pa.BinaryArray, codes: Ints) -> pa.Table:
        """One row per (group, value) with its weight; rows with a NULL value do not count."""
        arrays = [changes.column(f"c{i}").combine_chunks() for i in inputs]
        weights = changes.column(WEIGHT).combine_chunks()
        if any(a.null_count for a in arrays):
            valid = pc.is_valid(arrays[0])
            for array in arrays[1:]:
                valid = pc.and_(valid, pc.is_valid(array))
            arrays, weights = [a.filter(valid) for a in arrays], weights.filter(valid)
            codes = codes[valid.to_numpy(zero_copy_only=False)]
        suffix = KeyCodec(self.types).encode(arrays)
        return pa.table([keys.take(pa.array(codes)), suffix, weights], names=[KEY, SUFFIX, WEIGHT])

    def apply(
        self, shard: Shard, keys: pa.BinaryArray, parts: Sequence[pa.Table], least: pa.BinaryArray, greatest: pa.BinaryArray
    ) -> Touched:
        """Write the counts of this slot's records; `keys` are the touched groups, with their extremes as of e-1."""
        entries = self._count(shard, keys, pa.concat_tables(parts).combine_chunks())
        appeared = ((entries.old == 0) & (entries.new > 0)).astype(np.int64)
        vanished = (entries.old > 0) & (entries.new == 0)
        distinct = group_count(entries.place, len(keys), appeared - vanished)
        gone = _Gone(entries.place[vanished], entries.suffix.filter(pa.array(vanished)))
        low = self._extreme(shard, keys, entries, gone, least, reverse=False)
        high = self._extreme(shard, keys, entries, gone, greatest, reverse=True)
        return Touched(distinct, low, high)

    def _count(self, shard: Shard, keys: pa.BinaryArray, rows: pa.Table) -> _Entries:
        suffix = rows.column(SUFFIX).combine_chunks()
        place = pc.index_in(rows.column(KEY).combine_chunks(), keys).to_numpy(zero_copy_only=False).astype(np.int64)
        order, starts = _sorted(place, suffix)
        delta = np.add.reduceat(rows.column(WEIGHT).to_numpy()[order], starts) if len(starts) else np.empty(0, np.int64)
        changed = delta != 0
        example, delta = order[starts[changed]], delta[changed]
        place, suffix = place[example], suffix.take(pa.array(example))
        records = pc.binary_join_element_wise(keys.take(pa.array(place)), suffix, b"")
        before = shard.get_many(self.table, records)
        old = counts_of(before)
        shard.write(Write(self.table, records, counted(old + delta), before))
        return _Entries(place, suffix, old, old + delta)

    def _extreme(
        self, shard: Shard, keys: pa.BinaryArray, entries: _Entries, gone: _Gone, current: pa.BinaryArray, reverse: bool
    ) -> pa.BinaryArray:
        """The extreme of every touched group after the epoch: of what stayed and what came."""
        added = _outermost(entries, len(keys), reverse)
        was_extreme = pc.equal(gone.suffix, current.take(pa.array(gone.place))).fill_null(False).to_numpy(zero_copy_only=False)
        lost = np.unique(gone.place[was_extreme])
        kept = current
        if len(lost):
            found, limits = current.to_pylist(), added.to_pylist()
            for g in lost.tolist():
                found[g] = self._search(shard, keys[g].as_py(), gone.of(g, reverse), limits[g], reverse)
            kept = pa.array(found, pa.binary())
        better = pc.greater(added, kept) if reverse else pc.less(added, kept)
        return pc.if_else(pc.fill_null(better, False), added, pc.coalesce(kept, added))

    def _search(self, shard: Shard, key: bytes, gone: Iterator[bytes], limit: bytes | None, reverse: bool) -> bytes | None:
        """The outermost record as of e-1 that stays, unless it lies beyond `limit`, which came in this epoch.

        Vanished records come in the order of the scan, so the two are walked in step.
        """
        low, high = prefix_range(key)
        for record, _ in shard.scan(self.table, low, high, reverse):
            suffix = record[len(key) :]
            if limit is not None and (suffix <= limit if reverse else suffix >= limit):
                return None
            if suffix != next(gone, None):
                return suffix
        return None


@dataclass(frozen=True, slots=True)
class _Gone:
    """Records that vanish in this epoch, by group and in value order."""

    place: Ints
    suffix: pa.BinaryArray

    def of(self, g: int, reverse: bool) -> Iterator[bytes]:
        first, last = np.searchsorted(self.place, [g, g + 1]).tolist()
        for i in range(last - 1, first - 1, -1) if reverse else range(first, last):
            yield self.suffix[i].as_py()


def _sorted(place: Ints, suffix: pa.BinaryArray) -> tuple[Ints, Ints]:
    """The order of rows by group and value, and where each run of equal ones starts in it."""
    if not len(place):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    words = _words(suffix)
    if words is not None:
        order = np.lexsort((words, place))
        words = words[order]
        differs = words[1:] != words[:-1]
    else:
        order = pc.sort_indices(
            pa.table([pa.array(place), suffix], names=["g", "x"]), sort_keys=[("g", "ascending"), ("x", "ascending")]
        ).to_numpy()
        ordered = suffix.take(pa.array(order))
        differs = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1)).to_numpy(zero_copy_only=False)
    at = place[order]
    return order, np.flatnonzero(np.append(True, differs | (at[1:] != at[:-1])))


def _words(suffix: pa.BinaryArray) -> npt.NDArray[np.uint64] | None:
    """Values as numbers that sort alike, if all are equally long and of at most 8 bytes behind the tag; else None."""
    lengths = pc.min_max(pc.binary_length(suffix)).as_py()
    size = lengths["min"]
    if size != lengths["max"] or not 2 <= size <= 9:
        return None
    start = int(np.frombuffer(suffix.buffers()[1], np.int32)[suffix.offset])
    data = np.frombuffer(suffix.buffers()[2], np.uint8)[start : start + size * len(suffix)].reshape(-1, size)
    padded = np.zeros((len(suffix), 8), np.uint8)
    padded[:, : size - 1] = data[:, 1:]
    return padded.view(">u8").ravel().astype(np.uint64)


def _outermost(entries: _Entries, groups: int, reverse: bool) -> pa.BinaryArray:
    """Per group the first (last) touched value that is there after the epoch; entries stand in key order."""
    present = np.flatnonzero(entries.new > 0)
    if not reverse:
        present = present[::-1]
    at = np.full(groups, -1, np.int64)
    at[entries.place[present]] = present  # the last assignment wins
    return entries.suffix.take(pa.array(at, mask=at < 0))
