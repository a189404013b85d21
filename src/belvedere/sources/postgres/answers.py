"""Rows as of one snapshot, read by COPY.

1  begin, read only, REPEATABLE READ
2  the snapshot        the marker
3  the log's end       all that the snapshot shows is before it: a commit is written into the
                       log before any snapshot shows it
4  one COPY per table, or per some keys, all in this snapshot
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.errors import SourceError
from belvedere.libraries import np, pa, pc
from belvedere.sources.base import Answer, Question
from belvedere.sources.postgres import describing
from belvedere.sources.postgres.fields import copy_fields, new_buffer
from belvedere.sources.postgres.images import NotHeld, Wired, read_column
from belvedere.sources.postgres.settings import Connections, Settings, library, translated
from belvedere.types import Schema

if TYPE_CHECKING:
    from belvedere.sources.postgres.settings import Connection

_SIGNATURE_BYTES, _COUNT_BYTES, _TRAILER_BYTES = 19, 2, 2
_NO_ROWS_BYTES = _SIGNATURE_BYTES + _TRAILER_BYTES
_BATCH_ROWS, _BATCH_BYTES = 50_000, 8 << 20
_KEYS = 10_000
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def ask(
    settings: Settings,
    connections: Connections,
    questions: Sequence[Question],
    log_end: Callable[[Connection], str],
) -> Answer:
    """The connection is given back when all tables were read; an answer that is not read to its
    end keeps it until the next error or the end of this process.
    """
    connection = connections.take()
    try:
        with translated(settings):
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            ((marker,),) = connection.execute("SELECT pg_current_snapshot()::text").fetchall()
            end = log_end(connection)
            tables = [_tables(settings, connection, question) for question in questions]
    except BaseException:  # the state of the session is not known
        connection.close()
        raise
    lent = _Lent(settings, connections, connection, len(tables))
    return Answer(marker, end, tuple(lent.reading(table) for table in tables))


class _Lent:
    """A connection with a transaction, until the last of some readers is done with it."""

    def __init__(
        self, settings: Settings, connections: Connections, connection: Connection, readers: int
    ) -> None:
        self._settings, self._connections = settings, connections
        self._connection, self._readers = connection, readers

    def reading(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        try:
            with translated(self._settings):
                yield from tables
        except BaseException:  # also of a reader that goes away: a COPY may be half read
            self._connection.close()
            raise
        self._readers -= 1
        if not self._readers:
            with translated(self._settings):
                self._connection.execute("COMMIT")
            self._connections.give_back(self._connection)


def _tables(settings: Settings, connection: Connection, question: Question) -> Iterator[pa.Table]:
    relation = question.relation
    wired = describing.wired(connection, relation)
    if wired is None:
        raise SourceError(
            f"{relation.name} was altered, renamed or dropped at PostgreSQL {settings.server}:"
            " load it again"
        )
    table = describing.existing(connection, relation.name)
    statements = [statement.encode() for statement in _statements(wired, table.quoted, question)]
    names = question.names
    return (t for statement in statements for t in _copy(connection, wired, names, statement))


def _statements(wired: Wired, table: str, question: Question) -> Iterator[str]:
    wires = dict(zip(wired.relation.schema.names, wired.wires, strict=True))
    texts = [wires[name].text(describing.quote(name)) for name in question.names]
    selection = f"SELECT {', '.join(texts)} FROM ONLY {table}"
    if question.keys is None:
        yield f"COPY ({selection}) TO STDOUT (FORMAT binary)"
        return
    asked = question.keys.column_names
    # Two keys that are one there would find a row twice if they were in two statements.
    vague = any(wires[name].is_vague for name in asked)
    step = max(1, question.keys.num_rows) if vague else _KEYS
    for low in range(0, question.keys.num_rows, step):
        condition = _condition(wires, question.keys.slice(low, step))
        yield f"COPY ({selection} WHERE {condition}) TO STDOUT (FORMAT binary)"


def _condition(wires: dict[str, Any], keys: pa.Table) -> str:
    """That the columns agree with one of the keys."""
    columns, arrays = [], []
    for name in keys.column_names:
        kind = wires[name].asked
        quoted = describing.quote(name)
        columns.append(quoted if kind is not None else wires[name].text(quoted))
        arrays.append(f"{_literal(keys.column(name), kind)}::{kind or 'text'}[]")
    if len(columns) == 1:
        return f"{columns[0]} = ANY ({arrays[0]})"
    return f"({', '.join(columns)}) IN (SELECT * FROM unnest({', '.join(arrays)}))"


def _literal(values: pa.ChunkedArray, kind: str | None) -> str:
    """Values as the text of an array; what no value there can be is NULL, which agrees with
    nothing.
    """
    if pa.types.is_binary(values.type):
        texts = [None if v is None else "\\\\x" + v.hex() for v in values.to_pylist()]
        return _array_text(texts)
    if pa.types.is_boolean(values.type) or pa.types.is_floating(values.type):
        return _array_text([None if v is None else str(v) for v in values.to_pylist()])
    texts = values.cast(pa.string())
    if kind == "uuid":
        texts = pc.if_else(pc.match_substring_regex(texts, _UUID), texts, None)
    found = texts.to_pylist()
    return _array_text([None if v is None or "\0" in v else _escaped(v) for v in found])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "''")


def _array_text(texts: Sequence[str | None]) -> str:
    elements = ",".join("NULL" if text is None else f'"{text}"' for text in texts)
    return f"'{{{elements}}}'"


# ---------------------------------------------------------------- reading


def _copy(
    connection: Connection, wired: Wired, names: tuple[str, ...], statement: bytes
) -> Iterator[pa.Table]:
    """Every message of COPY is a row; the first has the format's signature before it."""
    pg: Any = connection.pgconn
    result = pg.exec_(statement)
    if result.status != library().pq.ExecStatus.COPY_OUT:
        raise library().errors.error_from_result(result)
    rows: list[bytes] = []
    size, first = 0, True
    while (length := (got := pg.get_copy_data(0))[0]) > 0:
        if length == _TRAILER_BYTES or (first and not rows and length == _NO_ROWS_BYTES):
            continue  # the end; no row is so short
        rows.append(bytes(got[1]))
        size += length
        if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(wired, names, rows, first)
            rows, size, first = [], 0, False
    while (result := pg.get_result()) is not None:
        if result.status != library().pq.ExecStatus.COMMAND_OK:
            raise library().errors.error_from_result(result)
    yield _batch(wired, names, rows, first)


def _batch(wired: Wired, names: tuple[str, ...], rows: Sequence[bytes], first: bool) -> pa.Table:
    relation = wired.relation
    wires = dict(zip(relation.schema.names, wired.wires, strict=True))
    schema = Schema(tuple(relation.schema.column(name) for name in names)).arrow
    if not rows:
        return schema.empty_table()
    buffer = new_buffer(rows)
    sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    places = np.cumsum(sizes) - sizes + _COUNT_BYTES
    if first:
        places[0] += _SIGNATURE_BYTES
    fields = copy_fields(buffer, places, len(names))
    try:
        arrays = [
            read_column(relation, name, wires[name], buffer, field)
            for name, field in zip(names, fields, strict=True)
        ]
    except NotHeld as error:
        raise SourceError(str(error)) from error
    return pa.Table.from_arrays(arrays, schema=schema)
