"""belvedere get: one row by its key."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from belvedere.cli.options import AsOfText, Json, Relation, as_of
from belvedere.cli.relation import relation
from belvedere.cli.tables import console, new_table
from belvedere.cli.terminal import database
from belvedere.cli.values import key_from_texts, to_json, to_text
from belvedere.errors import CatalogError


def get(
    ctx: typer.Context,
    name: Relation,
    key: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY",
            help="The key, one value per key column; NULL is NULL.",
            show_default=False,
        ),
    ] = None,
    past: AsOfText = None,
    json: Json = False,
) -> None:
    """Show the row under a key of a table or view."""
    with database(ctx) as db:
        found = relation(db, name)
        row = found.get(key_from_texts(key or [], found.schema), as_of=as_of(past))
    if row is None:
        raise CatalogError(
            f"{name} has no row with the key {' '.join(key or [])}: belvedere scan {name} lists"
            " them"
        )
    if json:
        typer.echo(to_json(row))
        return
    table = new_table("", "")
    table.show_header, table.box = False, None
    for column, value in row.items():
        table.add_row(Text(column, "bold"), Text(to_text(value)))
    console().print(table)
