"""belvedere run: the pipeline, until Ctrl-C."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from belvedere.catalog.definitions import LOADING
from belvedere.cli.noted import noted, say
from belvedere.cli.options import Conf, Master, MaxRows
from belvedere.cli.signals import Stop, stopping
from belvedere.cli.status import loading
from belvedere.cli.tables import console, plural
from belvedere.cli.terminal import MASTER, database
from belvedere.database import Database
from belvedere.epochs.handle import AWAITING_LEASE, IDLING, STARTING, Pipeline
from belvedere.status import Status, this_process
from belvedere.waiting import check_seconds

# seconds between two looks; without a terminal a line is printed less often
_REFRESH, _PLAIN = 0.5, 5.0
_LOOK = 0.05  # the same while another pipeline is waited for
_RECENT = 60.0  # seconds; of older epochs no rate is told
_LAST_EPOCH = 600.0  # how long a stop waits for the epoch under way


def run(
    ctx: typer.Context,
    every: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Pause between epochs. Default: as fast as operations come.",
        ),
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Stop when there is nothing left to do.")
    ] = False,
    max_rows: MaxRows = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Append what every epoch took and showed, for belvedere check."
        ),
    ] = None,
    master: Master = MASTER,
    conf: Conf = None,
) -> None:
    """Keep all views up to date until Ctrl-C.

    Ctrl-C and SIGTERM let the epoch under way finish. A second pipeline stands by, with Spark
    running, and takes over when the first has ended; at once if it was killed on this host. If
    Spark fails or the disk is full it ends with 1, and the next start goes on where it was: let a
    supervisor start it again.
    """
    check_seconds("--every", every)
    with stopping() as stop, noted(), database(ctx, master, conf) as db:
        _ = db.spark
        stop.take()
        if stop.is_set():
            say(console(), "stopped before the first epoch")
            return
        began = db.status().committed
        if db.status().coordinator:
            db.warm_up()
        pipeline = db.start("available_now" if available_now else every, max_rows, history)
        _follow(db, pipeline, stop, console())
        pipeline.stop(_LAST_EPOCH)
        status = db.status()
        say(
            console(),
            f"stopped at epoch {status.epoch:,}: {plural(status.committed - began, 'operation')}"
            " brought into the views",
        )


def _follow(db: Database, pipeline: Pipeline, stop: Stop, out: Console) -> None:
    """Show where the pipeline stands until it ends or is asked to."""
    say(out, f"pipeline of {db.store.url} started")
    _stand_by(db, pipeline, stop, out)
    if not out.is_terminal:
        shown = ""
        while pipeline.status.is_active and not stop.wait(_PLAIN):
            if (text := line(db, pipeline)) != shown:
                say(out, shown := text)
        return
    spinner = Spinner("dots", "starting", style="green")
    with Live(spinner, console=out, refresh_per_second=8, transient=True):
        while pipeline.status.is_active and not stop.wait(_REFRESH):
            spinner.update(text=line(db, pipeline) + "  [dim]Ctrl-C stops[/dim]")
        spinner.update(text="finishing the epoch under way ...")


def _stand_by(db: Database, pipeline: Pipeline, stop: Stop, out: Console) -> None:
    """If another pipeline is alive, say so, and when its work has become ours."""

    def goes_on() -> bool:
        return pipeline.status.is_active and not stop.wait(_LOOK)

    while pipeline.status.message == STARTING and goes_on():
        pass
    if pipeline.status.message == AWAITING_LEASE:
        who = db.status().coordinator or "another pipeline"
        say(out, f"standing by until {who} ends")
    while pipeline.status.message == AWAITING_LEASE and goes_on():
        pass
    if (taken := pipeline.takeover) is None:
        return
    how = "died" if taken.has_died else "ended"
    gap = f"{taken.seconds:.2f} s without a pipeline"
    say(out, f"took over from {taken.holder}, which {how}: {gap}")
    began = time.monotonic()
    while not (first := pipeline.last_progress) and pipeline.status.message != IDLING and goes_on():
        pass
    if first:
        say(out, f"epoch {first.epoch:,} committed {time.monotonic() - began:.2f} s after that")


def line(db: Database, pipeline: Pipeline) -> str:
    """One line that says how things are."""
    status, last = db.status(), pipeline.last_progress
    live = len(status.views) - len(status.unbuilt)
    parts = [f"epoch {status.epoch:,}", f"{live} of {plural(len(status.views), 'view')} live"]
    parts += sorted({loading(v) for v in status.unbuilt if v.state == LOADING})
    # ours: it has just taken over
    if pipeline.status.message == AWAITING_LEASE and status.coordinator != this_process():
        parts.append(f"waiting until {status.coordinator or 'another pipeline'} ends")
    if status.lag_operations:
        parts.append(f"{plural(status.lag_operations, 'operation')} behind")
    elif not status.unbuilt:
        parts.append("up to date")
    if last is not None:
        parts.append(f"last epoch {plural(last.operations, 'operation')} in {last.seconds:.2f} s")
    if (rate := _rate(status)) is not None:
        parts.append(f"{rate:,.0f} operations/s")
    return " · ".join(parts)


def _rate(status: Status) -> float | None:
    """Operations per second of epochs; those of long ago do not count, nor those that nobody
    needed.
    """
    recent = [
        m
        for m in status.epochs
        if m["operations"] and m["managers"] and m["committed"] > time.time() - _RECENT
    ]
    seconds = sum(m["committed"] - m["started"] for m in recent)
    return sum(m["operations"] for m in recent) / seconds if seconds else None
