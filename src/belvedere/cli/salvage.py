"""belvedere salvage: keep what is intact of tables whose rows are damaged."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from belvedere.cli.options import Json
from belvedere.cli.place import Place, url_of
from belvedere.cli.tables import console, plural
from belvedere.cli.values import to_json
from belvedere.errors import StoreError
from belvedere.salvage import Salvaged
from belvedere.salvage import salvage as take_out
from belvedere.spark.launch import terminated_by_exception


def salvage(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Really give up what is damaged.")] = False,
    json: Json = False,
) -> None:
    """Keep what is intact of tables whose rows are damaged.

    For a database without a backup. Says which keys are concerned; with --yes the damaged runs are
    given up, and all views of these tables, and those with damaged runs of their own, are built
    anew by the next epochs. Nobody else may have
    the database open. The exit code is 1 if something is damaged, and stays so.
    """
    place = ctx.obj if isinstance(ctx.obj, Place) else Place()
    if place.read_only:
        raise StoreError("to salvage a database changes it: leave out --read-only")
    with terminated_by_exception():
        found = take_out(url_of(place), really=yes)
    if json:
        typer.echo(to_json(asdict(found), indent=2))
    else:
        _show(found, console())
    if (found.lost or found.views) and not found.done:
        raise typer.Exit(1)


def _show(found: Salvaged, out: Console) -> None:
    if not (found.lost or found.views):
        out.print("no runs are damaged: nothing was changed")
        return
    are = "are" if found.done else "would be"
    for each in found.lost:
        what = f"{each.table}, slot {each.slot}: up to {plural(each.rows, 'row')}, keys {each.keys}"
        out.print(f"{what}: {each.what}", soft_wrap=True, markup=False)
    if found.lost:
        lost = f"these rows {are} missing, older than they were, or back although they were deleted"
        out.print(f"{lost}; all others stay", soft_wrap=True)
    views = ", ".join(found.views) or "none"
    out.print(f"views that {are} built anew: {views}", soft_wrap=True, markup=False)
    hint = "belvedere catch-up builds them" if found.done else "nothing was changed: add --yes"
    out.print(hint)
