"""The joined rows of a view that an algorithm keeps, asked for anew to be compared with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from belvedere.capture.checking import Batch
from belvedere.capture.images import encode_rows
from belvedere.catalog.definitions import TableDefinition
from belvedere.libraries import pa
from belvedere.sources.base import Source
from belvedere.stores.base import Store
from belvedere.warehouse.definition import from_text
from belvedere.warehouse.kept import Stored
from belvedere.warehouse.loading import read_load


class JoinedRows:
    """All relations are asked for whenever rows are, as for the first load."""

    def __init__(self, store: Store, table: TableDefinition, sources: Mapping[str, Source]) -> None:
        assert table.joined is not None
        self._store, self._table, self._sources = store, table, sources
        self._shape, self._relations = from_text(table.joined.core.encode())

    def rows(self) -> Iterator[Batch]:
        yield self._answer()

    def rows_of(self, keys: pa.BinaryArray) -> Batch:
        return self._answer()

    def _answer(self) -> Batch:
        load = read_load(self._shape, self._relations, self._sources)
        rows = Stored(self._store, self._table, self._shape).table(list(load.rows.rows))
        return encode_rows(self._table, rows, self._store.capabilities.longest_key)
