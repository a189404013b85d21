"""Ordered: the pre-aggregation, values of each group in order.

    by row     record (g, x, row)
               for MIN and MAX
    counted    count[g, x](e) = count[g, x](e-1) + sum of weights of x in g, none at 0
               for COUNT(DISTINCT), and MIN, MAX beside it

MIN and MAX are the first and last record of a group's prefix; COUNT(DISTINCT) counts records that
appear and vanish. Rows are written blindly, because a change says what was there before; counts
have to be read. An extreme is searched again only when its own record vanishes, and the search
stops at the first record that stays: deleting the minimum costs one seek, never a scan of the base
table. The slot is that of the group, not of the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.encoding import KeyCodec, prefix_range
from belvedere.encoding.arrays import Ints, Mask
from belvedere.encoding.binaries import unpack
from belvedere.encoding.one_key import prefix_length
from belvedere.encoding.order import Words, order_by, run_starts, stable_order
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, KEY, WEIGHT, column_of
from belvedere.operators.counts import counted, counts_of
from belvedere.operators.grouping import group_count
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import SqlType

VALUE = "_x"
_END = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Touched:
    """Per group: by how much its number of distinct values grew, and its extremes after the epoch
    (encoded, NULL = none).
    """

    distinct: Ints
    least: pa.BinaryArray
    greatest: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class _Entries:
    """The touched records in key order: group number, value, count before and after."""

    place: Ints
    value: pa.BinaryArray
    suffix: pa.BinaryArray  # the record behind its group: the value, and by row the row's identity
    old: Ints
    new: Ints


@dataclass(frozen=True, slots=True)
class _Delta:
    """The same before anything is read: by how much each record's count changes, never 0."""

    place: Ints
    value: pa.BinaryArray
    suffix: pa.BinaryArray
    delta: Ints


@dataclass(frozen=True, slots=True)
class Ordered:
    table: TableId
    types: tuple[SqlType, ...]
    by_row: bool = False

    def partial(
        self, changes: pa.Table, inputs: Sequence[int], keys: pa.BinaryArray, codes: Ints
    ) -> pa.Table:
        """One row per (group, value) with its weight; rows with a NULL value do not count."""
        arrays = [changes.column(f"c{i}").combine_chunks() for i in inputs]
        weights = changes.column(WEIGHT).combine_chunks()
        rows = [changes.column(ID).combine_chunks()] if self.by_row else []
        if any(a.null_count for a in arrays):
            valid = pc.is_valid(arrays[0])
            for array in arrays[1:]:
                valid = pc.and_(valid, pc.is_valid(array))
            arrays, rows, weights = (
                [a.filter(valid) for a in arrays],
                [r.filter(valid) for r in rows],
                weights.filter(valid),
            )
            codes = codes[valid.to_numpy(zero_copy_only=False)]
        values = KeyCodec(self.types).encode(arrays)
        names = [KEY, VALUE, WEIGHT, ID] if self.by_row else [KEY, VALUE, WEIGHT]
        return pa.table([keys.take(pa.array(codes)), values, weights, *rows], names=names)

    def apply(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        parts: Sequence[pa.Table],
        least: pa.BinaryArray,
        greatest: pa.BinaryArray,
    ) -> Touched:
        """Write the counts of this slot's records; `keys` are the touched groups, with their
        extremes as of e-1.
        """
        entries = self._count(shard, keys, pa.concat_tables(parts).combine_chunks())
        appeared = ((entries.old == 0) & (entries.new > 0)).astype(np.int64)
        vanished = (entries.old > 0) & (entries.new == 0)
        distinct = group_count(entries.place, len(keys), appeared - vanished)
        mask = pa.array(vanished)
        gone = _Gone(
            entries.place[vanished], entries.value.filter(mask), entries.suffix.filter(mask)
        )
        low = self._extreme(shard, keys, entries, gone, least, reverse=False)
        high = self._extreme(shard, keys, entries, gone, greatest, reverse=True)
        return Touched(distinct, low, high)

    def rows_of(self, shard: Shard, group: bytes) -> Iterator[pa.BinaryArray]:
        """The identities of the rows of a group that have a value, as of e-1; of records by row."""
        before_row = KeyCodec(self.types)
        for records, _ in shard.scan_batches(self.table, *prefix_range(group)):
            values = pc.binary_slice(records, len(group), _END)
            packed = unpack(values, 0)
            starts = packed.starts + before_row.lengths(values)
            yield packed.slices(starts, packed.ends, None, pa.binary())

    def _count(self, shard: Shard, keys: pa.BinaryArray, rows: pa.Table) -> _Entries:
        """Add up the weights of each record, and write the counts of those that change."""
        touched = self._combine(keys, rows)
        group_keys = keys.take(pa.array(touched.place))
        records = pc.binary_join_element_wise(group_keys, touched.suffix, b"")
        if self.by_row:  # a row is there or not, and its change says which
            old = (touched.delta < 0).astype(np.int64)
            before, after = _present(touched.delta < 0), _present(touched.delta > 0)
        else:
            before = shard.get_many(self.table, records)
            old = counts_of(before)
            after = counted(old + touched.delta)
        shard.write(Write(self.table, records, after, before))
        return _Entries(touched.place, touched.value, touched.suffix, old, old + touched.delta)

    def _combine(self, keys: pa.BinaryArray, rows: pa.Table) -> _Delta:
        values = column_of(rows, VALUE)
        ids = column_of(rows, ID) if self.by_row else None
        found = pc.index_in(column_of(rows, KEY), keys)
        place = found.to_numpy(zero_copy_only=False).astype(np.int64)
        order, starts = _sorted(place, values, ids)
        delta = np.empty(0, np.int64)
        if len(starts):
            delta = np.add.reduceat(rows.column(WEIGHT).to_numpy()[order], starts)
        example = order[starts[delta != 0]]  # a row of each record that changes
        at = pa.array(example)
        value = suffix = values.take(at)
        if ids is not None:
            suffix = pc.binary_join_element_wise(value, ids.take(at), b"")
        return _Delta(place[example], value, suffix, delta[delta != 0])

    def _extreme(
        self,
        shard: Shard,
        keys: pa.BinaryArray,
        entries: _Entries,
        gone: _Gone,
        current: pa.BinaryArray,
        reverse: bool,
    ) -> pa.BinaryArray:
        """The extreme of every touched group after the epoch: of what stayed and what came."""
        added = _outermost(entries, len(keys), reverse)
        was_extreme = (
            pc.equal(gone.value, current.take(pa.array(gone.place)))
            .fill_null(False)
            .to_numpy(zero_copy_only=False)
        )
        lost = np.unique(gone.place[was_extreme])
        kept = current
        if len(lost):
            found, limits = current.to_pylist(), added.to_pylist()
            for g in lost.tolist():
                found[g] = self._search(
                    shard, keys[g].as_py(), gone.of(g, reverse), limits[g], reverse
                )
            kept = pa.array(found, pa.binary())
        better = pc.greater(added, kept) if reverse else pc.less(added, kept)
        return pc.if_else(pc.fill_null(better, False), added, pc.coalesce(kept, added))

    def _search(
        self, shard: Shard, key: bytes, gone: Iterator[bytes], limit: bytes | None, reverse: bool
    ) -> bytes | None:
        """The outermost record as of e-1 that stays, unless it lies beyond `limit`, which came in
        this epoch.

        Vanished records come in the order of the scan, so the two are walked in step.
        """
        low, high = prefix_range(key)
        for record, _ in shard.scan(self.table, low, high, reverse):
            suffix = record[len(key) :]
            if limit is not None and (suffix < limit + b"\xff" if reverse else suffix >= limit):
                # no value is the beginning of another, so the row's identity behind it does not
                # matter
                return None
            if suffix != next(gone, None):
                return suffix[: prefix_length(suffix, self.types)]
        return None


@dataclass(frozen=True, slots=True)
class _Gone:
    """Records that vanish in this epoch, by group and in value order."""

    place: Ints
    value: pa.BinaryArray
    suffix: pa.BinaryArray

    def of(self, g: int, reverse: bool) -> Iterator[bytes]:
        first, last = np.searchsorted(self.place, [g, g + 1]).tolist()
        for i in range(last - 1, first - 1, -1) if reverse else range(first, last):
            yield self.suffix[i].as_py()


def _sorted(place: Ints, values: pa.BinaryArray, ids: pa.BinaryArray | None) -> tuple[Ints, Ints]:
    """The order of rows by group, value and identity, and where each run of equal ones starts in
    it.
    """
    if not len(place):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    words = Words.of_numbers(place).then(Words.of(values))
    if words is None:
        order = stable_order(values)
        order = order[order_by(place[order])]
        same = ~run_starts(values.take(pa.array(order)))[1:] & (np.diff(place[order]) == 0)
    else:
        order = words.order()
        same = np.diff(words.numbers[order]) == 0
    if ids is not None and same.any():
        order = _ties_by_identity(order, same, ids)
        same = same & ~run_starts(ids.take(pa.array(order)))[1:]
    return order, np.flatnonzero(np.append(True, ~same))


def _ties_by_identity(order: Ints, same: Mask, ids: pa.BinaryArray) -> Ints:
    """Sort the few rows that share group and value with a neighbour by identity, each within its
    run.
    """
    tied = np.append(False, same) | np.append(same, False)
    run = np.cumsum(np.append(True, ~same))[tied]
    rows = order[tied]
    by_id = stable_order(ids.take(pa.array(rows)))
    order[tied] = rows[by_id[order_by(run[by_id])]]
    return order


def _present(mask: Mask) -> pa.BinaryArray:
    """Empty values where a record is there, NULL where it is not."""
    return pa.Array.from_buffers(
        pa.binary(),
        len(mask),
        [
            pa.array(mask).buffers()[1],
            pa.py_buffer(np.zeros(len(mask) + 1, np.int32)),
            pa.py_buffer(b""),
        ],
    )


def _outermost(entries: _Entries, groups: int, reverse: bool) -> pa.BinaryArray:
    """Per group the first (last) touched value that is there after the epoch; entries stand in key
    order.
    """
    present = np.flatnonzero(entries.new > 0)
    if not reverse:
        present = present[::-1]
    at = np.full(groups, -1, np.int64)
    at[entries.place[present]] = present  # the last assignment wins
    return entries.value.take(pa.array(at, mask=at < 0))
