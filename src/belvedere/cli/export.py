"""belvedere export: the rows of a table or view as a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from belvedere.cli.export_files import Writer, whole_file, writer_of
from belvedere.cli.import_files import FORMATS, delimiter_of, format_of
from belvedere.cli.options import AsOfText, Relation, as_of
from belvedere.cli.relation import relation
from belvedere.cli.tables import console, plural
from belvedere.cli.terminal import database
from belvedere.cli.values import key_from_texts
from belvedere.errors import SchemaError
from belvedere.spark.launch import terminated_by_exception

if TYPE_CHECKING:
    import pyarrow as pa


def export(
    ctx: typer.Context,
    name: Relation,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .jsonl or .parquet file; - is standard output.",
            show_default=False,
        ),
    ],
    prefix: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY", help="Only rows whose key begins with these values.", show_default=False
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="|".join(FORMATS), help="Default: by the file's ending."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many rows.")
    ] = None,
    past: AsOfText = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    delimiter: Annotated[
        str, typer.Option(metavar="C", help="CSV: what stands between two cells; \\t is a tab.")
    ] = ",",
    null: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="CSV: what stands for NULL; give it to import too."),
    ] = None,
) -> None:
    """Write the rows of a table or view to a file.

    All are of one moment: of a table as it is now, of a view as of one epoch. The file appears when
    it is complete. `belvedere import` reads it back.
    """
    if form not in (None, *FORMATS):
        raise typer.BadParameter(f"use {', '.join(FORMATS)}", param_hint="--format")
    kind = format_of(file, form)
    if kind == "parquet" and file == "-":
        raise SchemaError(
            "Parquet cannot be written to standard output: name a file, or use --format csv or"
            " jsonl"
        )
    with terminated_by_exception(), database(ctx) as db, ExitStack() as stack:
        found = relation(db, name)
        batches = stack.enter_context(
            closing(found.batches(key_from_texts(prefix or [], found.schema), as_of=as_of(past)))
        )
        opened = (
            sys.stdout.buffer if file == "-" else stack.enter_context(whole_file(Path(file), force))
        )
        writer = writer_of(kind, found.schema, delimiter_of(delimiter), null)(opened)
        written = _write(writer, batches if limit is None else _first(batches, limit))
    if file != "-":
        console().print(
            f"{plural(written, 'row')} of {name} exported to {file}", soft_wrap=True, markup=False
        )


def _write(writer: Writer, batches: Iterator[pa.Table]) -> int:
    written = 0
    try:
        for batch in batches:
            writer.write(batch)
            written += batch.num_rows
    finally:
        writer.close()
    return written


def _first(batches: Iterator[pa.Table], limit: int) -> Iterator[pa.Table]:
    for batch in batches:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return
