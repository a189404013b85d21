"""belvedere rebuild: build views anew whose own state is damaged."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import Conf, Json, Master
from belvedere.cli.tables import console
from belvedere.cli.terminal import MASTER, database
from belvedere.cli.values import to_json


def rebuild(
    ctx: typer.Context,
    views: Annotated[
        list[str], typer.Argument(metavar="VIEW...", help="The views.", show_default=False)
    ],
    master: Master = MASTER,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Build views anew from their tables.

    What they kept is dropped unread, so it may be damaged. Views that share something with them are
    built anew too. Runs epochs itself, or waits for the pipeline that is running.
    """
    with database(ctx, master, conf) as db:
        names = db.rebuild(*views)
        db.catch_up()
    if json:
        typer.echo(to_json({"rebuilt": names}))
    else:
        console().print(f"built anew: {', '.join(names)}", soft_wrap=True, markup=False)
