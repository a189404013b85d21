"""Files as numbered records: a record is a row that fits the table's columns, or the reason why it
does not.

csv       a header line names the columns; an empty cell is NULL; in a string column that is no key,
          the empty text
jsonl     one JSON object per line
parquet   records are numbered from 1, because there are no lines
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from belvedere.cli.values import from_text, parse_json, quoted, row_from_json, to_json
from belvedere.errors import SchemaError
from belvedere.input.rows import own_columns, to_arrow
from belvedere.types import Column, Row, Schema

_LONGEST_CELL = (1 << 31) - 1
FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_BATCH = 10_000
_MARK = b"\xef\xbb\xbf"  # which some programs put before UTF-8


@dataclass(slots=True)
class Record:
    """`text` is what a file of bad lines gets."""

    line: int
    text: str
    row: Row | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CsvForm:
    delimiter: str = ","
    null: str | None = None
    columns: tuple[str, ...] = ()  # for a file without a header
    others: bool = False  # the file may have more columns than the table: they are left out


def delimiter_of(text: str) -> str:
    found = "\t" if text == "\\t" else text  # a shell hands on \t as two characters
    if len(found) != 1 or found in '"\r\n':
        raise typer.BadParameter(
            "one character, please, and no quote or line end; \\t is a tab",
            param_hint="--delimiter",
        )
    return found


def format_of(path: str, wanted: str | None) -> str:
    found = wanted or _ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        raise SchemaError(
            f"the name {path} does not tell its format: add --format, one of {', '.join(FORMATS)}"
        )
    return found


class Lines:
    """Lines of a file, with the number of bytes read so far; bytes that are not UTF-8 are kept as
    surrogates.

    They end with LF or CR LF; with CR alone if the first one does, for then the file is of a
    program that ends all of them so.
    """

    def __init__(self, file: BinaryIO, seen: Callable[[int], None]) -> None:
        self._file, self._seen = file, seen
        self.held: list[str] = []  # the lines since `taken`

    def __iter__(self) -> Iterator[str]:
        for number, raw in enumerate(self._raw()):
            self._seen(len(raw))
            text = (raw.removeprefix(_MARK) if number == 0 else raw).decode(
                "utf-8", "surrogateescape"
            )
            self.held.append(text)
            yield text

    def _raw(self) -> Iterator[bytes]:
        first = self._file.readline()
        if b"\r" in first.rstrip(b"\r\n"):
            for part in chain([first], self._file):
                yield from part.splitlines(keepends=True)
        elif first:
            yield from chain([first], self._file)

    def taken(self) -> str:
        """The text of one record, which may have several lines."""
        text, self.held = "".join(self.held), []
        return text


def read_jsonl(
    file: BinaryIO, schema: Schema, others: bool, seen: Callable[[int], None]
) -> Iterator[Record]:
    for number, text in enumerate(Lines(file, seen), 1):
        if text.strip():
            yield _record(number, text, partial(_json_row, text, schema, others), schema)


def _json_row(text: str, schema: Schema, others: bool) -> Row:
    data = parse_json(text)
    if others and isinstance(data, dict):
        known = _names(schema)
        data = {name: value for name, value in data.items() if name.lower() in known}
    return row_from_json(data, schema)


def _names(schema: Schema) -> set[str]:
    return {column.name.lower() for column in schema.columns}


def read_csv(
    file: BinaryIO, schema: Schema, form: CsvForm, seen: Callable[[int], None]
) -> tuple[str, Iterator[Record]]:
    """The header line, and the records."""
    lines = Lines(file, seen)
    csv.field_size_limit(_LONGEST_CELL)  # of this process; 128 KiB by default
    reader = csv.reader(iter(lines), delimiter=form.delimiter, strict=True)
    try:
        names = list(form.columns) or next(reader, [])
    except csv.Error as error:
        raise _bad_header(_not_csv(error), schema) from None
    columns = _csv_columns(names, schema, form.others)
    return ("" if form.columns else lines.taken()), _csv_records(
        reader, lines, columns, form.null, schema
    )


def _csv_columns(names: Sequence[str], schema: Schema, others: bool) -> list[Column | None]:
    """What each cell of a line is for; None if it is left out."""
    by_name = {c.name.lower(): c for c in schema.columns}
    unknown = [name for name in names if name.strip().lower() not in by_name]
    if (unknown and not others) or len(unknown) == len(names):
        raise _bad_header(_unknown(unknown[0]) if unknown else "there is no line", schema)
    columns = [by_name.get(name.strip().lower()) for name in names]
    known = [column for column in columns if column is not None]
    if len(set(known)) != len(known):
        raise SchemaError("line 1: a column is named twice")
    return columns


def _unknown(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return "this is not UTF-8 text"
    return f"unknown column {quoted(name)}"


def _bad_header(what: str, schema: Schema) -> SchemaError:
    names = ", ".join(schema.names)
    return SchemaError(
        f"line 1: {what}: the header must name columns of the table ({names}), or use --columns"
    )


def _not_csv(error: csv.Error) -> str:
    """The reader's words, but for advice that is meant for programmers."""
    return "this is not valid CSV: " + str(error).partition(" - do you need to open")[0]


def _csv_records(
    reader: Any, lines: Lines, columns: list[Column | None], null: str | None, schema: Schema
) -> Iterator[Record]:
    def row(cells: Sequence[str]) -> Row:
        if len(cells) != len(columns):
            raise SchemaError(f"{len(cells)} cell(s), {len(columns)} are needed")
        return {
            c.name: _cell(text, c, null, c.name in schema.key)
            for text, c in zip(cells, columns, strict=True)
            if c is not None
        }

    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Record(first, lines.taken(), None, _not_csv(error))
            continue
        text = lines.taken()
        if cells is None:
            return
        if cells:
            yield _record(first, text, partial(row, cells), schema)


def _cell(text: str, column: Column, null: str | None, is_key: bool) -> Any:
    if text == null or (not text and reads_empty_as_null(column, is_key, null)):
        return None
    return from_text(text, column)


def reads_empty_as_null(column: Column, is_key: bool, null: str | None) -> bool:
    """Of a text column that is no key, and of all text columns if NULL has a text of its own, an
    empty cell is the empty text.
    """
    return column.type.name != "string" or (is_key and null is None)


def _record(line: int, text: str, make: Callable[[], Row], schema: Schema) -> Record:
    try:
        row = make()
        for column in schema.columns:
            if (column.name in schema.key or not column.nullable) and row.get(column.name) is None:
                raise SchemaError(
                    f"{'the key' if column.name in schema.key else 'column'} {column.name} must not"
                    " be NULL"
                )
    except SchemaError as error:
        return Record(line, text, None, str(error))
    return Record(line, text, row)


def read_parquet(
    path: str, schema: Schema, others: bool, seen: Callable[[int], None]
) -> Iterator[Record]:
    """Rows as the file has them; whether they fit is found when they are written."""
    with _parquet(path) as file:
        names = [
            name
            for name in own_columns(file.schema_arrow)
            if not others or name.lower() in _names(schema)
        ]
        empty = file.schema_arrow.empty_table()
        try:
            # columns that can never fit are told before anything is written
            to_arrow(empty.select(names) if others else empty, schema)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None
        number = 1
        for batch in file.iter_batches(_BATCH, columns=names):
            seen(batch.num_rows)
            yield from _parquet_records(batch, number)
            number += batch.num_rows


@contextmanager
def _parquet(path: str) -> Iterator[pq.ParquetFile]:
    with Path(path).open("rb") as opened:  # the system's own words if there is no such file
        try:
            with pq.ParquetFile(opened) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            first = re.split(r"\n|\. ", str(error))[0]
            raise SchemaError(
                f"{path} is damaged, or not a Parquet file ({first}): write it again, or name its"
                " --format"
            ) from error


def _parquet_records(batch: pa.RecordBatch, number: int) -> list[Record]:
    try:
        return [
            Record(number + position, "", row) for position, row in enumerate(batch.to_pylist())
        ]
    except (ValueError, OverflowError):
        # text that is not UTF-8, times that Python cannot hold: find the rows
        return [
            _parquet_record(batch, position, number + position)
            for position in range(batch.num_rows)
        ]


def _parquet_record(batch: pa.RecordBatch, position: int, number: int) -> Record:
    record = Record(number, "", {})
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            value = column[position].as_py()
        except (ValueError, OverflowError) as error:
            value = _shown(column[position])
            kind = "UTF-8 text" if isinstance(error, UnicodeDecodeError) else column.type
            record.problem = (
                record.problem or f"column {name}: {quoted(value)} cannot be read as {kind}"
            )
        record.row = {**(record.row or {}), name: value}
    return record


def _shown(value: pa.Scalar) -> str:
    """A value that has no Python form, for the file of bad lines; bytes that are not UTF-8 as
    surrogates.
    """
    value = value.value if isinstance(value, pa.DictionaryScalar) else value
    return (
        value.as_buffer().to_pybytes().decode("utf-8", "surrogateescape")
        if hasattr(value, "as_buffer")
        else repr(value.value)
    )


def parquet_rows(path: str) -> int:
    if path == "-":
        raise SchemaError("Parquet cannot be read from standard input: save it, and name the file")
    with _parquet(path) as file:
        return int(file.metadata.num_rows)


def bad_text(record: Record) -> str:
    """What the file of bad lines gets: the line itself, or the row as JSON."""
    if not record.text:
        return to_json(record.row) + "\n"
    return record.text if record.text.endswith("\n") else record.text + "\n"


def batched(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    batch: list[Record] = []
    for record in records:
        batch.append(record)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
