"""belvedere scan: rows in key order."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import AsOfText, Json, Relation, as_of
from belvedere.cli.relation import relation
from belvedere.cli.tables import console, plural, rows_table
from belvedere.cli.terminal import database
from belvedere.cli.values import key_from_texts, to_json


def scan(
    ctx: typer.Context,
    name: Relation,
    prefix: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY", help="Only rows whose key begins with these values.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            metavar="N",
            help="At most so many rows. Default: 100 on a terminal.",
        ),
    ] = None,
    past: AsOfText = None,
    json: Json = False,
) -> None:
    """List rows of a table or view in key order.

    A view shows one committed epoch, also while a pipeline runs.
    """
    out = console()
    shown = limit or (100 if out.is_terminal and not json else None)
    with database(ctx) as db:
        found = relation(db, name)
        rows = found.scan(
            key_from_texts(prefix or [], found.schema),
            None if shown is None else shown + 1,
            as_of=as_of(past),
        )
        if json:
            for number, row in enumerate(rows):
                if shown is None or number < shown:
                    typer.echo(to_json(row))
            return
        listed = list(rows)
        out.print(rows_table(listed[:shown], found.schema.names))
        more = shown is not None and len(listed) > shown
        out.print(
            (
                f"the first {plural(shown or 0, 'row')}; there are more"
                if more
                else plural(len(listed), "row")
            ),
            style="dim",
        )
