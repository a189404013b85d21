"""belvedere restore: a database made of a backup."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from belvedere import backups
from belvedere.cli.tables import console
from belvedere.spark.launch import terminated_by_exception


def restore(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="BACKUP", help="What belvedere backup has made.", show_default=False
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="DEST", help="A new or empty directory.", show_default=False),
    ],
) -> None:
    """Make a database in a new directory of a backup.

    The backup stays as it is. The database is there when the command has ended; what a kill leaves
    is refused.
    """
    with terminated_by_exception():
        backups.restore(source, target)
    console().print(
        f"restored {target}; next: belvedere --db {quote(target)} status",
        soft_wrap=True,
        markup=False,
    )
