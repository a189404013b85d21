"""belvedere why: which base rows make up a record of a view."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import AsOfText, Json, as_of
from belvedere.cli.terminal import database
from belvedere.cli.values import key_from_texts, to_json


def why(
    ctx: typer.Context,
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view.", show_default=False)],
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
    """Show which base rows make up a record of a view.

    Which of them decide it, and the logged operations that wrote them; if there is no record, what
    is missing. At most 100 rows of a table are shown; --json has all.
    """
    with database(ctx) as db:
        found = db.view(view)
        answer = found.why(key_from_texts(key or [], found.schema), as_of=as_of(past))
        typer.echo(to_json(answer.to_dict(), indent=2) if json else str(answer))
