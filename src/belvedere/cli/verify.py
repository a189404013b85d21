"""belvedere verify: recompute views with Spark SQL and compare; repair what is
wrong, if told to.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from belvedere.cli.options import Conf, Json, Master
from belvedere.cli.tables import console, new_table
from belvedere.cli.terminal import MASTER, database
from belvedere.cli.values import to_json
from belvedere.cli.verify_base import Wanted, verify_tables
from belvedere.cli.wrong_rows import KINDS, counted, outcome, wrong_rows
from belvedere.database import Database
from belvedere.epochs.verify import Verification
from belvedere.errors import ViewNotReady


def verify(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Views, with --base tables; all if none is named.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        bool,
        typer.Option(
            "--base", help="Compare tables that others write with what their own store answers."
        ),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Show what a repair would change; with --yes, change it."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --repair: really correct the wrong rows.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many wrong rows of a view to list.")
    ] = 10,
    master: Master = MASTER,
    conf: Conf = None,
    json: Json = False,
) -> None:
    """Compare views with what Spark SQL computes.

    Every view is recomputed from its table as of one epoch. With --base the tables are looked at
    that others write: what we have of a table of HBase, or of a relation of a source, beside the
    table itself. The exit code is 1 if a row is wrong.
    """
    if yes and not repair:
        raise typer.BadParameter("it belongs to --repair", param_hint="--yes")
    with database(ctx, master, conf) as db:
        if base:
            verify_tables(db, names, Wanted(repair, yes, limit, json))
            return
        wanted = [
            db.state().view(name).name
            for name in names or [v.name for v in db.state().views.values()]
        ]
        found = [_checked(db, name, repair and yes) for name in wanted]
    if json:
        listed = [{**asdict(v), "ok": v.ok} for v in found]
        typer.echo(
            to_json({"ok": all(v.ok for v in found), "repaired": repair and yes, "views": listed})
        )
    else:
        _show(found, console(), limit, repair, yes)
    if any(v.problem or (not v.ok and not (repair and yes)) for v in found):
        raise typer.Exit(1)


def _checked(db: Database, name: str, correct: bool) -> Verification:
    _ = db.spark  # its spinner first
    with Console(stderr=True).status(f"recomputing {escape(name)} with Spark SQL ..."):
        try:
            return db.repair(name) if correct else db.verify(name)
        except ViewNotReady as error:
            return Verification(name, 0, 0, {}, (), str(error).partition(":")[0])


def _show(found: list[Verification], out: Console, limit: int, repair: bool, yes: bool) -> None:
    out.print(verdicts(found) if found else "there are no views to verify")
    for v in found:
        if v.differences and limit:
            out.print(differences(v, limit))
    if repair:
        out.print(outcome(sum(sum(v.counts.values()) for v in found), yes))


def verdicts(found: list[Verification]) -> Table:
    """One line per view, with a tick or a cross."""
    table = new_table("", "view", "epoch", "rows", *KINDS, "", right=("epoch", "rows", *KINDS))
    for v in found:
        mark = Text("✓", "bold green") if v.ok else Text("✗", "bold red")
        said = (
            Text(v.problem, "red")
            if v.problem
            else Text("equal", "green")
            if v.ok
            else Text("wrong", "red")
        )
        table.add_row(
            mark, Text(v.view, "bold"), f"{v.epoch:,}", f"{v.rows:,}", *counted(v.counts), said
        )
    return table


def differences(v: Verification, limit: int) -> Table:
    """Wrong rows: as they are, and as they should be."""
    named = v.view, ("in the view", "recomputed")
    return wrong_rows(*named, v.differences, sum(v.counts.values()), limit)
