"""Tables of a report and what stands in their cells."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

DASH = "-"


def new_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    texts = {
        "figure",
        "view",
        "engine",
        "part",
        "what",
        "note",
        "unit",
        "durable",
        "pipeline",
        "server",
    }
    for position, name in enumerate(columns):
        table.add_column(name, justify="left" if position == 0 or name in texts else "right")
    return table


def epoch_sizes(sizes: Iterable[int]) -> str:
    """`5 of 200,000`, or the range when they differ."""
    listed = list(sizes)
    if not listed:
        return DASH
    low, high = min(listed), max(listed)
    return f"{len(listed)} of {high:,}" if low == high else f"{len(listed)} of {low:,}-{high:,}"


def kops(ops_per_s: float | None) -> str:
    return DASH if ops_per_s is None else f"{ops_per_s / 1_000:,.0f}"


def number_or_dash(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


def multiple(ratio: float | None) -> str:
    return DASH if ratio is None else f"{ratio:.2f}"


def milliseconds(value: float) -> str:
    return f"{value:.1f}"


def mark(good: bool | None) -> str:
    return DASH if good is None else "[green]yes[/green]" if good else "[red]NO[/red]"
