"""What a source's transaction did to a relation, as operations on our table: rows by their keys, so
that to do them twice is to do them once.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.definitions import TableDefinition
from belvedere.encoding import too_long
from belvedere.errors import SchemaError
from belvedere.input.rows import to_arrow
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import codecs
from belvedere.sources.base import RelationChange
from belvedere.stores.base import Operations

PART_BYTES = 16 << 20  # of keys and values, when a transaction or a copy has to be divided


def change_operations(
    table: TableDefinition, change: RelationChange, longest_key: int | None
) -> Operations:
    """Rows that are gone are deleted, all others put. Raises SchemaError for rows that the table
    cannot hold.
    """
    keys, values = encode_rows(table, change.after, longest_key)
    before = encode_keys(table, change.before)
    gone = before.filter(pc.invert(pc.is_in(before, keys)))
    nothing = pa.nulls(len(gone), pa.binary())
    return made(table, pa.concat_arrays([gone, keys]), pa.concat_arrays([nothing, values]))


def made(table: TableDefinition, keys: pa.BinaryArray, values: pa.BinaryArray) -> Operations:
    return Operations(table.id, keys, values, table.before_images)


def encode_keys(table: TableDefinition, rows: pa.Table) -> pa.BinaryArray:
    codec, _ = codecs(table.schema)
    return codec.encode([rows.column(name) for name in table.schema.key])


def encode_rows(
    table: TableDefinition, rows: pa.Table, longest_key: int | None
) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """Keys and values of rows that were checked."""
    schema = table.schema
    checked = to_arrow(rows, schema)
    keys = encode_keys(table, checked)
    if longest_key is not None and pc.any(too_long(keys, longest_key)).as_py():
        raise SchemaError(f"a key of {table.name} is longer than {longest_key} bytes")
    columns = [checked.column(column.name) for column in schema.value_columns]
    if not columns:
        return keys, pa.array([b""] * len(keys), pa.binary())
    return keys, codecs(schema)[1].encode(columns, rows=checked.num_rows)


def divided(operations: Operations) -> Iterator[Operations]:
    """Parts of about PART_BYTES, or of one operation."""
    rows = len(operations.keys)
    size = operations.keys.nbytes + operations.values.nbytes
    if rows < 2 or size <= PART_BYTES:
        yield operations
        return
    half = rows // 2
    for part in (slice(0, half), slice(half, rows)):
        yield from divided(
            Operations(
                operations.table,
                operations.keys[part],
                operations.values[part],
                operations.before_images,
            )
        )
