"""belvedere backup: the database as of one moment, in a new directory."""

from __future__ import annotations

from dataclasses import asdict
from shlex import quote
from typing import Annotated

import typer

from belvedere.cli.options import Json
from belvedere.cli.tables import console, plural, size
from belvedere.cli.terminal import database
from belvedere.cli.values import to_json
from belvedere.spark.launch import terminated_by_exception


def backup(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(metavar="DEST", help="A new or empty directory.", show_default=False),
    ],
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="EARLIER",
            help="An earlier backup beside DEST: files that it has are linked, not copied.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Copy the database, as of one moment, while others use it.

    On the file system of the database, files that never change are linked: they take no room. The
    directory is a backup when the command has ended; what a kill leaves is refused.
    """
    with terminated_by_exception(), database(ctx) as db:
        taken = db.backup(target, base)
    if json:
        typer.echo(to_json(asdict(taken)))
        return
    console().print(
        f"backed up to {target}: {plural(taken.files, 'file')}, {size(taken.bytes)}, of which"
        f" {size(taken.copied_bytes)} copied; next: belvedere restore {quote(target)} NEW",
        soft_wrap=True,
        markup=False,
    )
