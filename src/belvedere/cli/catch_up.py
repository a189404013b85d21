"""belvedere catch-up: bring every view up to now, then return."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from belvedere.catalog.definitions import LOADING, REQUESTED
from belvedere.cli.options import Conf, Json, Master, MaxRows
from belvedere.cli.tables import console, new_table, plural
from belvedere.cli.terminal import MASTER, database
from belvedere.cli.values import to_json
from belvedere.epochs.coordinator import EpochReport
from belvedere.status import Status
from belvedere.waiting import check_seconds


def catch_up(
    ctx: typer.Context,
    max_rows: MaxRows = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Begin no epoch after so long; 0 only looks whether there is work.",
        ),
    ] = None,
    master: Master = MASTER,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Bring everything written so far into every view.

    Runs epochs itself, or waits for the pipeline that is running.
    """
    check_seconds("--timeout", timeout)
    with database(ctx, master, conf) as db:
        before = db.status()
        if _has_work(before) and not before.coordinator and timeout != 0:
            _ = db.spark  # before the epochs, so that their times are their own
        reports = db.catch_up(max_rows, timeout)
        epoch = db.status().epoch
    if json:
        typer.echo(to_json({"epoch": epoch, "epochs": [asdict(report) for report in reports]}))
        return
    out = console()
    if reports:
        out.print(epochs_table(reports))
    how = (
        f" in {plural(len(reports), 'epoch')}"
        if reports
        else (
            ", by the pipeline that is running"
            if _has_work(before)
            else ": there was nothing to do"
        )
    )
    out.print(f"caught up at epoch {epoch:,}{how}")


def _has_work(status: Status) -> bool:
    return bool(status.lag_operations or any(v.state in (REQUESTED, LOADING) for v in status.views))


def epochs_table(reports: list[EpochReport]) -> object:
    table = new_table(
        "epoch",
        "kind",
        "operations",
        "changes",
        "seconds",
        right=("epoch", "operations", "changes", "seconds"),
    )
    for r in reports:
        table.add_row(
            f"{r.epoch:,}", r.kind, f"{r.operations:,}", f"{r.changes:,}", f"{r.seconds:.3f}"
        )
    return table
