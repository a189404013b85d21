"""belvedere demo: a shop with live views, from nothing to verified results in under a minute."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from belvedere.cli.tables import plural
from belvedere.cli.verify import differences, verdicts
from belvedere.epochs.verify import Verification
from belvedere.errors import StoreError
from belvedere.stores.registry import exists

NEXT = (
    ('belvedere sql "SELECT * FROM best_sellers ORDER BY revenue DESC"', ""),
    ("belvedere explain revenue", "how a view is kept"),
    ("belvedere run", "and in another terminal: belvedere status --watch"),
)


def demo(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A new directory to keep. Default: a temporary one.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="How long orders stream in.")] = 20.0,
    rate: Annotated[int, typer.Option(min=20, help="Operations per second.")] = 5_000,
    opening: Annotated[int, typer.Option(min=1, help="Orders that are there before.")] = 20_000,
) -> None:
    """Watch a shop's views stay correct while orders stream in.

    At the end Spark SQL recomputes every view, and every row is compared.
    """
    from belvedere.cli.demo.story import Settings, play

    if path is not None and exists(str(path)):
        raise StoreError(f"{path} is a database already: choose a new path")
    folder = str(path) if path is not None else tempfile.mkdtemp(prefix="belvedere-demo-")
    console = Console(highlight=False)
    found = play(Settings(folder, seconds, rate, opening), console)
    _end(found, folder, console)
    if not all(v.ok for v in found):
        raise typer.Exit(1)


def _end(found: list[Verification], folder: str, console: Console) -> None:
    console.print(verdicts(found))
    for v in found:
        if v.differences:
            console.print(differences(v, 10))
    wrong = [v.view for v in found if not v.ok]
    if wrong:
        console.print(
            f"[bold red]wrong: {', '.join(wrong)}[/bold red]; the shop is kept in {folder}",
            soft_wrap=True,
        )
        return
    console.print(
        f"[bold green]{plural(len(found), 'view')} equal to their recomputation, row by row.[/bold"
        " green] The shop is kept. Try next:\n"
    )
    console.print(f"  [cyan]export BELVEDERE_DB={folder}[/cyan]", soft_wrap=True)
    for line, why in NEXT:
        console.print(
            f"  [cyan]{line}[/cyan]" + (f"  [dim]{why}[/dim]" if why else ""), soft_wrap=True
        )
