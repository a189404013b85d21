"""belvedere changes: what every epoch changed in a view, as JSON lines."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from belvedere.cli.terminal import database
from belvedere.cli.values import to_json
from belvedere.feed import Changes
from belvedere.spark.launch import terminated_by_exception


def changes(
    ctx: typer.Context,
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view.", show_default=False)],
    since: Annotated[
        int | None,
        typer.Option(min=0, metavar="EPOCH", help="Only later changes; 0: all rows first."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="With --follow: end if nothing comes so long."),
    ] = None,
    consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Go on where this consumer ended; history is kept for it."
        ),
    ] = None,
    keep_epochs: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="With --consumer: keep so many epochs for it."),
    ] = None,
    keep_seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="With --consumer: keep epochs so long for it."),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Forget the consumer, and keep nothing for it.")
    ] = False,
) -> None:
    """Print what every epoch changed in a view.

    One JSON line per row, with _epoch and _weight: -1 for a row that went, 1 for one that came.
    """
    if drop and consumer is None:
        raise typer.BadParameter("name the consumer with --consumer", param_hint="--drop")
    if consumer is None and (keep_epochs is not None or keep_seconds is not None):
        hint = "--keep-seconds" if keep_epochs is None else "--keep-epochs"
        raise typer.BadParameter("name the consumer with --consumer", param_hint=hint)
    if timeout is not None and not follow:
        raise typer.BadParameter("give --follow too", param_hint="--timeout")
    with terminated_by_exception(), database(ctx) as db:
        found = db.view(view)
        if drop:
            db.drop_consumer(consumer or "")
            typer.echo(f"consumer {consumer} is forgotten")
            return
        with (
            suppress(KeyboardInterrupt),
            found.changes(since, follow, timeout, consumer, keep_epochs, keep_seconds) as feed,
        ):
            _print(feed)


def _print(feed: Changes) -> None:
    """An epoch is acknowledged when all of it is written."""
    for table in feed:
        for batch in table.to_batches():
            for row in batch.to_pylist():
                sys.stdout.write(to_json(row) + "\n")
        sys.stdout.flush()
        if feed.consumer is not None:
            feed.acknowledge()
    if feed.consumer is not None and feed.epoch:
        feed.acknowledge()
