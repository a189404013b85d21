"""The rows of a view, as the algorithms look at them: in its table, or in memory while it is
loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from belvedere.capture.images import encode_keys, encode_rows
from belvedere.capture.operations import made
from belvedere.catalog.definitions import TableDefinition
from belvedere.errors import SourceError
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import decode_rows
from belvedere.stores.base import Operations, Store
from belvedere.warehouse.exchange import values_of
from belvedere.warehouse.rows import Key, Row, Shape


class Gathered:
    """In memory."""

    def __init__(self, shape: Shape, rows: Iterable[Row]) -> None:
        self._shape, self.rows = shape, dict.fromkeys(rows)

    def rows_with(self, member: int, keys: Collection[Key]) -> Iterable[Row]:
        key_of = self._shape.key_shown(member)
        return [row for row in self.rows if key_of(row) in keys]

    def counts(self, rows: Collection[Row]) -> Iterable[int]:
        return [int(row in self.rows) for row in rows]

    def change(self, weights: Mapping[Row, int]) -> None:
        for row, weight in weights.items():
            if weight > 0:
                self.rows[row] = None
            else:
                del self.rows[row]


class Stored:
    """In a table that only this process writes. Its key is the keys of all relations, so a row is
    there once or not at all.
    """

    def __init__(self, store: Store, table: TableDefinition, shape: Shape) -> None:
        self._store, self._table, self._shape = store, table, shape

    def rows_with(self, member: int, keys: Collection[Key]) -> Iterable[Row]:
        """Reads all rows."""
        key_of = self._shape.key_shown(member)
        return [row for row in self._rows() if key_of(row) in keys]

    def _rows(self) -> Iterator[Row]:
        with self._store.base.snapshot() as snapshot:
            for keys, values in snapshot.scan(self._table.id):
                columns = decode_rows(self._table.schema, keys, values)
                yield from zip(*map(values_of, columns), strict=True)

    def counts(self, rows: Collection[Row]) -> Iterable[int]:
        if not rows:
            return []
        keys, values = self._encode(list(rows))
        with self._store.base.snapshot() as snapshot:
            there = snapshot.get_many(self._table.id, keys)
        return [int(same) for same in pc.fill_null(pc.equal(there, values), False).to_pylist()]

    def operations(self, weights: Mapping[Row, int]) -> list[Operations]:
        """What has to be written."""
        come = [row for row, weight in weights.items() if weight > 0]
        gone = [row for row, weight in weights.items() if weight < 0]
        if any(abs(weight) > 1 for weight in weights.values()):
            raise SourceError(
                f"{self._table.name} would have a row twice: its sources have changed without"
                " telling it. Drop the view and create it again"
            )
        if not weights:
            return []
        keys, values = self._encode(come)
        lost = encode_keys(self._table, self.table(gone))
        lost = lost.filter(pc.invert(pc.is_in(lost, keys)))
        nothing = pa.nulls(len(lost), pa.binary())
        both = pa.concat_arrays([lost, keys]), pa.concat_arrays([nothing, values])
        return [made(self._table, *both)]

    def table(self, rows: Sequence[Row]) -> pa.Table:
        schema = self._table.schema.arrow
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _encode(self, rows: Sequence[Row]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
        longest = self._store.capabilities.longest_key
        return encode_rows(self._table, self.table(rows), longest)
