"""belvedere explain: how a view is maintained, or what it will cost."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere import statements
from belvedere.cli.options import Json
from belvedere.cli.terminal import database
from belvedere.cli.values import to_json
from belvedere.cost.text import shown
from belvedere.sql.names import quoted


def explain(
    ctx: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="VIEW|SQL",
            help="A view's name, or a SELECT that could become one.",
            show_default=False,
        ),
    ],
    cost: Annotated[
        bool,
        typer.Option(
            "--cost", help="State, exchanges and matches of joins, estimated from the tables' rows."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show how a view is maintained, or what it will cost.

    Its operators, the exchanges between them and the state that they keep; with --cost, how much of
    it. --json goes with --cost.
    """
    if json and not cost:
        raise typer.BadParameter("--json goes with --cost", param_hint="--json")
    with database(ctx) as db:
        asked = quoted(what) if what.lower() in db.state().views else what
        if not cost:
            typer.echo(str(db.sql(f"EXPLAIN {asked}")))
            return
        found = statements.cost(db, asked.strip().rstrip(";"))
        typer.echo(to_json(found.to_json(), indent=2) if json else shown(found))
