"""Rows of views: from records of the view's table to rows, and from keys to records.

KeyedSink   key columns | the other columns
BagSink     all columns | how often the row is there
Arrange     key columns | columns behind the named ones; the slot is that of the named columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from belvedere.catalog.definitions import ViewDefinition
from belvedere.encoding import KeyCodec, RowCodec, dict_decoder
from belvedere.encoding.one_row import DictDecoder
from belvedere.errors import Damaged, SchemaError
from belvedere.input.values import plain_key
from belvedere.libraries import np, pa
from belvedere.operators.base import ViewTable
from belvedere.operators.counts import counts_of
from belvedere.types import DOUBLE, Key, Row, Schema

_SEVERAL = (tuple, list)


@dataclass(frozen=True)
class ViewRows:
    """How the records of one view are read.

    `slot_columns`: so many key columns decide the slot; 0 if all of them do.
    """

    name: str
    schema: Schema
    sink: ViewTable
    columns: tuple[int, ...]

    @classmethod
    def of(cls, view: ViewDefinition) -> ViewRows:
        return cls(view.name, view.schema, view.planned.sink, view.planned.columns)

    @cached_property
    def slot_columns(self) -> int:
        return self.sink.slot_columns

    @cached_property
    def owner_columns(self) -> int:
        """So many key columns decide the slot."""
        return self.slot_columns or len(self._order)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The view's columns that form the record key."""
        return tuple(self.schema.names.index(name) for name in self.schema.key)

    @cached_property
    def _fields(self) -> dict[int, int]:
        """The view's other columns, and where each stands in a record's value."""
        rest = [i for i in range(len(self.schema.columns)) if i not in self._order]
        stored = self.sink.value_columns()
        return {i: stored.index(self.columns[i]) for i in rest} if stored else {}

    @cached_property
    def keys(self) -> KeyCodec:
        return KeyCodec(tuple(self.schema.columns[i].type for i in self._order), normalize=False)

    @cached_property
    def doubles(self) -> tuple[int, ...]:
        """Columns of the key whose zero has two encodings."""
        return tuple(i for i, kind in enumerate(self.keys.types) if kind == DOUBLE)

    def plain(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """A key, or the beginning of one, in Python's own kinds; what does not fit is refused."""
        return plain_key(values, self.schema.key_columns)

    def spellings(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The same key, or beginning of one, as records may have it, what is given first: SQL calls
        0.0 and -0.0 equal.
        """
        found = [self.plain(values)]
        for i in self.doubles:
            if i < len(values) and found[0][i] == 0:
                found += [(*each[:i], -each[i], *each[i + 1 :]) for each in found]
        return found

    @cached_property
    def values(self) -> RowCodec | None:
        """None if the view shows nothing of a record's value."""
        return self._stored if self._fields else None

    @cached_property
    def _stored(self) -> RowCodec | None:
        """The value of a record; it may hold columns that the view does not show, or has in its
        key.
        """
        columns = self.sink.value_columns()
        return RowCodec(tuple(self.sink.types[i] for i in columns)) if columns else None

    def prefix(self, values: Sequence[Any]) -> bytes:
        if len(values) > len(self._order):
            raise SchemaError(
                f"view {self.name} has {len(self._order)} key column(s):"
                f" {', '.join(self.schema.key) or 'none'}"
            )
        return self.keys.encode_one(values)

    def owner(self, values: Sequence[Any]) -> bytes | None:
        """What decides the slot of the records whose key begins with these values; None if they are
        in several slots.
        """
        count = self.owner_columns
        return self.keys.encode_one(values[:count]) if len(values) >= count else None

    def record(self, row: Sequence[Any]) -> tuple[bytes, bytes, bytes]:
        """What decides the slot of a row, its record key, and the value that a record of a unique
        view has.
        """
        key = [row[i] for i in self._order]
        value = b""
        if self._stored is not None:
            fields = [row[self.columns.index(i)] for i in self.sink.value_columns()]
            value = self._stored.encode_one(fields)
        return self.owner(key) or b"", self.keys.encode_one(key) if key else b"", value

    def decode(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.Table:
        """Rows of some records; a counted row stands as often as it counts."""
        try:
            return self._decode(keys, values)
        except Damaged as error:
            raise in_view(self.name, error) from error

    def decode_once(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.Table:
        """Rows of some records; a counted row stands once."""
        if not self.sink.counts_rows:
            return self.decode(keys, values)
        try:
            found = dict(zip(self._order, self.keys.decode(keys), strict=True))
        except Damaged as error:
            raise in_view(self.name, error) from error
        columns = [found[i] for i in range(len(self.schema.columns))]
        return pa.table(columns, schema=self.schema.arrow)

    def _decode(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.Table:
        found = dict(zip(self._order, self.keys.decode(keys), strict=True)) if self._order else {}
        if self.sink.counts_rows:
            times = pa.array(np.repeat(np.arange(len(keys)), counts_of(values)))
            found = {i: column.take(times) for i, column in found.items()}
        elif self.values is not None:
            fields = self.values.decode(values)
            found |= {i: fields[place] for i, place in self._fields.items()}
        return pa.table(
            [found[i] for i in range(len(self.schema.columns))], schema=self.schema.arrow
        )

    def decode_parts(
        self, keys: pa.BinaryArray, values: pa.BinaryArray, size: int = 100_000
    ) -> Iterator[pa.Table]:
        """The same in parts of so many rows: a counted row may stand for
        more than fit into memory.
        """
        if not self.sink.counts_rows:
            yield self.decode(keys, values)
            return
        once = pa.table(self.keys.decode(keys), names=[str(i) for i in self._order])
        ends = np.cumsum(counts_of(values))
        for start in range(0, int(ends[-1]) if len(ends) else 0, size):
            numbers = np.arange(start, min(start + size, int(ends[-1])))
            rows = once.take(pa.array(np.searchsorted(ends, numbers, side="right")))
            yield pa.table(
                [rows.column(str(i)) for i in range(len(self.schema.columns))],
                schema=self.schema.arrow,
            )

    @cached_property
    def decode_one(self) -> Callable[[tuple[Any, ...], bytes], Row]:
        """One row of a keyed view from its key values and its record; made once, because point
        reads are frequent.
        """
        if self.sink.counts_rows:
            raise SchemaError(f"view {self.name} has no key of its own: use scan()")
        places = {i: (True, place) for place, i in enumerate(self._order)} | {
            i: (False, place) for i, place in self._fields.items()
        }
        columns = tuple((name, *places[i]) for i, name in enumerate(self.schema.names))
        if self.values is None:  # the value may hold columns that the view does not show
            return lambda key, _: {name: key[place] for name, _, place in columns}
        return dict_decoder(self.values.types, columns)


def row_decoder(schema: Schema) -> DictDecoder:
    """One row of a table from its key values and its record."""
    values = tuple(column.name for column in schema.value_columns)
    columns = tuple(
        (name, name in schema.key, (schema.key if name in schema.key else values).index(name))
        for name in schema.names
    )
    return dict_decoder(tuple(column.type for column in schema.value_columns), columns)


def key_tuple(key: Key) -> tuple[Any, ...]:
    """Keys of one column are given as a scalar, of several as a tuple."""
    return tuple(key) if isinstance(key, _SEVERAL) else (key,)


def check_limit(limit: int | None) -> int | None:
    """How many rows a scan gives at most."""
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise SchemaError(f"limit is a number of rows, 0 or more, not {limit!r}")
    return limit


def in_view(name: str, error: Damaged) -> Damaged:
    """The same damage, with the view that was read."""
    where = f"view {name}: "
    return error if error.what.startswith(where) else Damaged(where + error.what)
