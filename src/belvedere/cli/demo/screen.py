"""The demo on a terminal, redrawn in place, and without one as occasional lines."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from belvedere.catalog.definitions import LIVE
from belvedere.cli.demo.moment import Moment
from belvedere.cli.demo.shop import LATE, VIEWS
from belvedere.cli.status import STATES, shown
from belvedere.cli.tables import new_table
from belvedere.types import Row

_BARS = "▁▂▃▄▅▆▇█"
_EPOCHS = 5
_SAMPLES = 12
_LOWER = 11  # lines of the lower boxes: the two rates, a gap, a header and the epochs
_PLAIN = 2.0  # seconds between two lines


class Screen(Protocol):
    def __enter__(self) -> Screen: ...
    def __exit__(self, *_: object) -> None: ...
    def show(self, moment: Moment) -> None: ...


def screen(console: Console) -> Screen:
    return TerminalScreen(console) if console.is_terminal else PlainScreen(console)


def status_screen(console: Console) -> Screen:
    return StatusScreen(console) if console.is_terminal else PlainScreen(console)


class PlainScreen:
    def __init__(self, console: Console) -> None:
        self._console, self._last, self._phase = console, 0.0, ""

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, moment: Moment) -> None:
        now = time.monotonic()
        if now - self._last < _PLAIN and moment.phase == self._phase:
            return
        self._last, self._phase = now, moment.phase
        s = moment.status
        live = sum(v.state == LIVE for v in s.views)
        self._console.print(
            f"{moment.phase}: {live} of {len(s.views)} views live, epoch {s.epoch}, {s.written:,}"
            f" operations written ({moment.written:,.0f}/s), {s.lag_operations:,} behind",
            soft_wrap=True,
        )


class TerminalScreen:
    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._before: dict[str, Decimal] = {}
        self._moved: dict[str, bool] = {}  # whether a region's revenue went up when it last changed

    def __enter__(self) -> TerminalScreen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        for row in moment.revenue:
            region, revenue = row["region"], row["revenue"]
            if revenue != self._before.setdefault(region, revenue):
                self._moved[region] = revenue > self._before[region]
                self._before[region] = revenue
        self._live.update(drawn(moment, self._moved), refresh=True)


class StatusScreen(TerminalScreen):
    """Whatever the views are: what `belvedere status` shows."""

    def show(self, moment: Moment) -> None:
        found = Group(_heading(moment), shown(moment.status, _EPOCHS))
        self._live.update(found, refresh=True)


def drawn(moment: Moment, moved: Mapping[str, bool]) -> RenderableType:
    lower = Table.grid(expand=True, padding=(0, 1, 0, 0))
    lower.add_column(ratio=6)
    lower.add_column(ratio=5)
    lower.add_row(
        _framed(_revenue(moment.revenue, moved), "revenue, as readers see it", _LOWER),
        _framed(_work(moment), "work", _LOWER),
    )
    return Group(_heading(moment), _framed(_views(moment), "views"), lower)


def _framed(content: RenderableType, title: str, height: int | None = None) -> Panel:
    return Panel(
        content,
        title=f"[bold]{title}[/bold]",
        title_align="left",
        border_style="dim",
        box=box.ROUNDED,
        height=height,
    )


def _heading(moment: Moment) -> RenderableType:
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(ratio=1)
    bar = ProgressBar(
        total=1.0, completed=moment.done, complete_style="cyan", finished_style="green"
    )
    line.add_row(Text.assemble(("Belvedere demo  ", "bold cyan"), moment.phase), bar)
    return line


def _views(moment: Moment) -> Table:
    table = new_table(
        "view",
        "what it keeps",
        "state",
        "rows",
        "behind",
        "seconds",
        right=("rows", "behind", "seconds"),
    )
    table.expand = True
    found = {v.name: v for v in moment.status.views}
    for view in (*VIEWS, LATE):
        info = found.get(view.name)
        if info is None:
            table.add_row(
                Text(view.name, "dim"),
                Text(view.keeps, "dim"),
                Text("comes later", "dim"),
                "",
                "",
                "",
            )
            continue
        state = (
            f"loading {info.loaded_rows:,}"
            if info.state == "loading" and info.loaded_rows
            else info.state
        )
        lag = (
            (f"{info.lag_operations:,}", f"{info.lag_seconds:.1f}")
            if info.state == LIVE
            else ("", "")
        )
        rows = f"{moment.rows.get(view.name, 0):,}"
        table.add_row(
            Text(view.name, "bold"), view.keeps, Text(state, STATES.get(info.state, "")), rows, *lag
        )
    return table


def _revenue(rows: Sequence[Row], moved: Mapping[str, bool]) -> RenderableType:
    if not rows:
        return Text("being built ...", "yellow")
    table = new_table(
        "region", "orders", "revenue", "", "average", right=("orders", "revenue", "average")
    )
    table.expand = True
    for row in rows:
        up = moved.get(row["region"])
        arrow = Text("" if up is None else "▲" if up else "▼", "green" if up else "red")
        table.add_row(
            row["region"],
            f"{row['orders']:,}",
            f"{row['revenue']:,.0f}",
            arrow,
            f"{row['average']:,.2f}",
        )
    return table


def _work(moment: Moment) -> RenderableType:
    rates = Table.grid(padding=(0, 1))
    rates.add_column(no_wrap=True)
    rates.add_column(justify="right", min_width=7)
    rates.add_column(no_wrap=True)
    top = max((rate for pair in moment.history for rate in pair), default=0.0)
    for place, (name, rate, style) in enumerate(
        (("written/s", moment.written, "cyan"), ("maintained/s", moment.maintained, "green"))
    ):
        rates.add_row(
            name,
            f"{rate:,.0f}",
            Text(_spark([pair[place] for pair in moment.history][-_SAMPLES:], top), style),
        )
    epochs = new_table("epoch", "kind", "ops", "seconds", right=("epoch", "ops", "seconds"))
    epochs.box, epochs.expand = None, True
    for m in list(reversed(moment.status.epochs))[:_EPOCHS]:
        epochs.add_row(
            f"{m['epoch']:,}",
            m["kind"],
            f"{m['operations']:,}",
            f"{m['committed'] - m['started']:.2f}",
        )
    return Group(rates, Text(), epochs)


def _spark(values: Sequence[float], top: float) -> str:
    return "".join(
        _BARS[min(len(_BARS) - 1, int(value / top * (len(_BARS) - 1) + 0.5))] if top else _BARS[0]
        for value in values
    )
