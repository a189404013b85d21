"""Recording a history: what every epoch took, and what the views show after it.

Everything is derived from the file and the store. The file's last `recorded` says which operations
it has; after a commit, and when a coordinator takes over, those up to the committed vector are
appended with the rows of every live view. So a crash between commit and record leaves neither gap
nor duplicate: the log is trimmed only after a commit is recorded. An epoch that others ran
meanwhile without recording is missing as a state only; if its operations are trimmed, the file is
refused.
"""

from __future__ import annotations

import datetime
import decimal
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from belvedere.catalog.definitions import LIVE, TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.consistency.history import read_history
from belvedere.consistency.recompute import plain
from belvedere.consistency.recorder import Recorder
from belvedere.errors import HistoryError, Stale
from belvedere.readers.base_rows import codecs, decode_rows, rows_at
from belvedere.readers.cut import Cut, open_cut
from belvedere.stores.base import LogBlock, Store
from belvedere.stores.embedded.layout import read_format
from belvedere.types import Vector

Line = dict[str, Any]
_BEFORE = "before"  # the stream of rows that were there when the recording began
_BY = "coordinator"


class Recording:
    """Called by a coordinator after every commit."""

    def __init__(self, store: Store, path: str | os.PathLike[str]) -> None:
        if store.foreign is not None:
            raise HistoryError("a history of tables of others cannot be recorded: use verify")
        self._store = store
        self._recorder = Recorder(path, _identity(store))
        self._load()

    def _load(self) -> None:
        """Where the file stands, after a crash or another coordinator too."""
        if any(s.by != _BY for s in read_history(self._recorder.path).states):
            raise HistoryError(
                f"{self._recorder.path} has what readers saw: give the pipeline a file of its own,"
                " and put both together before they are checked"
            )
        self._recorder.cut_after_recorded()
        known = read_history(self._recorder.path)
        self._tables = {table.name: table.id for table in known.tables.values()}
        self._views = {view.name: view.id for view in known.views.values()}
        self._began = known.recorded is not None
        self._epoch, at = known.recorded or (0, {})
        self._rows_before = at.get(_BEFORE, 0)
        self._vector = Vector({s: p for s, p in at.items() if s != _BEFORE})
        self._size = self._recorder.size

    def __call__(self) -> None:
        """Append what is not in the file yet."""
        if self._recorder.size != self._size:
            self._load()
        with open_cut(self._store) as cut:
            if cut.epoch < self._epoch:
                raise HistoryError(
                    f"{self._recorder.path} has epoch {self._epoch}, and the database has only"
                    f" {cut.epoch}: it is the history of another one, give a new file"
                )
            if cut.epoch > self._epoch or not self._began:
                self._recorder.write(list(self._lines(cut)))
                self._epoch, self._vector, self._began = cut.epoch, cut.vector, True
                self._size = self._recorder.size

    def _lines(self, cut: Cut) -> Iterator[Line]:
        tables = {t.id: t for t in cut.state.tables.values()}
        yield from self._new_tables(tables)
        yield from self._operations(cut, tables) if self._began else self._rows(cut, tables)
        at = {**cut.vector.to_json(), _BEFORE: self._rows_before}
        for view in sorted(cut.state.views.values(), key=lambda v: v.id):
            if _is_readable(cut.state, view):
                yield from self._view_lines(cut, view, at)
        yield {"recorded": cut.epoch, "at": at}

    def _view_lines(self, cut: Cut, view: ViewDefinition, at: dict[str, int]) -> Iterator[Line]:
        name = view.name
        if self._views.get(name, view.id) != view.id:  # it replaces another one
            name = f"{name}#{view.id}"
        if name not in self._views:
            self._views[name] = view.id
            yield {
                "view": name,
                "name": view.name,
                "id": view.id,
                "select": view.select,
                "key": list(view.schema.key),
                "from": at,
            }
        rows = [
            {column: plain(value) for column, value in row.items()}
            for batch in cut.batches(view)
            for row in batch.to_pylist()
        ]
        yield {"whole": name, "rows": rows, "by": _BY, "epoch": cut.epoch, "at": at}

    def _new_tables(self, tables: dict[int, TableDefinition]) -> Iterator[Line]:
        for table in tables.values():
            if table.passes:
                raise HistoryError(
                    f"the rows of {table.name} are not kept from its beginning, so views cannot be"
                    " checked against them: create the source with copy = '*'"
                )
            if self._tables.get(table.name, table.id) != table.id:
                raise HistoryError(
                    f"table {table.name} was dropped and created anew: record into a new file"
                )
            if table.name not in self._tables:
                self._tables[table.name] = table.id
                columns = {c.name: c.type.duckdb for c in table.schema.columns}
                key = list(table.schema.key)
                yield {"table": table.name, "key": key, "columns": columns, "id": table.id}

    def _rows(self, cut: Cut, tables: dict[int, TableDefinition]) -> Iterator[Line]:
        """The rows that are there when the recording begins, as one transaction."""
        self._rows_before = 0
        for table in tables.values():
            for batch in rows_at(self._store, table, cut.epoch, cut.vector):
                for row in batch.to_pylist():
                    yield {
                        "op": self._rows_before,
                        "stream": _BEFORE,
                        "tx": 0,
                        "table": table.name,
                        "row": _exact(row),
                    }
                    self._rows_before += 1

    def _operations(self, cut: Cut, tables: dict[int, TableDefinition]) -> Iterator[Line]:
        for stream, high in sorted(cut.vector.items()):
            first = low = self._vector[stream]
            try:
                for block in self._store.base.read_log(stream, low, high):
                    if block.table in tables:
                        yield from _block_lines(tables[block.table], block, first)
                    first = block.end if block.is_last else first
            except Stale as error:
                raise HistoryError(
                    f"operations {low} to {high} are trimmed, and were not recorded: record into a"
                    " new file"
                ) from error


def _block_lines(table: TableDefinition, block: LogBlock, tx: int) -> Iterator[Line]:
    keys = codecs(table.schema)[0].decode(block.keys)
    key_rows = list(zip(*(column.to_pylist() for column in keys), strict=True))
    there = block.values.is_valid()
    columns = decode_rows(table.schema, block.keys.filter(there), block.values.filter(there))
    rows = iter(zip(*(column.to_pylist() for column in columns), strict=True))
    for number, (key, is_put) in enumerate(zip(key_rows, there.to_pylist(), strict=True)):
        row = dict(zip(table.schema.names, next(rows), strict=True)) if is_put else None
        yield {
            "op": block.position + number,
            "stream": block.stream,
            "tx": tx,
            "table": table.name,
            "key": [_exact_value(value) for value in key],
            "row": None if row is None else _exact(row),
        }


def _is_readable(state: CatalogState, view: ViewDefinition) -> bool:
    return state.status[view.id].state == LIVE and not state.in_error(view)


def _identity(store: Store) -> str:
    if store.url.startswith("belvedere:"):
        return read_format(Path(store.url.removeprefix("belvedere:"))).id
    return store.url


def _exact(row: dict[str, Any]) -> Line:
    return {name: _exact_value(value) for name, value in row.items()}


def _exact_value(value: Any) -> Any:
    """A value as DuckDB reads it back without loss."""
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return "".join(f"\\x{byte:02X}" for byte in value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
