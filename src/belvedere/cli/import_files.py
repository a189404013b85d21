"""Files as numbered records: a record is a row that fits the table's columns, or the reason why it does not.

csv       a header line names the columns; an empty cell is NULL; in a string column that is no key, the empty text
jsonl     one JSON object per line
parquet   records are numbered from 1, because there are no lines
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from belvedere.changelog.rows import to_arrow
from belvedere.cli.values import from_text, parse_json, row_from_json, to_json
from belvedere.errors import SchemaError
from belvedere.types import Column, Row, Schema

FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
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


def format_of(path: str, wanted: str | None) -> str:
    found = wanted or _ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        raise SchemaError(f"the name {path} does not tell its format: add --format, one of {', '.join(FORMATS)}")
    return found


class Lines:
    """Lines of a file, with the number of bytes read so far; bytes that are not UTF-8 are kept as surrogates."""

    def __init__(self, file: BinaryIO, seen: Callable[[int], None]) -> None:
        self._file, self._seen = file, seen
        self.held: list[str] = []  # the lines since `taken`

    def __iter__(self) -> Iterator[str]:
        for number, raw in enumerate(self._file):
            self._seen(len(raw))
            text = (raw.removeprefix(_MARK) if number == 0 else raw).decode("utf-8", "surrogateescape")
            self.held.append(text)
            yield text

    def taken(self) -> str:
        """The text of one record, which may have several lines."""
        text, self.held = "".join(self.held), []
        return text


def read_jsonl(file: BinaryIO, schema: Schema, seen: Callable[[int], None]) -> Iterator[Record]:
    for number, text in enumerate(Lines(file, seen), 1):
        if text.strip():
            yield _record(number, text, partial(_json_row, text, schema), schema)


def _json_row(text: str, schema: Schema) -> Row:
    return row_from_json(parse_json(text), schema)


def read_csv(file: BinaryIO, schema: Schema, form: CsvForm, seen: Callable[[int], None]) -> tuple[str, Iterator[Record]]:
    """The header line, and the records."""
    lines = Lines(file, seen)
    reader = csv.reader(iter(lines), delimiter=form.delimiter, strict=True)
    names = list(form.columns) or next(reader, [])
    columns = _csv_columns(names, schema)
    return ("" if form.columns else lines.taken()), _csv_records(reader, lines, columns, form.null, schema)


def _csv_columns(names: Sequence[str], schema: Schema) -> list[Column]:
    by_name = {c.name.lower(): c for c in schema.columns}
    unknown = [name for name in names if name.strip().lower() not in by_name]
    if unknown or not names:
        what = f"unknown column {unknown[0]!r}" if unknown else "there is no line"
        raise SchemaError(f"line 1: {what}: the header must name columns of the table ({', '.join(schema.names)}), or use --columns")
    columns = [by_name[name.strip().lower()] for name in names]
    if len(set(columns)) != len(columns):
        raise SchemaError("line 1: a column is named twice")
    return columns


def _csv_records(reader: Any, lines: Lines, columns: list[Column], null: str | None, schema: Schema) -> Iterator[Record]:
    def row(cells: Sequence[str]) -> Row:
        if len(cells) != len(columns):
            raise SchemaError(f"{len(cells)} cell(s), {len(columns)} are needed")
        return {c.name: _cell(text, c, null, c.name in schema.key) for text, c in zip(cells, columns, strict=True)}

    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Record(first, lines.taken(), None, f"this is not valid CSV: {error}")
            continue
        text = lines.taken()
        if cells is None:
            return
        if cells:
            yield _record(first, text, partial(row, cells), schema)


def _cell(text: str, column: Column, null: str | None, is_key: bool) -> Any:
    if text == null or (not text and (is_key or column.type.name != "string")):
        return None
    return from_text(text, column)


def _record(line: int, text: str, make: Callable[[], Row], schema: Schema) -> Record:
    try:
        row = make()
        for column in schema.columns:
            if (column.name in schema.key or not column.nullable) and row.get(column.name) is None:
                raise SchemaError(f"{'the key' if column.name in schema.key else 'column'} {column.name} must not be NULL")
    except SchemaError as error:
        return Record(line, text, None, str(error))
    return Record(line, text, row)


def read_parquet(path: str, schema: Schema, seen: Callable[[int], None]) -> Iterator[Record]:
    """Rows as the file has them; whether they fit is found when they are written."""
    with pq.ParquetFile(path) as file:
        to_arrow(file.schema_arrow.empty_table(), schema)  # columns that can never fit are told before anything is written
        number = 1
        for batch in file.iter_batches(_BATCH):
            seen(batch.num_rows)
            for position, row in enumerate(batch.to_pylist()):
                yield Record(number + position, "", row)
            number += batch.num_rows


def parquet_rows(path: str) -> int:
    with pq.ParquetFile(path) as file:
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
