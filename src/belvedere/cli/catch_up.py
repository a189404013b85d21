"""belvedere catch-up: bring every view up to now, then return."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from belvedere.cli.options import Json, Master, MaxRows
from belvedere.cli.place import MASTER, database
from belvedere.cli.tables import console, new_table, plural
from belvedere.cli.values import to_json
from belvedere.pipeline.coordinator import EpochReport


def catch_up(
    ctx: typer.Context,
    max_rows: MaxRows = None,
    timeout: Annotated[float | None, typer.Option(min=0, metavar="SECONDS", help="Give up after so long.")] = None,
    master: Master = MASTER,
    json: Json = False,
) -> None:
    """Bring everything written so far into every view.

    Runs epochs itself, or waits for the pipeline that is running.
    """
    with database(ctx, master) as db:
        reports = db.catch_up(max_rows, timeout)
        epoch = db.status().epoch
    if json:
        typer.echo(to_json({"epoch": epoch, "epochs": [asdict(report) for report in reports]}))
        return
    out = console()
    if reports:
        out.print(epochs_table(reports))
    out.print(f"caught up at epoch {epoch:,}" + (f" in {plural(len(reports), 'epoch')}" if reports else ": there was nothing to do here"))


def epochs_table(reports: list[EpochReport]) -> object:
    table = new_table("epoch", "kind", "operations", "changes", "seconds", right=("epoch", "operations", "changes", "seconds"))
    for r in reports:
        table.add_row(f"{r.epoch:,}", r.kind, f"{r.operations:,}", f"{r.changes:,}", f"{r.seconds:.3f}")
    return table
