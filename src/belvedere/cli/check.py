"""belvedere check: which level of consistency a history reaches."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belvedere.cli.options import Json
from belvedere.cli.tables import console, new_table
from belvedere.cli.values import to_json
from belvedere.consistency.history import read_history
from belvedere.consistency.judge import judge
from belvedere.consistency.lattice import LIMIT
from belvedere.consistency.levels import LEVELS, STRONG, Verdict
from belvedere.errors import HistoryError

_UNDECIDED = 2


def check(
    ctx: typer.Context,
    history: Annotated[
        Path, typer.Argument(metavar="HISTORY", help="A file of JSON lines.", show_default=False)
    ],
    level: Annotated[
        str, typer.Option(metavar="LEVEL", help=f"The least level: {', '.join(LEVELS)}.")
    ] = STRONG,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Source states to try, per observer.")
    ] = LIMIT,
    json: Json = False,
) -> None:
    """Judge what readers saw against what was written.

    The exit code is 0 if the level holds for everything that was seen, 1 if it is violated, 2 if
    the history cannot be read or not be decided within the limit.
    """
    if level not in LEVELS:
        raise typer.BadParameter(f"use one of {', '.join(LEVELS)}", param_hint="--level")
    try:
        found = judge(read_history(history), limit, up_to=level)
    except HistoryError as error:
        raise typer.BadParameter(str(error), param_hint="HISTORY") from error
    code = exit_code(found, level)
    if json:
        answer = {"ok": code == 0, "level": level, "verdicts": [asdict(v) for v in found]}
        typer.echo(to_json(answer))
    else:
        _show(found, level, console())
    if code:
        raise typer.Exit(code)


def exit_code(found: list[Verdict], level: str) -> int:
    held = [v.holds(level) for v in found]
    return 1 if False in held else _UNDECIDED if None in held else 0


def _show(found: list[Verdict], level: str, out: Console) -> None:
    out.print(_table(found, level) if found else "nothing was seen: there is nothing to judge")
    for verdict in found:
        if verdict.holds(level) is False:
            out.print(Text(verdict.witness or f"{verdict.subject}: {verdict.why}"), soft_wrap=True)


def _table(found: list[Verdict], level: str) -> Table:
    table = new_table("", "view", "record", "seen by", "reached", "")
    for v in found:
        held = v.holds(level)
        mark = {True: Text("✓", "bold green"), False: Text("✗", "bold red"), None: Text("?")}[held]
        record = "all" if v.record is None else ", ".join(map(str, v.record))
        said = v.unknown or (f"misses {v.missed}" if v.missed else "")
        table.add_row(mark, Text(v.view, "bold"), record, v.by, v.reached or "none", Text(said))
    return table
