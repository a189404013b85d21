"""The files as they are: which there are, their columns, their rows with the types of the relation.

Rows of files are only believed if no file has changed while they were read.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from belvedere.errors import SourceError
from belvedere.libraries import duckdb
from belvedere.sources.files.options import Options
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    SqlType,
    decimal,
)

FILE = "belvedere_file"  # the column that tells from which file a row is, while it is checked
# Name, size, times of content and of the entry, and the file itself: a new one may have the name.
Look: TypeAlias = list[list[Any]]
_JSON_DIGITS = 15  # that a double holds for sure

_TYPES = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": INT,
    "SMALLINT": INT,
    "INTEGER": INT,
    "UTINYINT": INT,
    "USMALLINT": INT,
    "UINTEGER": BIGINT,
    "BIGINT": BIGINT,
    "UBIGINT": decimal(20),
    "FLOAT": DOUBLE,
    "DOUBLE": DOUBLE,
    "VARCHAR": STRING,
    "BLOB": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_S": TIMESTAMP,
    "TIMESTAMP_MS": TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": TIMESTAMP,
}


class OtherColumns(Exception):
    """The files have other columns than the relation: it stops, or is refused."""


def connect() -> Any:
    """DuckDB in memory, in one thread."""
    return duckdb.connect(config={"threads": 1})


def duckdb_type(kind: SqlType) -> str:
    """Moments are kept as times of UTC: with a zone they would ask DuckDB for time zones."""
    return "TIMESTAMP" if kind == TIMESTAMP else kind.duckdb


def look(options: Options) -> Look:
    """What tells whether files have changed."""
    found = []
    for name in sorted(glob.glob(options.path)):
        try:
            stat = os.stat(name)
        except FileNotFoundError:  # went after it was listed
            continue
        found.append([name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    if not found:
        raise SourceError(
            f"no file is named {options.path}: a source without rows is a file without rows"
        )
    return found


def schema_of(options: Options, files: Look) -> Schema:
    """As it was given, or as DuckDB finds it in the files."""
    columns = options.columns or tuple(_found_columns(options, files))
    names = [column.name for column in columns]
    missing = [name for name in options.key if name not in names]
    if missing:
        raise SourceError(
            f"the key has {', '.join(missing)}, which is no column of {options.path}: the columns"
            f" are {', '.join(names)}"
        )
    if options.format == "json":
        _check_digits(columns)
    fixed = [Column(c.name, c.type, c.name not in options.key) for c in columns]
    return Schema(tuple(fixed), options.key)


def _check_digits(columns: Sequence[Column]) -> None:
    """DuckDB reads numbers with a point as doubles."""
    for column in columns:
        if column.type.precision > _JSON_DIGITS:
            raise SourceError(
                f"column {column.name} is {str(column.type).upper()}: numbers in JSON files are"
                f" exact up to {_JSON_DIGITS} digits only. Use Parquet or CSV, or a STRING"
            )


def _found_columns(options: Options, files: Look) -> Sequence[Column]:
    return [Column(name, _type(name, kind)) for name, kind in _described(options, files)]


def _described(options: Options, files: Look) -> list[tuple[str, str]]:
    with connect() as connection:
        try:
            found = connection.execute(f"DESCRIBE SELECT * FROM {_scan(options, files, None)}")
            return [(row[0], row[1]) for row in found.fetchall()]
        except duckdb.Error as error:
            raise _unreadable(options, error) from error


def _type(name: str, kind: str) -> SqlType:
    if kind.startswith("DECIMAL("):
        precision, scale = kind[len("DECIMAL(") : -1].split(",")
        return decimal(int(precision), int(scale))
    if kind not in _TYPES:
        raise SourceError(
            f"column {name} has the type {kind}, which has none here: give types of your own as the"
            " option columns = 'name type, ...', or write the files with another type"
        )
    return _TYPES[kind]


def rows(options: Options, schema: Schema, files: Look) -> str:
    """A query for the rows, with the file of each."""
    if options.format == "parquet":
        _check_parquet(options, schema, files)
    elif options.format == "csv":
        _check_headers(options, schema, files)
    columns = ", ".join(
        f"CAST({quoted(c.name)} AS {duckdb_type(c.type)}) AS {quoted(c.name)}"
        for c in schema.columns
    )
    return f"SELECT {columns}, {quoted(FILE)} FROM {_scan(options, files, schema)}"


def _scan(options: Options, files: Look, schema: Schema | None) -> str:
    """Types that are known are asked for, so that a value of another type is an error that names
    its line, not another type.
    """
    names = ", ".join(literal(name) for name, *_ in files)
    arguments = [f"[{names}]"]
    if schema is not None:
        arguments.append(f"filename = {literal(FILE)}")
    if schema is not None and options.format != "parquet":
        types = ", ".join(
            f"{literal(c.name)}: {literal(duckdb_type(c.type))}" for c in schema.columns
        )
        arguments.append(f"columns = {{{types}}}")
    if options.format == "csv" and schema is not None:
        arguments.append("auto_detect = false")  # what is told is not to be guessed
    if options.format == "csv":
        arguments += [f"delim = {literal(options.delimiter)}", "header = true", "quote = '\"'"]
        arguments += ["escape = '\"'", "allow_quoted_nulls = false", "nullstr = ''"]
    if options.format == "json":
        arguments.append("format = 'newline_delimited'")
    return f"read_{options.format}({', '.join(arguments)})"


def _check_parquet(options: Options, schema: Schema, files: Look) -> None:
    """A column of another type would be cast, and perhaps to other values."""
    for file in files:
        try:
            found = {name: _type(name, kind) for name, kind in _described(options, [file])}
        except SourceError as error:
            raise OtherColumns(f"{file[0]}: {error}") from error
        for column in schema.columns:
            if found.get(column.name) != column.type and not options.columns:
                raise OtherColumns(
                    f"{file[0]} has {found.get(column.name, 'no column')} where {column.name} is"
                    f" {column.type}"
                )
        _check_names(file[0], list(found), schema)


def _check_headers(options: Options, schema: Schema, files: Look) -> None:
    for name, *_ in files:
        try:
            with open(name, newline="", encoding="utf-8-sig") as file:
                header = next(csv.reader(file, delimiter=options.delimiter), [])
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise SourceError(f"{name} cannot be read: {error}") from error
        if header != list(schema.names):
            raise OtherColumns(
                f"{name} has the columns {', '.join(header) or '(none)'} instead of"
                f" {', '.join(schema.names)}"
            )


def _check_names(file: str, found: list[str], schema: Schema) -> None:
    if sorted(found) != sorted(schema.names):
        raise OtherColumns(
            f"{file} has the columns {', '.join(found)} instead of {', '.join(schema.names)}"
        )


def _unreadable(options: Options, error: Exception) -> SourceError:
    return SourceError(f"{options.path} cannot be read: {error}")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
