"""What a query shows of itself before anybody asks for its answer: a few rows if they are cheap,
else its columns.

It is read by people at a prompt, but also by debuggers and logs. So it takes a second at most, it
never raises, and it never waits. Rows are shown if all relations are short, or if the query takes
its only relation row by row, so that the first rows will do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from belvedere.catalog.history import AsOf
from belvedere.catalog.state import CatalogState
from belvedere.encoding.ranges import EVERYTHING, Ranges
from belvedere.evaluation import shared
from belvedere.readers.base_rows import table_rows
from belvedere.readers.cut import Cut, at_cut, in_cut
from belvedere.readers.keyed import keyed_of, read_at
from belvedere.sql import query
from belvedere.sql.dialect import sql_of
from belvedere.stores.base import BaseSnapshot

if TYPE_CHECKING:
    from belvedere.database import Database
    from belvedere.types import Schema

SHOWN = 20  # rows
_LOOKED_AT = 10_000  # rows of a relation, and operations that are not in the views yet
_SECONDS = 1.0
_LONGEST = 200  # characters of the statement
_ALL = "to_pylist(), to_arrow() and to_spark() give all"


def preview(
    db: Database, statement: exp.Expr, schemas: dict[str, Schema], as_of: AsOf | None = None
) -> str:
    try:
        translated = query.translate(statement, schemas)
        found = None if db.is_session else _rows(db, statement, translated, schemas, as_of)
        if found is not None:
            return _with_rows(found)
        columns = ", ".join(f"{c.name} {c.type}" for c in translated.schema.columns)
        return (
            f"<{_text(statement)}: columns {columns}>\n(not computed yet: {_ALL}; a LIMIT shows the"
            " first ones)"
        )
    except Exception as error:
        # whatever it is: who looks at an object must not be thrown out of his own code
        return f"<{_text(statement)}: {' '.join(str(error).split())}>"


@dataclass(frozen=True, slots=True)
class _Found:
    rows: pa.Table  # one more than is shown, if there are more
    whole: bool  # all rows of all relations were looked at


def _rows(
    db: Database,
    statement: exp.Expr,
    translated: query.Translated,
    schemas: dict[str, Schema],
    as_of: AsOf | None,
) -> _Found | None:
    tables = _tables(db, statement, schemas, as_of)
    whole = all(table is not None and table.num_rows <= _LOOKED_AT for table in tables.values())
    if not whole and (None in tables.values() or not query.takes_row_by_row(statement)):
        return None
    limited = replace(translated, sql=f"SELECT * FROM ({translated.sql}) LIMIT {SHOWN + 1}")
    with _in_time() as late:
        try:
            return _Found(query.run(limited, tables), whole)
        except BaseException:  # DuckDB's answer to an interruption has several kinds
            if not late.is_set():
                raise
            return None


def _tables(
    db: Database, statement: exp.Expr, schemas: dict[str, Schema], as_of: AsOf | None
) -> dict[str, pa.Table | None]:
    """The first rows of the relations, among those keys that the statement is about."""

    def ranges(state: CatalogState) -> dict[str, Ranges]:
        keyed = {name: keyed_of(state.relation(name)) for name in schemas}
        return dict.fromkeys(schemas, EVERYTHING) | query.ranges_in(statement, keyed)

    def first_at(cut: Cut) -> dict[str, pa.Table | None]:
        some = ranges(cut.state)
        return {name: _first_at(cut, name, some[name]) for name in schemas}

    if as_of is not None:
        return in_cut(db.store, first_at, as_of)
    state, size = db.state(), _LOOKED_AT + 1
    if any(name in state.views for name in schemas):
        return at_cut(db.store, first_at)
    some = ranges(state)
    with db.store.base.snapshot() as snapshot:
        return {
            name: _first(_rows_now(snapshot, state, name, some[name], size), schema)
            for name, schema in schemas.items()
        }


def _rows_now(
    snapshot: BaseSnapshot, state: CatalogState, name: str, ranges: Ranges, size: int
) -> Iterator[pa.Table]:
    return table_rows(snapshot, state.readable(state.table(name)), ranges, size)


def _first_at(cut: Cut, name: str, ranges: Ranges) -> pa.Table | None:
    """The first rows of a relation at a cut, more than are looked at if there are more; None if to
    find them may take long.
    """
    is_table = name in cut.state.tables
    if is_table and sum(cut.store.base.end().values()) - sum(cut.vector.values()) > _LOOKED_AT:
        return None  # what was written since the cut would have to be taken back first
    return _first(read_at(cut, name, ranges, _LOOKED_AT + 1), cut.state.relation(name).schema)


def _first(batches: Iterable[pa.Table], schema: Schema) -> pa.Table:
    found: list[pa.Table] = [schema.arrow.empty_table()]
    for batch in batches:
        found.append(batch)
        if sum(each.num_rows for each in found) > _LOOKED_AT:
            break
    return pa.concat_tables(found).slice(0, _LOOKED_AT + 1)


@contextmanager
def _in_time() -> Iterator[threading.Event]:
    """Interrupts DuckDB if the block takes too long; the event tells that it did."""
    connection, late, over, lock = shared(), threading.Event(), threading.Event(), threading.Lock()

    def interrupt() -> None:
        with lock:  # never a query that comes after the block
            if not over.is_set():
                late.set()
                connection.interrupt()

    timer = threading.Timer(_SECONDS, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        with lock:
            over.set()
        timer.cancel()


def _with_rows(found: _Found) -> str:
    if found.rows.num_rows > SHOWN:
        return f"{as_text(found.rows)}\n(the first {SHOWN} rows: {_ALL})"
    if not found.whole:
        return f"{as_text(found.rows)}\n(after a look at {_LOOKED_AT:,} rows: {_ALL})"
    return as_text(found.rows)


def as_text(table: pa.Table) -> str:
    """The first rows as a text table."""
    cells = [
        table.column_names,
        *([str(v) for v in row.values()] for row in table.slice(0, SHOWN).to_pylist()),
    ]
    widths = [max(len(line[i]) for line in cells) for i in range(table.num_columns)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _text(statement: exp.Expr) -> str:
    text: Any = " ".join(sql_of(statement).split())
    return str(text if len(text) <= _LONGEST else text[:_LONGEST] + " ...")
