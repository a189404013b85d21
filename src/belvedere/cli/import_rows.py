"""belvedere import: rows from a file, in batches that are written whole or not at all."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from belvedere.cli.import_files import (
    FORMATS,
    CsvForm,
    Record,
    bad_text,
    batched,
    delimiter_of,
    format_of,
    parquet_rows,
    read_csv,
    read_jsonl,
    read_parquet,
)
from belvedere.cli.options import TableName
from belvedere.cli.tables import console, plural
from belvedere.cli.terminal import database
from belvedere.errors import SchemaError, StoreFull
from belvedere.input.rows import to_arrow
from belvedere.table import BATCH, Table

_ROW = re.compile(r"row (\d+): (.*)", re.DOTALL)


def import_rows(
    ctx: typer.Context,
    table: TableName,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .jsonl or .parquet file; - is standard input.",
            show_default=False,
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="Default: by the file's ending."),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=BATCH, metavar="N", help="Rows per transaction.")
    ] = 10_000,
    skip_bad: Annotated[
        bool,
        typer.Option(
            "--skip-bad", help="Go on after a broken line, and collect those lines in a file."
        ),
    ] = False,
    bad_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where --skip-bad puts them. Default: FILE.bad"),
    ] = None,
    delimiter: Annotated[
        str, typer.Option(metavar="C", help="CSV: what stands between two cells; \\t is a tab.")
    ] = ",",
    null: Annotated[
        str | None, typer.Option(metavar="TEXT", help="CSV: cells with this text are NULL.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="CSV: the columns, for a file without a header line."),
    ] = None,
    ignore_others: Annotated[
        bool,
        typer.Option(
            "--ignore-others",
            help=(
                "Leave out columns of the file that the table does not have, instead of"
                " refusing it."
            ),
        ),
    ] = False,
) -> None:
    """Import a file into a table.

    A broken line stops the import, unless --skip-bad is given. Nothing of its batch is written;
    batches before it are. In CSV an empty cell is NULL; in a string column that is no key, the
    empty text, with --null in every string column.
    """
    if form not in (None, *FORMATS):
        raise typer.BadParameter(f"use {', '.join(FORMATS)}", param_hint="--format")
    bad_path = _bad_path(file, skip_bad, bad_file)
    csv_form = CsvForm(
        delimiter_of(delimiter),
        null,
        tuple(c.strip() for c in columns.split(",")) if columns else (),
        ignore_others,
    )
    with database(ctx) as db, ExitStack() as stack:
        target = db.table(table)
        kind = format_of(file, form)
        progress = stack.enter_context(
            _progress(_size(file, kind), "rows" if kind == "parquet" else "bytes")
        )
        header, records = _records(stack, file, kind, target, csv_form, progress)
        bad = None if bad_path is None else _BadLines(bad_path, header)
        written = _write(target, file, records, batch, bad, progress)
    console().print(
        f"{plural(written, 'row')} imported into {escape(table)}"
        + (f", {bad.said()}" if bad else ""),
        soft_wrap=True,
    )


def _bad_path(file: str, skip_bad: bool, named: Path | None) -> Path | None:
    """Where bad lines go; None if they stop the import."""
    if not skip_bad:
        if named is not None:
            raise typer.BadParameter("give --skip-bad too", param_hint="--bad-file")
        return None
    found = named or Path("import.bad" if file == "-" else f"{file}.bad")
    if file != "-" and found.exists() and Path(file).exists() and found.samefile(file):
        raise typer.BadParameter("this is the file that is imported", param_hint="--bad-file")
    return found


def _records(
    stack: ExitStack, file: str, kind: str, target: Table, form: CsvForm, progress: _Bar
) -> tuple[str, Iterator[Record]]:
    if kind == "parquet":
        return "", read_parquet(file, target.schema, form.others, progress.seen)
    source = stack.enter_context(_opened(file))
    if kind == "jsonl":
        return "", read_jsonl(source, target.schema, form.others, progress.seen)
    try:
        return read_csv(source, target.schema, form, progress.seen)
    except SchemaError as error:
        raise SchemaError(f"{file} {error}") from None


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as opened:
        yield opened


def _write(
    target: Table,
    file: str,
    records: Iterator[Record],
    size: int,
    bad: _BadLines | None,
    progress: _Bar,
) -> int:
    written = 0
    try:
        for batch in batched(records, size):
            written += _write_batch(target, file, batch, bad)
            progress.rows(written)
    except SchemaError as error:
        raise SchemaError(f"{error}; {_before(written)}") from error
    except StoreFull as error:
        raise StoreFull(f"{_before(written)}. For this batch: {error}") from error
    except KeyboardInterrupt:
        Console(stderr=True).print(f"interrupted: {_before(written)}")
        raise
    return written


def _before(written: int) -> str:
    return (
        f"{plural(written, 'row')} before this batch {'is' if written == 1 else 'are'} imported"
        if written
        else "nothing was imported"
    )


def _write_batch(target: Table, file: str, batch: list[Record], bad: _BadLines | None) -> int:
    good, refused = [r for r in batch if not r.problem], [r for r in batch if r.problem]
    while good and (bad is not None or not refused):
        try:
            target.put_many([r.row for r in good])
            break
        except SchemaError as error:
            _find(good, target, error)
            refused += [r for r in good if r.problem]
            good = [r for r in good if not r.problem]
    if refused and bad is None:
        raise SchemaError(_told(file, min(refused, key=lambda r: r.line)))
    if bad is not None:
        bad.add(refused)
    return len(good)


def _find(records: list[Record], target: Table, error: SchemaError) -> None:
    """Mark the records that do not fit, after the table refused them together; at least one, or the
    error goes on.
    """
    for record in records:
        try:
            to_arrow([record.row], target.schema)
        except SchemaError as reason:
            record.problem = str(reason).removeprefix("row 0: ").removeprefix("row 0 ")
    match = _ROW.fullmatch(str(error))
    if not any(r.problem for r in records):  # a key that is too long is found when it is encoded
        if match is None:
            raise error
        records[int(match[1])].problem = match[2]


def _told(file: str, record: Record) -> str:
    where = "line" if record.text else "row"
    return f"{file} {where} {record.line}: {record.problem}: correct it, or use --skip-bad"


class _BadLines:
    """The file of bad lines, made when there is one."""

    def __init__(self, path: Path, header: str) -> None:
        self.path, self._header, self.count = path, header, 0
        self._first: Record | None = None

    def add(self, records: list[Record]) -> None:
        if not records:
            return
        with self.path.open(
            "a" if self.count else "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as file:
            if not self.count and self._header:
                file.write(self._header if self._header.endswith("\n") else self._header + "\n")
            for record in sorted(records, key=lambda r: r.line):
                file.write(bad_text(record))
        self._first = self._first or min(records, key=lambda r: r.line)
        self.count += len(records)

    def said(self) -> str:
        if self._first is None:
            return "no bad lines"
        first = f"the first, {self._first.line}: {escape(self._first.problem)}"
        return (
            f"[yellow]{plural(self.count, 'bad line')}[/yellow] in {escape(str(self.path))}"
            f" ({first})"
        )


class _Bar:
    """Progress that is drawn per batch: a lock per line would cost more than the line."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress, self._task, self._pending = progress, task, 0

    def seen(self, amount: int) -> None:
        self._pending += amount

    def rows(self, count: int) -> None:
        self._progress.update(self._task, advance=self._pending, rows=f"{count:,}")
        self._pending = 0


@contextmanager
def _progress(total: int | None, unit: str) -> Iterator[_Bar]:
    columns = (
        TextColumn("importing"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, progress.add_task(unit, total=total, rows="0"))


def _size(file: str, kind: str) -> int | None:
    if kind == "parquet":
        return parquet_rows(file)
    return None if file == "-" else Path(file).stat().st_size
