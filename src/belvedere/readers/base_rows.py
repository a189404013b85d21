"""Rows of base tables as columns, now or as of a committed vector.

A store with a history of rows has them as of the vector. In others, rows as of a vector are a
snapshot minus what was logged after the vector, by before-images; for a table without them its
delta view has the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from belvedere.catalog.definitions import TableDefinition
from belvedere.changes.cells import images
from belvedere.changes.net import NetChanges, combined, net_operations
from belvedere.encoding import KeyCodec, RowCodec
from belvedere.encoding.ranges import EVERYTHING, KeyRange, Ranges
from belvedere.errors import Damaged, Dropped
from belvedere.libraries import pa, pc
from belvedere.readers.ranges import LARGEST, Place, by_slot, read_ranges
from belvedere.stores.base import BaseSnapshot, Store, is_odd
from belvedere.types import Epoch, Schema, Vector

_NETTED_BYTES = 32 << 20


@lru_cache(maxsize=256)
def codecs(schema: Schema) -> tuple[KeyCodec, RowCodec]:
    keys = KeyCodec(tuple(c.type for c in schema.key_columns))
    return keys, RowCodec(tuple(c.type for c in schema.value_columns))


def decode_rows(
    schema: Schema,
    keys: pa.BinaryArray,
    values: pa.BinaryArray,
    only: Collection[int] | None = None,
) -> list[pa.Array]:
    """Columns in schema order. With `only`, the others are NULL: they take no time."""
    if only is None:
        only = range(len(schema.columns))
    found = dict(zip(only, decode_columns(schema, keys, values, [*only]), strict=True))
    return [
        found[i] if i in found else pa.nulls(len(keys), column.type.arrow)
        for i, column in enumerate(schema.columns)
    ]


def decode_columns(
    schema: Schema, keys: pa.BinaryArray, values: pa.BinaryArray, numbers: Sequence[int]
) -> list[pa.Array]:
    """Some columns, by their numbers in the schema."""
    key_codec, row_codec = codecs(schema)
    names = [schema.names[i] for i in numbers]
    found: dict[str, pa.Array] = {}
    if not set(names).isdisjoint(schema.key):
        found |= zip(schema.key, key_codec.decode(keys), strict=True)
    rest = [(i, c.name) for i, c in enumerate(schema.value_columns) if c.name in names]
    if rest:
        data = row_codec.decode(values, only=[i for i, _ in rest])
        found |= zip((name for _, name in rest), data, strict=True)
    return [found[name] for name in names]


def rows_as_of(
    store: Store,
    table: TableDefinition,
    vector: Vector,
    low: bytes = b"",
    high: bytes | None = None,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Base rows as of a vector: a snapshot minus what was logged after the vector, by
    before-images.
    """
    return _rows_as_of(store, table, vector, (KeyRange((), low, high),), LARGEST)


def _rows_as_of(
    store: Store, table: TableDefinition, vector: Vector, ranges: Ranges, size: int
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The same of several ranges; of what was logged after the vector all between the first and the
    last of them.
    """
    if not ranges:
        return
    with store.base.snapshot() as snapshot:
        later = _later(store, table, vector, ranges[0].low, ranges[-1].high)
        found = table_records(snapshot, table, ranges, size)
        if later is None:
            yield from found
            return
        assert later.before is not None  # made of before-images
        present = pc.is_valid(later.before)
        yield later.keys.filter(present), later.before.filter(present)
        for keys, values in found:
            untouched = pc.invert(pc.is_in(keys, later.keys))
            yield keys.filter(untouched), values.filter(untouched)


def _later(
    store: Store, table: TableDefinition, vector: Vector, low: bytes, high: bytes | None
) -> NetChanges | None:
    """Net changes in the range since the vector, at least up to the snapshot that the caller has
    open.

    Operations after the snapshot do no harm: their before-image is the row of the snapshot, or an
    earlier one.
    """
    images = _FirstImages()
    for stream, end in store.base.end().items():
        for block in store.base.read_log(stream, vector[stream], end):
            if block.table == table.id and block.before is not None:
                mask = pc.greater_equal(block.keys, low)
                mask = mask if high is None else pc.and_(mask, pc.less(block.keys, high))
                # only the range is kept, not the log
                images.add(block.keys.filter(mask), block.before.filter(mask))
    found = images.net()
    return found if len(found) else None


class _FirstImages:
    """The first before-image of every key, of images in log order.

    Netted on the way: a row that is written often is kept once.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[pa.Array, pa.Array]] = []
        self._size, self._most = 0, _NETTED_BYTES

    def add(self, keys: pa.Array, before: pa.Array) -> None:
        self._parts.append((keys, before))
        self._size += keys.nbytes + before.nbytes
        if self._size > self._most:
            found = self.net()
            assert found.before is not None  # made of before-images
            self._parts, self._size = (
                [(found.keys, found.before)],
                found.keys.nbytes + found.before.nbytes,
            )
            self._most = 2 * self._size + _NETTED_BYTES  # so that it is seldom done in vain

    def net(self) -> NetChanges:
        keys, before = (combined([part[i] for part in self._parts]) for i in (0, 1))
        return net_operations(keys, before, before)


def rows_at(
    store: Store,
    table: TableDefinition,
    epoch: Epoch,
    vector: Vector,
    ranges: Ranges = EVERYTHING,
    size: int = LARGEST,
) -> Iterator[pa.Table]:
    """Rows of a base table at a committed cut that the caller holds; of keys in some ranges, and
    perhaps a few others that were written since.
    """
    for keys, values in records_at(store, table, epoch, vector, ranges, size):
        yield pa.table(decode_rows(table.schema, keys, values), schema=table.schema.arrow)


def records_at(
    store: Store,
    table: TableDefinition,
    epoch: Epoch,
    vector: Vector,
    ranges: Ranges,
    size: int = LARGEST,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    if table.delta:
        yield from _delta_rows(store, table, epoch, ranges, size)
    elif store.history is not None:
        with store.history.as_of(vector) as rows:
            yield from table_records(rows, table, ranges, size)
    else:
        yield from _rows_as_of(store, table, vector, ranges, size)


def delta_rows(table: TableDefinition, records: pa.BinaryArray) -> pa.BinaryArray:
    """The rows that records of a delta view stand for; NULL where there is none."""
    return records if table.mapping is None else images(table.mapping, records)


def present(
    table: TableDefinition, batches: Iterable[tuple[pa.Array, pa.Array]]
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and rows from records of a delta view, without those that stand for no row."""
    for keys, records in batches:
        rows = delta_rows(table, records)
        there = rows.is_valid()
        if table.mapping is not None:
            there = pc.and_not(there, is_odd(keys))
        if rows.null_count or not pc.all(there).as_py():
            keys, rows = keys.filter(there), rows.filter(there)
        if len(rows):
            yield keys, rows


def _delta_rows(
    store: Store, table: TableDefinition, epoch: Epoch, ranges: Ranges, size: int
) -> Iterator[tuple[pa.Array, pa.Array]]:
    columns = len(table.schema.key)
    for slot, some in by_slot(ranges, columns, store.state.slots):
        reader = store.state.reader(slot, epoch)
        try:
            place = Place.of_state(reader, table.delta)
            yield from present(table, read_ranges(some, columns, place, size))
        finally:
            reader.close()


def table_records(
    snapshot: BaseSnapshot,
    table: TableDefinition,
    ranges: Ranges = EVERYTHING,
    size: int = LARGEST,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Keys and values of a base table as it is in a snapshot."""
    table.check_kept()
    return read_ranges(ranges, len(table.schema.key), Place.of_snapshot(snapshot, table.id), size)


def table_rows(
    snapshot: BaseSnapshot,
    table: TableDefinition,
    ranges: Ranges = EVERYTHING,
    size: int = LARGEST,
) -> Iterator[pa.Table]:
    try:
        for keys, values in table_records(snapshot, table, ranges, size):
            yield pa.table(decode_rows(table.schema, keys, values), schema=table.schema.arrow)
    except Dropped:
        raise Dropped(table.name) from None
    except Damaged as error:
        raise Damaged(f"table {table.name}: {error.what}") from error
