"""belvedere status: where every view stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from belvedere.catalog.definitions import STRONG
from belvedere.cli.captured import captured
from belvedere.cli.followed import followed
from belvedere.cli.options import Json
from belvedere.cli.signals import Stop, stopping
from belvedere.cli.tables import console, new_table, size
from belvedere.cli.terminal import database
from belvedere.cli.values import to_json
from belvedere.kept_status import KeptLag
from belvedere.status import Status, ViewInfo

STATES = {"live": "green", "loading": "yellow", "requested": "yellow", "in error": "bold red"}


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How often --watch refreshes.")
    ] = 1.0,
    epochs: Annotated[
        int, typer.Option(min=0, max=20, metavar="N", help="How many recent epochs to show.")
    ] = 5,
    json: Json = False,
) -> None:
    """Show every view's state and lag, and recent epochs.

    Times of stages are sums over all view managers, so they can exceed the time of their epoch.
    """
    out = console()
    with database(ctx) as db:
        if not watch:
            found = db.status()
            if json:
                typer.echo(to_json(found.to_json(), indent=2))
            else:
                out.print(shown(found, epochs))
            return
        with stopping() as stop:
            if json or not out.is_terminal:
                _print_until(
                    stop,
                    lambda: (
                        Text(to_json(db.status().to_json())) if json else shown(db.status(), epochs)
                    ),
                    every,
                )
                return
            with Live(shown(db.status(), epochs), console=out, auto_refresh=False) as live:
                while not stop.wait(every):
                    live.update(shown(db.status(), epochs), refresh=True)


def _print_until(stop: Stop, look: Callable[[], RenderableType], every: float) -> None:
    out = console()
    out.print(look(), soft_wrap=True)
    while not stop.wait(every):
        out.print(look(), soft_wrap=True)


def shown(found: Status, epochs: int) -> RenderableType:
    parts: list[RenderableType] = [_heading(found)]
    if found.views:
        parts.append(views_table(found.views))
        parts += kept_lines(found.views)
    if found.capture is not None:
        parts += captured(found.capture, found.tables)
    parts += followed(found.sources)
    if epochs and found.epochs:
        parts.append(epochs_table(found.epochs[-epochs:]))
    return Group(*parts)


def _heading(found: Status) -> Text:
    keeper = (
        f"kept up to date by {found.coordinator}"
        if found.coordinator
        else "no pipeline is running: belvedere run starts one"
    )
    behind = (
        f"{found.lag_operations:,} behind"
        if found.lag_operations
        else f"all in the {'live ' if found.unbuilt else ''}views"
    )
    past = (
        f"\nhistory: {found.history}, from epoch {found.oldest_epoch:,} on" if found.history else ""
    )
    return Text.assemble(
        (found.url.removeprefix("belvedere:"), "bold"),
        f"  epoch {found.epoch:,}  {found.written:,} operations written, {behind}\n",
        (keeper, "green" if found.coordinator else "yellow"),
        past,
    )


def loading(view: ViewInfo) -> str:
    """How far a view that is being built has got."""
    if not view.total_rows:
        return f"loading {view.loaded_rows:,}"
    left = "" if view.seconds_left is None else f", about {view.seconds_left:,.0f} s left"
    return f"loading {view.loaded_rows:,} of about {view.total_rows:,}{left}"


def views_table(views: tuple[ViewInfo, ...]) -> Table:
    numbers = ("epoch", "behind", "seconds", "rows touched", "records", "size", "errors")
    is_usual = all(v.consistency == v.given == STRONG for v in views)
    levels = () if is_usual else ("level",)
    table = new_table("view", "state", *levels, *numbers, right=numbers)
    for v in views:
        errors = Text(f"{v.errors:,}", style="bold red" if v.errors else "dim")
        state = Text(loading(v) if v.state == "loading" else v.state, style=STATES.get(v.state, ""))
        lag = (f"{v.lag_operations:,}", f"{v.lag_seconds:.1f}")
        epoch = f"{v.epoch:,}" if v.epoch else "-"
        table.add_row(
            Text(v.name, "bold"),
            state,
            *(_level(v) for _ in levels),
            epoch,
            *lag,
            f"{v.touched_rows:,}",
            f"{v.state_records:,}",
            size(v.state_bytes),
            errors,
        )
    return table


def kept_lines(views: tuple[ViewInfo, ...]) -> list[Text]:
    """What an algorithm does for its view, and what is wrong with its sources."""
    lines = []
    for v in (view for view in views if view.algorithm):
        waits = f", waits for {v.waits}" if v.waits else ""
        again = f" ({v.asked_again:,} again)" if v.asked_again else ""
        lines.append(Text(f"{v.name}: {v.algorithm} has asked {v.asked:,} times{again}{waits}"))
        lines += [Text(f"{v.name}: {_kept_lag(lag)}") for lag in v.lags]
        lines += [Text(f"{v.name}: {v.advice}", "yellow")] if v.advice else []
    return lines


def _kept_lag(lag: KeptLag) -> str:
    oldest = f", the oldest {lag.lag_seconds:.1f} s old" if lag.lag_transactions else ""
    log = f"{size(lag.lag_bytes)} unread, {size(lag.kept_bytes)} kept there"
    note = f"; {lag.note}" if lag.note else ""
    return f"{lag.source} is {lag.lag_transactions:,} transactions ahead{oldest}; {log}{note}"


def _level(view: ViewInfo) -> str:
    """The level of consistency that is given, and the one that is asked for if it is less."""
    is_same = view.given == view.consistency
    return view.given if is_same else f"{view.given} ({view.consistency} asked)"


def epochs_table(manifests: tuple[dict[str, Any], ...]) -> Table:
    """Recent epochs, newest first.

    Stage times are sums over all view managers, so they may exceed the epoch's own.
    """
    stages = list(dict.fromkeys(stage for m in manifests for stage in m["seconds"]))
    names = ("operations", "changes", "seconds", *stages)
    table = new_table("epoch", "kind", *names, right=("epoch", *names))
    for m in reversed(manifests):
        times = (f"{m['seconds'][s]:.3f}" if s in m["seconds"] else "" for s in stages)
        counts = (
            f"{m['operations']:,}",
            f"{m['changes']:,}",
            f"{m['committed'] - m['started']:.3f}",
        )
        table.add_row(f"{m['epoch']:,}", m["kind"], *counts, *times)
    return table
