"""belvedere compact: room given back to the file system."""

from __future__ import annotations

from dataclasses import asdict

import typer

from belvedere import backups
from belvedere.cli.options import Json
from belvedere.cli.place import Place, url_of
from belvedere.cli.tables import console, size
from belvedere.cli.values import to_json
from belvedere.errors import StoreError
from belvedere.spark.launch import terminated_by_exception


def compact(ctx: typer.Context, json: Json = False) -> None:
    """Give room back to the file system.

    Removes what nobody needs any more, merges the runs of every table, and leaves out free pages.
    Nobody else may have the database open; who opens it meanwhile waits.
    """
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    if place.read_only:
        raise StoreError("to compact a database changes it: leave out --read-only")
    url = url_of(place)
    with terminated_by_exception():
        done = backups.compact(url)
    if json:
        typer.echo(to_json({**asdict(done), "given_back": done.before - done.after}))
        return
    console().print(
        f"{size(done.before - done.after)} given back: {url} had {size(done.before)}, now"
        f" {size(done.after)}",
        soft_wrap=True,
        markup=False,
    )
