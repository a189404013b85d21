"""belvedere verify --base: what we have of tables that others write, beside the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from belvedere.base_checks import checked_names
from belvedere.cli.tables import console, new_table, plural
from belvedere.cli.values import to_json
from belvedere.cli.wrong_rows import KINDS, counted, outcome, wrong_rows
from belvedere.database import Database
from belvedere.epochs.base_check import BaseVerification


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options of the command say."""

    repair: bool
    yes: bool
    limit: int
    json: bool

    @property
    def corrects(self) -> bool:
        return self.repair and self.yes


def verify_tables(db: Database, names: Sequence[str] | None, wanted: Wanted) -> None:
    """The exit code is 1 if a row is wrong, and stays so."""
    possible = checked_names(db)
    chosen = [db.state().relation(name).name for name in names or possible]
    found = [_checked(db, name, wanted) for name in chosen]
    if wanted.json:
        listed = [{**asdict(v), "ok": v.ok} for v in found]
        said = {"ok": all(v.ok for v in found), "repaired": wanted.corrects, "tables": listed}
        typer.echo(to_json(said))
    else:
        _show(found, console(), wanted)
    if not wanted.corrects and not all(v.ok for v in found):
        raise typer.Exit(1)


def _checked(db: Database, name: str, wanted: Wanted) -> BaseVerification:
    with Console(stderr=True).status(f"comparing {escape(name)} with its own store ..."):
        return db.repair_base(name) if wanted.corrects else db.verify_base(name)


def _show(found: list[BaseVerification], out: Console, wanted: Wanted) -> None:
    out.print(verdicts(found) if found else "there are no tables to verify")
    for v in found:
        if v.differences and wanted.limit:
            sides = ("ours", "in its own store")
            total = sum(v.counts.values())
            out.print(wrong_rows(v.table, sides, v.differences, total, wanted.limit))
    if wanted.repair:
        out.print(outcome(sum(sum(v.counts.values()) for v in found), wanted.yes))


def verdicts(found: list[BaseVerification]) -> Table:
    """One line per table, with a tick or a cross."""
    table = new_table("", "table", "epoch", "rows", *KINDS, "", right=("epoch", "rows", *KINDS))
    for v in found:
        mark = Text("✓", "bold green") if v.ok else Text("✗", "bold red")
        name = Text(v.table, "bold")
        table.add_row(mark, name, f"{v.epoch:,}", f"{v.rows:,}", *counted(v.counts), _said(v))
    return table


def _said(v: BaseVerification) -> Text:
    said = Text("equal", "green") if v.ok else Text("wrong", "red")
    if v.undecided:
        rows = plural(v.undecided, "row")
        said.append(f"; {rows} not decided, written all the time", "yellow")
    return said
