"""belvedere explain: how a view is maintained."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.place import database


def explain(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="VIEW|SQL", help="A view's name, or a SELECT that could become one.", show_default=False)],
) -> None:
    """Show how a view is maintained.

    Its operators, the exchanges between them and the state that they keep.
    """
    with database(ctx) as db:
        typer.echo(str(db.sql(f"EXPLAIN {what}")))
