"""What a source's transaction did to a relation, as operations on our tables.

Of a relation that is kept they are rows by their keys, so to do them twice is to do them once. Of
others they pass, with the rows before as the source tells them: these must not come twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.catalog.definitions import TableDefinition
from belvedere.encoding import too_long
from belvedere.errors import SchemaError
from belvedere.input.rows import to_arrow
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import codecs
from belvedere.sources.base import RelationChange
from belvedere.stores.base import Operations, TableId

PART_BYTES = 16 << 20  # of keys and values, when a transaction or a copy has to be divided


@dataclass(frozen=True, slots=True)
class Together:
    """Operations on rows with the same keys, in the same order: what somebody did to a relation, in
    every table of ours that has it. Each part of it is written in one transaction.
    """

    tables: tuple[Operations, ...]

    @property
    def keys(self) -> pa.BinaryArray:
        return self.tables[0].keys

    @property
    def size(self) -> int:
        columns = ((each.keys, each.values, each.before) for each in self.tables)
        return sum(column.nbytes for some in columns for column in some if column is not None)

    def slice(self, start: int, stop: int) -> Together:
        part = slice(start, stop)
        return Together(
            tuple(
                replace(
                    each,
                    keys=each.keys[part],
                    values=each.values[part],
                    before=None if each.before is None else each.before[part],
                )
                for each in self.tables
            )
        )


def change_operations(
    table: TableDefinition, change: RelationChange, longest_key: int | None
) -> Together:
    """Rows that are gone are deleted, all others put. Raises SchemaError for rows that the table
    cannot hold.
    """
    keys, values = encode_rows(table, change.after, longest_key)
    before = encode_keys(table, change.before)
    gone = before.filter(pc.invert(pc.is_in(before, keys)))
    nothing = pa.nulls(len(gone), pa.binary())
    every = pa.concat_arrays([gone, keys]), pa.concat_arrays([nothing, values])
    return Together((made(table, *every),))


def passing_operations(
    table: TableDefinition, change: RelationChange, longest_key: int | None, rows: TableId = 0
) -> Together:
    """The same as operations that pass, in the order of their keys; and as rows of a table, if
    there is one.
    """
    keys, values = encode_rows(table, change.after, longest_key)
    gone, images = encode_rows(table, change.before, longest_key)
    every = pa.concat_arrays([keys, gone]).unique()
    every = every.take(pc.sort_indices(every))
    after, before = (
        found.take(pc.index_in(every, known)) for known, found in ((keys, values), (gone, images))
    )
    passing = Operations(table.id, every, after, True, before)
    kept = (Operations(rows, every, after, table.before_images),) if rows else ()
    return Together((passing, *kept))


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


def divided(operations: Together) -> Iterator[Together]:
    """Parts of about PART_BYTES, or of one row."""
    rows = len(operations.keys)
    if rows < 2 or operations.size <= PART_BYTES:
        yield operations
        return
    half = rows // 2
    for part in (operations.slice(0, half), operations.slice(half, rows)):
        yield from divided(part)


def behind(operations: Together, last: bytes) -> Together:
    """Those with keys behind one, of operations in the order of their keys."""
    start = pc.sum(pc.less_equal(operations.keys, pa.scalar(last, pa.binary()))).as_py() or 0
    return operations.slice(start, len(operations.keys))
