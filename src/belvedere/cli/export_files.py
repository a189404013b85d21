"""Rows as files that `belvedere import` reads back: every value is the same again, and NULL is told
from the empty text.

csv       a header line; NULL is the text that was chosen for it, or without one the empty cell
          where import takes that for NULL
jsonl     one JSON object per line
parquet   the column types as they are
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from belvedere.cli.import_files import reads_empty_as_null
from belvedere.cli.values import quoted, to_json, to_text
from belvedere.errors import SchemaError, StoreError
from belvedere.types import Column, Schema


class Writer(Protocol):
    def write(self, batch: pa.Table) -> None: ...
    def close(self) -> None: ...


class ParquetWriter:
    def __init__(self, file: BinaryIO, schema: Schema) -> None:
        self._writer = pq.ParquetWriter(file, schema.arrow)

    def write(self, batch: pa.Table) -> None:
        self._writer.write_table(batch)

    def close(self) -> None:
        self._writer.close()


class JsonWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, batch: pa.Table) -> None:
        self._file.write("".join(to_json(row) + "\n" for row in batch.to_pylist()).encode())

    def close(self) -> None:
        pass


class CsvWriter:
    def __init__(self, file: BinaryIO, schema: Schema, delimiter: str, null: str | None) -> None:
        self._file, self._schema, self._delimiter, self._null = file, schema, delimiter, null
        self._put([schema.names])

    def write(self, batch: pa.Table) -> None:
        cells = [
            self._cells(column, batch.column(column.name).to_pylist())
            for column in self._schema.columns
        ]
        self._put(zip(*cells, strict=True))

    def _put(self, lines: Iterable[Sequence[str]]) -> None:
        text = io.StringIO(newline="")
        # lines end with CR LF, so a cell with either is quoted
        csv.writer(text, delimiter=self._delimiter).writerows(lines)
        self._file.write(text.getvalue().encode())

    def _cells(self, column: Column, values: list[Any]) -> list[str]:
        # 0x are no bytes, and not NULL
        texts = ["" if v is None else "0x" if v == b"" else to_text(v) for v in values]
        return (
            self._told_apart(column, texts, values)
            if self._null is None
            else self._named(column, texts, values)
        )

    def _named(self, column: Column, texts: list[str], values: list[Any]) -> list[str]:
        """NULL as the text that was chosen for it."""
        if any(t == self._null and v is not None for t, v in zip(texts, values, strict=True)):
            what = f"column {column.name} has the value {quoted(self._null or '')}"
            raise SchemaError(f"{what}, which --null gives to NULL: choose another text")
        return [self._null or "" if v is None else t for t, v in zip(texts, values, strict=True)]

    def _told_apart(self, column: Column, texts: list[str], values: list[Any]) -> list[str]:
        """NULL as an empty cell, if that is how it is read."""
        empty_is_null = reads_empty_as_null(column, column.name in self._schema.key, None)
        if any(
            (v is None) != (not t and empty_is_null) for t, v in zip(texts, values, strict=True)
        ):
            what = "the empty text" if empty_is_null else "a NULL"
            raise SchemaError(
                f"column {column.name} has {what}, which an empty cell does not tell: give --null"
                " TEXT, to import too"
            )
        return texts

    def close(self) -> None:
        pass


@contextmanager
def whole_file(path: Path, force: bool) -> Iterator[BinaryIO]:
    """A file that is there when the block has ended well, and else not at all: it is written beside
    its place and renamed.
    """
    _check_free(path, force)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_free(path, force)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _check_free(path: Path, force: bool) -> None:
    if path.exists() and not path.is_file():
        raise StoreError(f"{path} is not a file: name one, or use - for standard output")
    if path.exists() and not force:
        raise StoreError(
            f"{path} is there already: choose another name, or replace it with --force"
        )


def writer_of(
    kind: str, schema: Schema, delimiter: str, null: str | None
) -> Callable[[BinaryIO], Writer]:
    if kind == "parquet":
        return lambda file: ParquetWriter(file, schema)
    if kind == "jsonl":
        return lambda file: JsonWriter(file)
    return lambda file: CsvWriter(file, schema, delimiter, null)
