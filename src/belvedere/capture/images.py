"""Changes of a relation in the form in which our tables have rows: keys and values.

What comes from a source in one piece is brought into it relation by relation, for all transactions
at once, since most are small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from belvedere.catalog.definitions import TableDefinition
from belvedere.encoding import too_long
from belvedere.errors import SchemaError
from belvedere.input.rows import to_arrow
from belvedere.libraries import pa, pc
from belvedere.readers.base_rows import codecs
from belvedere.sources.base import Event, RelationChange, SourceTransaction


@dataclass(frozen=True, slots=True)
class Images:
    """Of a change: keys and values of the rows after it, and of those before. Of a table whose rows
    are here, these have no values.
    """

    keys: pa.BinaryArray
    values: pa.BinaryArray
    before_keys: pa.BinaryArray
    before: pa.BinaryArray | None


class Encoder:
    """Of what came in one piece."""

    def __init__(self, events: Iterable[Event], longest_key: int | None) -> None:
        self._longest_key = longest_key
        self._changes: dict[str, list[RelationChange]] = {}
        self._known: dict[int, Images] = {}  # by the identity of a change
        for event in events:
            if isinstance(event, SourceTransaction):
                for change in event.changes:
                    self._changes.setdefault(change.relation, []).append(change)

    def images(self, table: TableDefinition, change: RelationChange) -> Images:
        """Raises SchemaError for rows that the table cannot hold."""
        if id(change) not in self._known:
            self._encode(table, change)
        return self._known[id(change)]

    def _encode(self, table: TableDefinition, change: RelationChange) -> None:
        """All changes of the relation; if one of them is wrong, each when it is asked for."""
        together = self._changes.pop(change.relation, [change])
        try:
            found = list(_encoded(table, together, self._longest_key))
        except SchemaError:
            together = [change]
            found = list(_encoded(table, together, self._longest_key))
        self._known |= {id(each): images for each, images in zip(together, found, strict=True)}


def _encoded(
    table: TableDefinition, changes: list[RelationChange], longest_key: int | None
) -> Iterator[Images]:
    after = [change.after for change in changes]
    before = [change.before for change in changes]
    keys, values = encode_rows(table, pa.concat_tables(after), longest_key)
    if table.passes:
        before_keys, images = encode_rows(table, pa.concat_tables(before), longest_key)
    else:
        before_keys, images = encode_keys(table, pa.concat_tables(before)), None
    for now, then in zip(_parts(after), _parts(before), strict=True):
        known = None if images is None else images[then]
        yield Images(keys[now], values[now], before_keys[then], known)


def _parts(tables: list[pa.Table]) -> Iterator[slice]:
    """Where the rows of each stand among those of all."""
    ends = accumulate((table.num_rows for table in tables), initial=0)
    return (slice(low, high) for low, high in pairwise(ends))


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
