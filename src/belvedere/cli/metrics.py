"""belvedere metrics: the status for Prometheus."""

from __future__ import annotations

import typer

from belvedere.cli.terminal import database
from belvedere.status import prometheus


def metrics(ctx: typer.Context) -> None:
    """Print the status as Prometheus text."""
    with database(ctx) as db:
        typer.echo(prometheus(db.status()), nl=False)
