"""A plain Python record of what was written: base rows as of any vector of positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from belvedere.catalog.definitions import TableDefinition
from belvedere.encoding import KeyCodec, RowCodec
from belvedere.types import Schema

Row = tuple[Any, ...]
Operation = tuple[Row, Row | None]


class TableRows:
    """The rows of one table by encoded key, and what identifies the content of each."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.value_places = [i for i, name in enumerate(schema.names) if name not in schema.key]
        self.encode_key = KeyCodec(
            tuple(c.type for c in schema.key_columns), normalize=False
        ).encode_one
        self._encode_value = RowCodec(tuple(c.type for c in schema.value_columns)).encode_one
        self.rows: dict[bytes, Row] = {}
        self.images: dict[bytes, bytes] = {}

    def value(self, row: Row) -> bytes:
        return self._encode_value(tuple(row[i] for i in self.value_places))

    def put(self, key: bytes, row: Row | None) -> None:
        self.rows.pop(key, None)
        if row is not None:
            self.rows[key], self.images[key] = row, self.value(row)


class Model:
    """What was written to some tables, in log order, and the rows as of a vector."""

    def __init__(self, tables: Sequence[TableDefinition]) -> None:
        self.tables = {t.id: TableRows(t.schema) for t in tables}
        self.logs: dict[str, list[tuple[int, bytes, Row | None]]] = {}
        self._at: dict[str, int] = {}
        self._stream_of: dict[tuple[int, bytes], str] = {}

    def write(self, store: Any, table: TableDefinition, operations: Sequence[Operation]) -> None:
        rows = self.tables[table.id]
        encoded = [
            (rows.encode_key(key), None if row is None else rows.value(row))
            for key, row in operations
        ]
        ends = store.base.end()
        arrays = [pa.array([e[i] for e in encoded], pa.binary()) for i in (0, 1)]
        store.base.write(table.id, *arrays, table.before_images)
        for stream, end in store.base.end().items():
            for block in store.base.read_log(stream, ends.get(stream, 0), end):
                self._stream_of |= {(table.id, key): stream for key in block.keys.to_pylist()}
        for (key, _), (_, row) in zip(encoded, operations, strict=True):
            self.logs.setdefault(self._stream_of[table.id, key], []).append((table.id, key, row))

    def advance(self, vector: Mapping[str, int]) -> bool:
        """Go to the rows as of a vector; whether that is another one than before."""
        moved = False
        for stream, position in vector.items():
            start = self._at.get(stream, 0)
            assert position >= start, "the committed vector went back"
            for table, key, row in self.logs.get(stream, [])[start:position]:
                self.tables[table].put(key, row)
                moved = True
            self._at[stream] = position
        return moved
