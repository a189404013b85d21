"""A base table: the rows that users write.

Every write is durable, and logged for the views, when the call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.history import AsOf
from belvedere.changes.net import combined
from belvedere.encoding import prefix_range, too_long
from belvedere.encoding.one_row import DictDecoder
from belvedere.errors import Damaged, Dropped, SchemaError, StoreFull, TooLarge
from belvedere.input.rows import check_names, to_arrow, to_mask
from belvedere.input.values import plain, plain_key
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import codecs, decode_rows
from belvedere.readers.cut import open_cut
from belvedere.readers.rows import check_limit, key_tuple, row_decoder
from belvedere.stores.base import Store, TableId
from belvedere.types import Key, Row, Schema, Vector

# operations per transaction: a larger call is several transactions, each whole or not at all; rows
# per read
BATCH = 100_000
BATCH_BYTES = 32 << 20  # the same for large rows
# keys, and values or NULL for deletes
# types of columns whose values are encoded, or refused, without a look at them before
_SIMPLE = {"string": str, "binary": bytes, "bigint": int, "int": int}
Operations: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"


class Table:
    """Rows under a key. `put` inserts or overwrites a whole row; a delete names only the key."""

    def __init__(
        self,
        store: Store,
        definition: TableDefinition,
        written: Callable[[Vector], None] | None = None,
    ) -> None:
        self._store, self._definition, self._written = store, definition, written
        self._keys, self._rows = codecs(definition.schema)
        self._value_names = tuple(c.name for c in definition.schema.value_columns)
        self._columns = frozenset(definition.schema.names)
        self._longest = store.capabilities.longest_key

    @cached_property
    def _simple(self) -> type | None:
        """Values of exactly this type are a whole key, and shown as they are given."""
        kinds = [column.type.name for column in self.schema.key_columns]
        return _SIMPLE.get(kinds[0]) if len(kinds) == 1 else None

    @cached_property
    def _decode_one(self) -> DictDecoder:
        return row_decoder(self.schema)

    def __repr__(self) -> str:
        return f"<Table {self.name} of {self._store.url}>"

    def within(self, store: Store) -> Table:
        """The same table in another store that knows it: in that of a transaction."""
        _ = self._simple, self._decode_one  # made once for all transactions, not in each
        found = object.__new__(Table)
        found.__dict__.update(self.__dict__)
        found._store, found._written = store, None
        return found

    @property
    def id(self) -> TableId:
        return self._definition.id

    @property
    def name(self) -> str:
        return self._definition.name

    @property
    def schema(self) -> Schema:
        return self._definition.schema

    def put(self, row: Row) -> Vector:
        """Insert or overwrite one row; returns the position of the log after it."""
        if not isinstance(row, Mapping):
            raise SchemaError(f"a row is a dict of column values, not a {type(row).__name__}")
        if not self._columns.issuperset(row):
            row = self._renamed(row)
        values = {}
        for column in self.schema.columns:
            if (given := row.get(column.name)) is not None:
                values[column.name] = plain(given, column)
            elif column.name in self.schema.key or not column.nullable:
                raise SchemaError(
                    f"{'the key' if column.name in self.schema.key else 'column'} {column.name}"
                    " must not be NULL"
                )
        try:
            key = self._key([values[name] for name in self.schema.key])
            value = self._rows.encode_one([values.get(name) for name in self._value_names])
        except SchemaError:
            to_arrow([row], self.schema)  # which names the column that does not fit
            raise
        return self._write_one(key, value)

    def put_many(self, rows: Any) -> Vector:
        """Insert or overwrite rows: a list of dicts, Arrow tables and batches, pandas and Polars
        frames.
        """
        return self._write_table(to_arrow(rows, self.schema), None)

    def delete(self, key: Key) -> Vector:
        """Delete a row, if it is there."""
        return self._write_one(self._full_key(key), None)

    def delete_many(self, keys: Iterable[Key]) -> Vector:
        if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
            raise SchemaError(
                f"expected keys as a list, got {type(keys).__name__}: for one key use delete()"
            )
        encoded = pa.array([self._full_key(key) for key in keys], pa.binary())
        starts = range(0, len(encoded), BATCH)
        parts = (encoded[start : start + BATCH] for start in starts)
        return self._write(
            ((part, pa.nulls(len(part), pa.binary())) for part in parts), len(encoded)
        )

    def write_many(self, rows: Any, deletes: Any = None) -> Vector:
        """Operations in their order: rows to put, and where `deletes` is true rows of which only
        the key matters.
        """
        if deletes is None:
            return self.put_many(rows)
        mask = to_mask(deletes)
        return self._write_table(to_arrow(rows, self.schema, mask), mask)

    def _write_table(self, table: pa.Table, deletes: pa.Array | None) -> Vector:
        """Keys are checked before anything is written; values, which may be large, are encoded part
        by part.
        """
        keys = self._keys.encode([table.column(name) for name in self.schema.key])
        self._check_lengths(keys)
        bounds = [0, *accumulate(part.num_rows for part in _parts(table))]
        parts = (self._encoded(keys, table, deletes, slice(*ends)) for ends in pairwise(bounds))
        return self._write(parts, len(keys))

    def _check_lengths(self, keys: pa.BinaryArray) -> None:
        if self._longest is None:
            return
        long = too_long(keys, self._longest)
        if pc.any(long).as_py():
            number = pc.index(long, True).as_py()
            raise SchemaError(f"row {number}: the key is longer than {self._longest} bytes")

    def _encoded(
        self, keys: pa.BinaryArray, table: pa.Table, deletes: pa.Array | None, part: slice
    ) -> Operations:
        rows = table.slice(part.start, part.stop - part.start)
        columns = [rows.column(name) for name in self._value_names]
        values = (
            self._rows.encode(columns, rows=rows.num_rows) if columns else _blank(rows.num_rows)
        )
        if deletes is not None:
            values = pc.if_else(deletes[part], pa.scalar(None, pa.binary()), values)
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return keys[part], values

    def get(self, key: Key, as_of: AsOf | None = None) -> Row | None:
        """The row as it is now, or None.

        Every read takes `as_of`: an epoch, or a datetime (UTC if it has no zone), within the
        history that is kept; see `Database.keep_history`.
        """
        encoded = self._full_key(key)
        if as_of is not None:
            found: list[Row] = self._past(encoded, encoded + b"\0", as_of).to_pylist()
            return found[0] if found else None
        try:
            with self._store.base.snapshot() as snapshot:
                value = snapshot.get(self._definition.id, encoded)
        except Dropped:
            raise Dropped(self.name) from None
        if value is None:
            return None
        try:
            values = (key,) if type(key) is self._simple else self._keys.decode_one(encoded)
            return self._decode_one(values, value)
        except Damaged as error:
            raise Damaged(f"table {self.name}: {error.what}") from error

    def scan(
        self,
        prefix: Sequence[Any] | Key = (),
        limit: int | None = None,
        as_of: AsOf | None = None,
    ) -> Iterator[Row]:
        """Rows in key order, all or those whose key begins with `prefix`."""
        left = check_limit(limit)
        size = BATCH if left is None else min(left, BATCH) or 1
        for batch in self.batches(prefix, size, as_of):
            rows = batch.to_pylist() if left is None else batch.slice(0, left).to_pylist()
            yield from rows
            if left is not None and (left := left - len(rows)) <= 0:
                return

    def to_arrow(self, as_of: AsOf | None = None) -> pa.Table:
        return pa.concat_tables([self.schema.arrow.empty_table(), *self.batches(as_of=as_of)])

    def batches(
        self, prefix: Sequence[Any] | Key = (), size: int = BATCH, as_of: AsOf | None = None
    ) -> Generator[pa.Table, None, None]:
        """The same as Arrow tables of at most `size` rows, one snapshot for all of them."""
        values = plain_key(key_tuple(prefix), self.schema.key_columns)
        low, high = prefix_range(self._keys.encode_one(values)) if values else (b"", None)
        if as_of is not None:
            past = self._past(low, high, as_of)
            yield from (past.slice(start, size) for start in range(0, past.num_rows, size))
            return
        try:
            with self._store.base.snapshot() as snapshot:
                for keys, data in snapshot.scan(self._definition.id, low, high, size):
                    yield pa.table(decode_rows(self.schema, keys, data), schema=self.schema.arrow)
        except Dropped:
            raise Dropped(self.name) from None
        except Damaged as error:
            raise Damaged(f"table {self.name}: {error.what}") from error

    def _past(self, low: bytes, high: bytes | None, as_of: AsOf) -> pa.Table:
        """Rows of the past in key order."""
        from belvedere.readers.keyed import table_at  # it knows SQL, which others do without

        try:
            with open_cut(self._store, as_of) as cut:
                found = list(table_at(cut, self._definition, low, high))
        except Dropped:
            raise Dropped(self.name) from None
        keys, values = (combined([part[i] for part in found]) for i in (0, 1))
        order = pc.sort_indices(keys)
        rows = decode_rows(self.schema, keys.take(order), values.take(order))
        return pa.table(rows, schema=self.schema.arrow)

    def _write_one(self, key: bytes, value: bytes | None) -> Vector:
        self._definition.check_writable()
        try:
            return self._note(
                self._store.base.put_one(
                    self._definition.id, key, value, self._definition.before_images
                )
            )
        except Dropped:
            raise Dropped(self.name) from None

    def _write(self, parts: Iterable[Operations], total: int) -> Vector:
        """Each part in a transaction of its own.

        One that is too large with the rows that it replaces is halved.
        """
        self._definition.check_writable()
        done, position = 0, Vector() if total else self._store.base.end()
        for part in parts:
            waiting = [part]
            while waiting:
                keys, values = waiting.pop()
                try:
                    written = self._store.base.write(
                        self._definition.id, keys, values, self._definition.before_images
                    )
                    position = position.merge(written)
                except TooLarge:
                    half = len(keys) // 2
                    waiting += [(keys[half:], values[half:]), (keys[:half], values[:half])]
                    continue
                except Dropped:
                    raise Dropped(self.name) from None
                except StoreFull as error:
                    if not done:
                        raise
                    so_far = f"the first {done:,} of {total:,} rows are written, the others are not"
                    raise StoreFull(f"{so_far}. For the next batch: {error}") from error
                done += len(keys)
        return self._note(position)

    def _note(self, position: Vector) -> Vector:
        if self._written is not None:
            self._written(position)
        return position

    def _full_key(self, key: Key) -> bytes:
        if type(key) is self._simple:
            return self._key((key,))
        values = key_tuple(key)
        if len(values) != len(self.schema.key):
            key = ", ".join(self.schema.key)
            raise SchemaError(
                f"the key of {self.name} is ({key}): give {len(self.schema.key)} value(s), not"
                f" {len(values)}"
            )
        if any(v is None for v in values):
            raise SchemaError(f"the key of {self.name} must not be NULL")
        return self._key(
            [
                plain(value, column)
                for value, column in zip(values, self.schema.key_columns, strict=True)
            ]
        )

    def _key(self, values: Sequence[Any]) -> bytes:
        encoded = self._keys.encode_one(values)
        if self._longest is not None and len(encoded) > self._longest:
            raise SchemaError(
                f"the key of this row of {self.name} is {len(encoded)} bytes long, at most"
                f" {self._longest} are possible"
            )
        return encoded

    def _renamed(self, row: Row) -> Row:
        """The row under the names of the schema: they are compared without case."""
        check_names(row, self.schema)
        spelled = {c.name.lower(): c.name for c in self.schema.columns}
        return {spelled[str(name).lower()]: value for name, value in row.items()}


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    """Slices of at most `BATCH` rows and `BATCH_BYTES`, if they have more than one row."""
    for start in range(0, table.num_rows, BATCH):
        yield from _halved(table.slice(start, BATCH))


def _halved(table: pa.Table) -> Iterator[pa.Table]:
    if table.num_rows < 2 or table.nbytes <= BATCH_BYTES:
        yield table
        return
    half = table.num_rows // 2
    yield from _halved(table.slice(0, half))
    yield from _halved(table.slice(half))


def _blank(count: int) -> pa.BinaryArray:
    return pa.array([b""] * count, pa.binary())
