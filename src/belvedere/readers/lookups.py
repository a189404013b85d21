"""One row by the encodings of its key's columns, as an Arrow table of some of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from belvedere.catalog.definitions import LIVE, TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.encoding import slot_of
from belvedere.errors import Dropped
from belvedere.libraries import pa
from belvedere.readers.base_rows import codecs
from belvedere.readers.rows import ViewRows, row_decoder
from belvedere.stores.base import Store
from belvedere.types import Epoch, Row, Schema

Bound: TypeAlias = Sequence[bytes]  # the encodings of the columns of a key
_Find: TypeAlias = Callable[[Bound, Epoch], Row | None]


class RowLookup:
    """Reads of a relation as `state` knows it: of a table as it is now, of a view as of an epoch.

    What Python has no value for, such as a date after the year 9999, raises Damaged, as does what
    is damaged.
    """

    def __init__(
        self,
        store: Store,
        state: CatalogState,
        relation: str,
        columns: Sequence[str],
        schema: Schema,
    ) -> None:
        """`columns` of the relation come out under the names and types of `schema`."""
        found = state.relation(relation)
        self.store, self.state = store, state
        self.is_view = isinstance(found, ViewDefinition)
        self._find = (
            _in_view(store, found)
            if isinstance(found, ViewDefinition)
            else _in_table(store, state.readable(found))
        )
        kinds = [column.type.arrow for column in schema.columns]
        self._outputs, self._arrow = list(zip(columns, kinds, strict=True)), schema.arrow

    def read(self, key: Bound, epoch: Epoch) -> pa.Table:
        """The row, or none; Stale if the epoch is gone."""
        row = self._find(key, epoch)
        if row is None:
            return self._arrow.empty_table()
        arrays = [pa.array([row[name]], kind) for name, kind in self._outputs]
        return pa.table(arrays, schema=self._arrow)


def has_single_rows(state: CatalogState, relation: str) -> bool:
    """Whether there is at most one row under a key, and it may be read."""
    found = state.relation(relation)
    if isinstance(found, TableDefinition):
        return True
    status = state.status.get(found.id)
    is_readable = status is not None and status.state == LIVE and not state.in_error(found)
    return is_readable and not found.planned.sink.counts_rows


def _in_table(store: Store, table: TableDefinition) -> _Find:
    keys, _ = codecs(table.schema)
    decode, longest = row_decoder(table.schema), store.capabilities.longest_key

    def find(bound: Bound, epoch: Epoch) -> Row | None:
        key = b"".join(bound)
        if longest is not None and len(key) > longest:
            return None
        try:
            with store.base.snapshot() as snapshot:
                value = snapshot.get(table.id, key)
        except Dropped:
            raise Dropped(table.name) from None
        return None if value is None else decode(keys.decode_one(key), value)

    return find


def _in_view(store: Store, view: ViewDefinition) -> _Find:
    rows = ViewRows.of(view)
    get = store.state.getter(view.planned.sink.table)
    decode, decode_key = rows.decode_one, rows.keys.decode_one
    owner_columns, slots = rows.owner_columns, store.state.slots

    def find(bound: Bound, epoch: Epoch) -> Row | None:
        key = b"".join(bound)
        value = get(slot_of(b"".join(bound[:owner_columns]), slots), epoch, key)
        return None if value is None else decode(decode_key(key), value)

    return find
