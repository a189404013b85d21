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
    ("export BELVEDERE_DB={folder}", ""),
    ('belvedere sql "SELECT * FROM best_sellers ORDER BY revenue DESC"', ""),
    ("belvedere explain revenue", "how a view is kept"),
    ("belvedere run", "and in another terminal: belvedere status --watch"),
)

NEXT_ON_HBASE = (
    ("belvedere hbase up {folder}", "starts it again, and prints the URL for --db"),
    ("belvedere --db URL run", "and write the table shop:orders with any client of HBase"),
)

NEXT_ON_SOURCES = (
    ("belvedere sources up {folder}/servers", "starts them again, and shows how to reach them"),
    ("belvedere --db {folder}/shop run", "and write in them, or edit {folder}/prices.csv"),
    ("belvedere --db {folder}/shop status --watch", "in another terminal"),
    ("belvedere --db {folder}/shop scan by_city", ""),
)
_RATE, _RATE_OF_SOURCES = 5_000, 500


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
    rate: Annotated[
        int | None,
        typer.Option(
            min=20,
            help=f"Operations per second.  [default: {_RATE}, with --sources {_RATE_OF_SOURCES}]",
            show_default=False,
        ),
    ] = None,
    opening: Annotated[int, typer.Option(min=1, help="Orders that are there before.")] = 20_000,
    hbase: Annotated[
        bool, typer.Option("--hbase", help="Orders are a table of a real HBase, started in PATH.")
    ] = False,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources",
            help="Orders are in a real PostgreSQL, customers in a real MariaDB, both started in"
            " PATH, and prices in a file.",
        ),
    ] = False,
) -> None:
    """Watch a shop's views stay correct while orders stream in.

    At the end Spark SQL recomputes every view, and every row is compared.
    """
    from belvedere.cli.demo.story import Settings, play, play_on_hbase

    if hbase and sources:
        raise typer.BadParameter("one of --hbase and --sources is enough", param_hint="--sources")
    if path is not None and exists(str(path)):
        raise StoreError(f"{path} is a database already: choose a new path")
    if sources and path is not None and path.exists() and any(path.iterdir()):
        raise StoreError(f"{path} is not empty: choose a new path")
    folder = str(path) if path is not None else tempfile.mkdtemp(prefix="belvedere-demo-")
    console = Console(highlight=False)
    wanted = rate or (_RATE_OF_SOURCES if sources else _RATE)
    settings = Settings(folder, seconds, wanted, opening)
    if sources:
        from belvedere.cli.demo.sources import play_on_sources

        found = play_on_sources(settings, console)
    else:
        found = play_on_hbase(settings, console) if hbase else play(settings, console)
    following = NEXT_ON_SOURCES if sources else NEXT_ON_HBASE if hbase else NEXT
    _end(found, folder, console, following)
    if not all(v.ok for v in found):
        raise typer.Exit(1)


def _end(
    found: list[Verification], folder: str, console: Console, following: tuple[tuple[str, str], ...]
) -> None:
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
    for line, why in following:
        console.print(
            f"  [cyan]{line.format(folder=folder)}[/cyan]"
            + (f"  [dim]{why.format(folder=folder)}[/dim]" if why else ""),
            soft_wrap=True,
        )
