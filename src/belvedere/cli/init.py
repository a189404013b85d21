"""belvedere init: create a database."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer
from rich.markup import escape

from belvedere.cli.tables import console
from belvedere.database import open as open_database
from belvedere.errors import StoreError
from belvedere.stores.registry import exists


def init(
    ctx: typer.Context,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A new or empty directory, or the URL of another store.",
            show_default=False,
        ),
    ],
    slots: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=999,
            help="Parts of every view table, for parallel tasks; fixed forever. Default: by cores.",
        ),
    ] = None,
) -> None:
    """Create a database in a new or empty directory."""
    if exists(path):
        raise StoreError(
            f"{path} is a Belvedere database already: choose another path, or use it with --db"
            f" {quote(path)}"
        )
    options = {} if slots is None else {"slots": slots}
    with open_database(path, **options) as db:
        if not db.store.capabilities.shared:
            raise StoreError(
                f"{path} would end with this command: choose a directory, or the URL of a store"
                " that other processes can open"
            )
        count = db.store.state.slots
    console().print(
        f"created [bold]{escape(path)}[/bold] with {count} slots; next: [cyan]belvedere --db"
        f" {escape(quote(path))} sql[/cyan]",
        soft_wrap=True,
    )
