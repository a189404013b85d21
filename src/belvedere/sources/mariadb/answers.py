"""Rows as of one snapshot, and the place in the log that it shows.

A snapshot that InnoDB takes together with the log (WITH CONSISTENT SNAPSHOT) shows exactly what the
log has before `binlog_snapshot_position`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from belvedere.errors import SourceError
from belvedere.libraries import pa
from belvedere.sources.base import Answer, Question
from belvedere.sources.mariadb.places import LogPosition, Place
from belvedere.sources.mariadb.settings import Settings, connect, library, rows, translated
from belvedere.types import BOOLEAN, DOUBLE, SqlType

_ROWS = 20_000  # in one table of an answer
_KEYS = 10_000  # in one statement


def ask(settings: Settings, questions: Sequence[Question]) -> Answer:
    connection = connect(settings)
    try:
        with translated(settings):
            place = _snapshot(connection)
    except BaseException:  # whatever it was, nobody else closes the connection
        connection.close()
        raise
    tables = _Tables(settings, connection, questions)
    end = str(LogPosition(place))
    return Answer(str(place), end, tables.iterators())


def _snapshot(connection: Any) -> Place:
    """Repeatable read, which a consistent snapshot is, must be said: the default may be another."""
    rows(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    status = dict(rows(connection, "SHOW STATUS LIKE 'binlog_snapshot%'"))
    file = status.get("Binlog_snapshot_file", "")
    if not file:
        raise SourceError("the server does not say what a snapshot shows: set log_bin = ON")
    return Place.at(file, int(status["Binlog_snapshot_position"]))


class _Tables:
    """The tables of one answer, read one after the other from one connection."""

    def __init__(self, settings: Settings, connection: Any, questions: Sequence[Question]) -> None:
        self._settings, self._connection = settings, connection
        self._questions, self._left = questions, len(questions)
        if not questions:
            connection.close()

    def iterators(self) -> tuple[Iterator[pa.Table], ...]:
        return tuple(self._read(at, question) for at, question in enumerate(self._questions))

    def _read(self, at: int, question: Question) -> Iterator[pa.Table]:
        if at != len(self._questions) - self._left:
            self._connection.close()
            raise SourceError(
                "the tables of an answer come one after the other: read them in order"
            )
        try:
            with translated(self._settings):
                yield from _tables(self._connection, self._settings.database, question)
            self._left -= 1
        except BaseException:  # also where the reader has had enough
            self._left = 0
            raise
        finally:
            if not self._left:
                self._connection.close()


def _tables(connection: Any, database: str, question: Question) -> Iterator[pa.Table]:
    if question.keys is None:
        yield from _query(connection, question, _select(database, question))
        return
    for start in range(0, len(question.keys), _KEYS):
        keys = question.keys.slice(start, _KEYS)
        keys = _without_nulls(keys)
        if not len(keys):
            continue
        text = f"{_select(database, question)} WHERE {_condition(connection, question, keys)}"
        for found in _query(connection, question, text):
            yield _that_agree(found, keys).select(question.names)


def _select(database: str, question: Question) -> str:
    schema = question.relation.schema
    columns = ", ".join(_expression(name, schema.column(name).type) for name in _read(question))
    return f"SELECT {columns} FROM {_quoted(database)}.{_quoted(question.relation.name)}"


def _read(question: Question) -> list[str]:
    """The columns of the answer, and those by which rows agree with a key."""
    asked = question.keys.column_names if question.keys is not None else []
    return list(dict.fromkeys([*question.names, *asked]))


def _expression(name: str, kind: SqlType) -> str:
    """A FLOAT is written with six digits, a BIT as a byte: as numbers they are whole."""
    quoted = _quoted(name)
    return f"{quoted} + 0e0" if kind == DOUBLE else f"{quoted} + 0" if kind == BOOLEAN else quoted


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# ---------------------------------------------------------------- keys


def _without_nulls(keys: pa.Table) -> pa.Table:
    """NULL agrees with nothing."""
    return keys.drop_null()


def _condition(connection: Any, question: Question, keys: pa.Table) -> str:
    names = keys.column_names
    columns = [_literals(connection, keys.column(name)) for name in names]
    if len(names) == 1:
        return f"{_quoted(names[0])} IN ({', '.join(columns[0])})"
    found = ", ".join(f"({', '.join(values)})" for values in zip(*columns, strict=True))
    return f"({', '.join(map(_quoted, names))}) IN ({found})"


def _literals(connection: Any, column: pa.ChunkedArray) -> list[str]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us")).cast(pa.string())
    elif pa.types.is_date(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    elif pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    values: list[Any] = column.to_pylist()
    if pa.types.is_decimal(kind):
        return values
    if pa.types.is_floating(kind):
        return [f"{value!r}e0" if "e" not in repr(value) else repr(value) for value in values]
    return [_escaped(connection, value) for value in values]


def _escaped(connection: Any, value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    text: str = connection.escape(value)
    return text


def _that_agree(found: pa.Table, keys: pa.Table) -> pa.Table:
    """Collations take different texts for equal. Without this a row could come twice, for two keys
    in two statements.
    """
    names = keys.column_names
    return found.join(keys.combine_chunks(), names, join_type="left semi").select(
        found.column_names
    )


# ---------------------------------------------------------------- values


def _query(connection: Any, question: Question, text: str) -> Iterator[pa.Table]:
    """Row by row from the server, so that tables of any size have room."""
    schema, names = question.relation.schema, _read(question)
    arrow = pa.schema([schema.arrow.field(name) for name in names])
    with connection.cursor(library().cursors.SSCursor) as cursor:
        cursor.execute(text)
        while found := cursor.fetchmany(_ROWS):
            columns = zip(*found, strict=True)
            arrays = [
                _array(question, name, list(values), arrow.field(name).type)
                for name, values in zip(names, columns, strict=True)
            ]
            yield pa.Table.from_arrays(arrays, schema=arrow)


def _array(
    question: Question, name: str, values: list[bytes | None], kind: pa.DataType
) -> pa.Array:
    """From the text that MariaDB writes, all values of a column at once."""
    raw = pa.array(values, pa.binary())
    if pa.types.is_binary(kind):
        return raw
    try:
        text = raw.cast(pa.string())
        if pa.types.is_timestamp(kind):
            return text.cast(pa.timestamp("us")).cast(kind)
        if pa.types.is_boolean(kind):
            return text.cast(pa.int8()).cast(kind)
        return text.cast(kind)
    except pa.ArrowException as error:
        raise SourceError(
            f"column {name} of {question.relation.name} has a value that cannot be held: {error}."
            " Dates that are none, such as 0000-00-00, have to be changed"
        ) from error
