"""What a source's transaction did to a relation, as operations on our tables.

Of a relation that is kept they are rows by their keys, so to do them twice is to do them once. Of
others they pass, with the rows before as the source tells them: these must not come twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.capture.images import Images
from belvedere.catalog.definitions import TableDefinition
from belvedere.libraries import pa, pc
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


def change_operations(table: TableDefinition, images: Images) -> Together:
    """Rows that are gone are deleted, all others put."""
    gone = images.before_keys
    gone = gone.filter(pc.invert(pc.is_in(gone, images.keys)))
    nothing = pa.nulls(len(gone), pa.binary())
    every = pa.concat_arrays([gone, images.keys]), pa.concat_arrays([nothing, images.values])
    return Together((made(table, *every),))


def passing_operations(table: TableDefinition, images: Images, rows: TableId = 0) -> Together:
    """The same as operations that pass, in the order of their keys; and as rows of a table, if
    there is one.
    """
    assert images.before is not None
    every = pa.concat_arrays([images.keys, images.before_keys]).unique()
    every = every.take(pc.sort_indices(every))
    after = images.values.take(pc.index_in(every, images.keys))
    before = images.before.take(pc.index_in(every, images.before_keys))
    passing = Operations(table.id, every, after, True, before)
    kept = (Operations(rows, every, after, table.before_images),) if rows else ()
    return Together((passing, *kept))


def made(table: TableDefinition, keys: pa.BinaryArray, values: pa.BinaryArray) -> Operations:
    return Operations(table.id, keys, values, table.before_images)


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
