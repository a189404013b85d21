"""belvedere history: how much of the past is kept."""

from __future__ import annotations

from typing import Annotated

import typer

from belvedere.cli.options import Json
from belvedere.cli.terminal import database
from belvedere.cli.values import to_json


def history(
    ctx: typer.Context,
    epochs: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Keep so many epochs.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Keep what was current in so many seconds."),
    ] = None,
    json: Json = False,
) -> None:
    """Show or say how much of the past can be read.

    With --epochs and --seconds the larger of both is kept, while there is room; 0 keeps none.
    """
    with database(ctx) as db:
        if epochs is not None or seconds is not None:
            db.keep_history(epochs or 0, seconds or 0.0)
        found = db.status()
        consumers = db.consumers()
    if json:
        said = {"history": found.history, "oldest": found.oldest_epoch, "newest": found.epoch}
        typer.echo(to_json({**said, "consumers": {c.name: c.epoch for c in consumers}}))
        return
    typer.echo(f"kept: {found.history or 'nothing beyond the last epochs'}")
    typer.echo(f"epochs {found.oldest_epoch:,} to {found.epoch:,} can be read")
    for consumer in consumers:
        typer.echo(f"consumer {consumer.name} has read up to epoch {consumer.epoch:,}")
