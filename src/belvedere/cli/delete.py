"""belvedere delete: remove one row."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import TableName
from belvedere.cli.tables import console
from belvedere.cli.terminal import database
from belvedere.cli.values import key_from_texts


def delete(
    ctx: typer.Context,
    table: TableName,
    key: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY", help="The key, one value per key column.", show_default=False
        ),
    ],
) -> None:
    """Delete the row under a key of a table.

    For many rows, use sql with DELETE FROM ... WHERE ...
    """
    with database(ctx) as db:
        target = db.table(table)
        values = key_from_texts(key, target.schema)
        there = len(values) == len(target.schema.key) and target.get(values) is not None
        position = target.delete(values)
    said = "1 row deleted" if there else "there was no such row; the delete is logged"
    console().print(f"{said} at position {position}")
