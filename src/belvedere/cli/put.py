"""belvedere put: write one row."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import TableName
from belvedere.cli.tables import console
from belvedere.cli.terminal import database
from belvedere.cli.values import parse_json, row_from_json, row_from_pairs


def put(
    ctx: typer.Context,
    table: TableName,
    row: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW",
            help="A JSON object, or name=value for every column; NULL is NULL.",
            show_default=False,
        ),
    ],
) -> None:
    """Insert or overwrite one row.

    It is durable, and on its way to the views, when the command returns.
    """
    with database(ctx) as db:
        target = db.table(table)
        is_json = len(row) == 1 and row[0].lstrip().startswith("{")
        position = target.put(
            row_from_json(parse_json(row[0]), target.schema)
            if is_json
            else row_from_pairs(row, target.schema)
        )
    console().print(f"1 row put at position {position}")
