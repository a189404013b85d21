"""belvedere demo --sources: the same over databases of others, which run as long as the demo.

servers start, are filled -> sources and views are created -> all three places change -> what they
have arrives -> Spark SQL recomputes every view, and compares
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from rich.console import Console

from belvedere.cli.demo.frames import Frames
from belvedere.cli.demo.market import VIEWS, Market
from belvedere.cli.demo.screen import status_screen
from belvedere.cli.demo.story import SEED, Settings, verified
from belvedere.cli.signals import Stop, stopping
from belvedere.cli.terminal import TerminalDatabase
from belvedere.epochs.verify import Verification
from belvedere.errors import SourceError
from belvedere.sources.servers import MariaDBServer, PostgresServer
from belvedere.sources.servers.mariadb import missing
from belvedere.sources.servers.postgres import find_programs


def play_on_sources(settings: Settings, console: Console) -> list[Verification]:
    """The whole demo; returns how the views compare with their recomputation."""
    if missing():
        raise SourceError(missing())
    find_programs()
    folder = Path(settings.path).absolute()
    postgres = PostgresServer(folder / "servers" / "postgres")
    mariadb = MariaDBServer(folder / "servers" / "mariadb")
    with ExitStack() as ending:
        with console.status("starting PostgreSQL and MariaDB, which may have to be fetched ..."):
            for server in (postgres, mariadb):
                ending.callback(server.down)  # first, so that Ctrl-C finds it
                server.up()
        market = ending.enter_context(
            closing(Market(folder, postgres.address, mariadb.address, SEED))
        )
        market.open(settings.opening)
        db = ending.enter_context(TerminalDatabase(str(folder / "shop")))
        return _play(db, market, settings, console)


def _play(
    db: TerminalDatabase, market: Market, settings: Settings, console: Console
) -> list[Verification]:
    for statement in (*market.statements(), *VIEWS.values()):
        db.sql(statement)
    console.print(
        f"[bold]1[/bold] a shop in {settings.path}: {settings.opening:,} orders in PostgreSQL,"
        f" customers in MariaDB, prices in a file, {len(VIEWS)} views over them requested",
        soft_wrap=True,
    )
    console.print("[bold]2[/bold] starting Spark, which keeps the views")
    _ = db.spark
    console.print(f"[bold]3[/bold] all three change for {settings.seconds:g} s")
    pipeline = db.start()
    # Ctrl-C ends the changes early; the rest still runs
    with stopping() as stop, status_screen(console) as shown:
        frames = Frames(db, pipeline, shown)
        while not frames.draw("copying what the sources have", 0.0) and not stop.is_set():
            pass
        _stream(frames, market, settings, stop)
        frames.draw("catching up", 1.0)
        db.catch_up()
        frames.draw("everything is in every view", 1.0)
    pipeline.stop()
    console.print("[bold]4[/bold] comparing every view with what Spark SQL computes from the rows")
    return [verified(db, name, console) for name in VIEWS]


def _stream(frames: Frames, market: Market, settings: Settings, stop: Stop) -> None:
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(market.write, settings.rate, ended)
        try:
            _draw_stream(frames, settings.seconds, stop, writing)
        finally:
            ended.set()
    writing.result()  # its error, if it has one


def _draw_stream(frames: Frames, seconds: float, stop: Stop, writing: Future[None]) -> None:
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        if stop.is_set() or writing.done():
            return
        frames.draw(f"all three change: {passed:.0f} of {seconds:g} s", passed / seconds)
