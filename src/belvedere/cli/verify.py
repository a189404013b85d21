"""belvedere verify: recompute views with Spark SQL and compare; repair what is
wrong, if told to.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belvedere.cli.options import Conf, Json, Master
from belvedere.cli.tables import console, new_table, plural
from belvedere.cli.terminal import MASTER, database
from belvedere.cli.values import to_json, to_text
from belvedere.database import Database
from belvedere.epochs.verify import SHOWN, Difference, Verification
from belvedere.errors import ViewNotReady

KINDS = ("missing", "extra", "different")


def verify(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="VIEW", help="Views; all if none is named.", show_default=False),
    ] = None,
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

    Every view is recomputed from its table as of one epoch. The exit code is 1 if a row is wrong.
    """
    if yes and not repair:
        raise typer.BadParameter("it belongs to --repair", param_hint="--yes")
    with database(ctx, master, conf) as db:
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
    with Console(stderr=True).status(f"recomputing {name} with Spark SQL ..."):
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
        out.print(_outcome(found, yes))


def _outcome(found: list[Verification], yes: bool) -> str:
    wrong = sum(sum(v.counts.values()) for v in found)
    if not wrong:
        return "there is nothing to repair"
    if yes:
        return f"[green]{plural(wrong, 'row')} corrected[/green]"
    return (
        f"[yellow]nothing was changed[/yellow]: --repair --yes would correct {plural(wrong, 'row')}"
        " as shown above"
    )


def verdicts(found: list[Verification]) -> Table:
    """One line per view, with a tick or a cross."""
    table = new_table("", "view", "epoch", "rows", *KINDS, "", right=("epoch", "rows", *KINDS))
    for v in found:
        mark = Text("✓", "bold green") if v.ok else Text("✗", "bold red")
        counts = (
            Text(f"{v.counts.get(kind, 0):,}", "bold red" if v.counts.get(kind) else "dim")
            for kind in KINDS
        )
        said = (
            Text(v.problem, "red")
            if v.problem
            else Text("equal", "green")
            if v.ok
            else Text("wrong", "red")
        )
        table.add_row(mark, Text(v.view, "bold"), f"{v.epoch:,}", f"{v.rows:,}", *counts, said)
    return table


def differences(v: Verification, limit: int) -> Table:
    """Wrong rows: as they are, and as they should be."""
    total = sum(v.counts.values())
    title = f"{v.view}: {plural(total, 'wrong row')}" + (
        f", the first {limit}" if total > limit else ""
    )
    table = new_table("", "in the view", "recomputed", title=title)
    for d in v.differences[: min(limit, SHOWN)]:
        table.add_row(d.kind, _cells(d.found, d, "red"), _cells(d.expected, d, "green"))
    return table


def _cells(row: dict[str, Any] | None, d: Difference, style: str) -> Text:
    if row is None:
        return Text("-", "dim")
    other = (d.expected if row is d.found else d.found) or {}
    text = Text()
    for name, value in row.items():
        same = name in other and other[name] == value
        text.append(f"{name}=", "dim").append(to_text(value) + " ", "" if same else style)
    return text.append(f"× {d.times}", "dim") if d.times > 1 else text
