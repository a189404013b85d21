"""Rows as tables on the terminal.

When the output goes to a file or a pipe, lines are as long as they need to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from belvedere.cli.values import to_text

_UNBOUNDED = 10_000


def console() -> Console:
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_UNBOUNDED)


def new_table(*columns: str, right: Iterable[str] = (), title: str | None = None) -> Table:
    """An empty table in the house style."""
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    table.title, table.title_justify, table.title_style = title, "left", "bold"
    numbers = set(right)
    for name in columns:
        table.add_column(
            Text(name), justify="right" if name in numbers else "left", overflow="fold"
        )
    return table


def rows_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    """Rows as they are stored: nothing rounded, no separators, so that they can be copied."""
    numbers = [
        n
        for n in names
        if any(isinstance(r[n], int | float | Decimal) and not isinstance(r[n], bool) for r in rows)
    ]
    table = new_table(*names, right=numbers)
    for row in rows:
        table.add_row(
            *(Text(to_text(row[n]), style="dim" if row[n] is None else "") for n in names)
        )
    return table


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
