"""Ordered: the pre-aggregation, values of each group in order, counted.

    count[g, x](e) = count[g, x](e-1) + sum of weights of x in g          a record per (g, x), deleted at 0

From it come MIN and MAX (the first and last record of a group's prefix), COUNT(DISTINCT) (records that appear and vanish).
An extreme is searched again only when its own record vanishes, and the search stops at the first record that stays:
deleting the minimum costs one seek, never a scan of the base table. The slot is that of the group, not of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.encoding import KeyCodec, prefix_range
from belvedere.operators.base import KEY, WEIGHT
from belvedere.operators.grouping import Ints, group, group_count
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
        gone = _by_group(entries, vanished)
        low = self._extreme(shard, keys, entries, vanished, gone, least, reverse=False)
        high = self._extreme(shard, keys, entries, vanished, gone, greatest, reverse=True)
        return Touched(distinct, low, high)

    def _count(self, shard: Shard, keys: pa.BinaryArray, rows: pa.Table) -> _Entries:
        groups, suffix = rows.column(KEY).combine_chunks(), rows.column(SUFFIX).combine_chunks()
        records, codes = group(pc.binary_join_element_wise(groups, suffix, b""))
        delta = group_count(codes, len(records), rows.column(WEIGHT).to_numpy())
        example = np.empty(len(records), np.int64)
        example[codes] = np.arange(len(codes))
        changed = delta != 0
        records, delta, example = records.filter(pa.array(changed)), delta[changed], pa.array(example[changed])
        before = shard.get_many(self.table, records)
        old = counts_of(before)
        shard.write(Write(self.table, records, counted(old + delta), before))
        place = pc.index_in(groups.take(example), keys).to_numpy(zero_copy_only=False).astype(np.int64)
        return _Entries(place, suffix.take(example), old, old + delta)

    def _extreme(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        entries: _Entries,
        vanished: Mask,
        gone: dict[int, set[bytes]],
        current: pa.BinaryArray,
        reverse: bool,
    ) -> pa.BinaryArray:
        """The extreme of every touched group after the epoch: of what stayed and what came."""
        added = _outermost(entries, len(keys), reverse)
        lost = np.zeros(len(keys), bool)
        is_current = pc.equal(entries.suffix, current.take(pa.array(entries.place))).fill_null(False).to_numpy(zero_copy_only=False)
        lost[entries.place[vanished & is_current]] = True
        kept = pc.if_else(pa.array(lost), pa.scalar(None, pa.binary()), current)
        found = kept.to_pylist() if lost.any() else None
        if found is not None:
            limits = added.to_pylist()
            for g in np.flatnonzero(lost).tolist():
                found[g] = self._search(shard, keys[g].as_py(), gone[g], limits[g], reverse)
            kept = pa.array(found, pa.binary())
        better = pc.greater(added, kept) if reverse else pc.less(added, kept)
        return pc.if_else(pc.fill_null(better, False), added, pc.coalesce(kept, added))

    def _search(self, shard: Shard, key: bytes, gone: set[bytes], limit: bytes | None, reverse: bool) -> bytes | None:
        """The outermost record as of e-1 that stays, unless it lies beyond `limit`, which came in this epoch."""
        low, high = prefix_range(key)
        for record, _ in shard.scan(self.table, low, high, reverse):
            suffix = record[len(key) :]
            if limit is not None and (suffix <= limit if reverse else suffix >= limit):
                return None
            if suffix not in gone:
                return suffix
        return None


def _by_group(entries: _Entries, vanished: Mask) -> dict[int, set[bytes]]:
    gone: dict[int, set[bytes]] = {}
    mask = pa.array(vanished)
    for g, suffix in zip(entries.place[vanished].tolist(), entries.suffix.filter(mask).to_pylist(), strict=True):
        gone.setdefault(g, set()).add(suffix)
    return gone


def _outermost(entries: _Entries, groups: int, reverse: bool) -> pa.BinaryArray:
    """Per group the first (last) touched value that is there after the epoch; entries stand in key order."""
    present = np.flatnonzero(entries.new > 0)
    if not reverse:
        present = present[::-1]
    at = np.full(groups, -1, np.int64)
    at[entries.place[present]] = present  # the last assignment wins
    return entries.suffix.take(pa.array(at, mask=at < 0))
