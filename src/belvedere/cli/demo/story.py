"""What happens in the demo, in order.

orders are there -> four views are built -> orders stream -> a fifth view is built meanwhile -> the
stream ends -> the views catch up -> Spark SQL recomputes every view, and compares
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console

from belvedere.cli.demo.frames import Frames
from belvedere.cli.demo.screen import Screen, screen
from belvedere.cli.demo.shop import LATE, TABLE, VIEWS, Shop
from belvedere.cli.demo.writer import Writer, writer
from belvedere.cli.signals import Stop, stopping
from belvedere.cli.terminal import TerminalDatabase
from belvedere.epochs.verify import Verification
from belvedere.errors import PipelineError

if TYPE_CHECKING:
    from belvedere.epochs.handle import Pipeline

_LATE_AT = 0.4  # of the streaming time
SEED = 7


@dataclass(frozen=True, slots=True)
class Settings:
    """`path` is what opens the database; `options` follow the columns of the table."""

    path: str
    seconds: float
    rate: int
    opening: int
    options: str = ""


def play_on_hbase(settings: Settings, console: Console) -> list[Verification]:
    """The same on an HBase of its own, which runs as long as the demo."""
    from belvedere.stores.hbase.local import Cluster, create_table

    cluster = Cluster(settings.path)
    with console.status("starting ZooKeeper, HBase's master and two region servers ..."):
        cluster.up()
    try:
        url = cluster.url("demo")
        create_table(url, "shop:orders", "d")
        options = " USING hbase OPTIONS (table = 'shop:orders', family = 'd')"
        return play(replace(settings, path=url, options=options), console)
    finally:
        cluster.down()


def play(settings: Settings, console: Console) -> list[Verification]:
    """The whole demo; returns how the views compare with their recomputation."""
    with TerminalDatabase(settings.path) as db:
        _open_shop(db, settings, console)
        with writer(settings.path, settings.rate, settings.opening, SEED) as orders:
            console.print("[bold]2[/bold] starting Spark, which keeps the views")
            _ = db.spark
            console.print(
                f"[bold]3[/bold] orders stream in for {settings.seconds:g} s, and a fifth view"
                " joins on the way"
            )
            pipeline = db.start()
            # Ctrl-C ends the stream early; the rest still runs
            with stopping() as stop, screen(console) as shown:
                _Stream(db, pipeline, shown, stop).play(orders, settings)
            pipeline.stop()
        console.print(
            "[bold]4[/bold] comparing every view with what Spark SQL computes from the orders"
        )
        return [verified(db, name, console) for name in (*(v.name for v in VIEWS), LATE.name)]


def _open_shop(db: TerminalDatabase, settings: Settings, console: Console) -> None:
    db.sql(TABLE + settings.options)
    db.table("orders").put_many(Shop(SEED).opening(settings.opening))
    for view in VIEWS:
        db.sql(view.create)
    console.print(
        f"[bold]1[/bold] a shop in {settings.path}: {settings.opening:,} orders, {len(VIEWS)} views"
        " requested",
        soft_wrap=True,
    )


def verified(db: TerminalDatabase, name: str, console: Console) -> Verification:
    with console.status(f"recomputing {name} ..."):
        return db.verify(name)


class _Stream:
    """The part with a screen: from the first epoch to the last."""

    def __init__(self, db: TerminalDatabase, pipeline: Pipeline, shown: Screen, stop: Stop) -> None:
        self._db, self._stop = db, stop
        self._frames = Frames(db, pipeline, shown)

    def play(self, orders: Writer, settings: Settings) -> None:
        while not self._frames.draw("building four views", 0.0):
            pass
        orders.begin()
        began, asked = time.monotonic(), False
        while (passed := time.monotonic() - began) < settings.seconds and not self._stop.is_set():
            if orders.failed:
                raise PipelineError(
                    "the process that writes orders has ended: see its message above"
                )
            if not asked and passed >= _LATE_AT * settings.seconds:
                asked = True
                self._db.sql(LATE.create)
            note = (
                "a fifth view joins"
                if asked and passed < (_LATE_AT + 0.25) * settings.seconds
                else "orders stream in"
            )
            self._frames.draw(
                f"{note}: {passed:.0f} of {settings.seconds:g} s", passed / settings.seconds
            )
        orders.end()
        self._db.store.base.barrier()
        if not asked:
            self._db.sql(LATE.create)
        while not self._frames.draw("catching up", 1.0):
            pass
        self._frames.draw("every order is in every view", 1.0)
