"""Rows that a comparison has found wrong, as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from belvedere.cli.tables import new_table, plural
from belvedere.cli.values import to_text
from belvedere.epochs.verify import SHOWN, Difference

KINDS = ("missing", "extra", "different")


def counted(counts: Mapping[str, int]) -> Iterator[Text]:
    """How many rows there are of every kind."""
    for kind in KINDS:
        yield Text(f"{counts.get(kind, 0):,}", "bold red" if counts.get(kind) else "dim")


def outcome(wrong: int, yes: bool) -> str:
    if not wrong:
        return "there is nothing to repair"
    if yes:
        return f"[green]{plural(wrong, 'row')} corrected[/green]"
    return (
        f"[yellow]nothing was changed[/yellow]: --repair --yes would correct {plural(wrong, 'row')}"
        " as shown above"
    )


def wrong_rows(
    name: str, sides: tuple[str, str], found: Sequence[Difference], total: int, limit: int
) -> Table:
    """As they are, and as they should be."""
    title = f"{escape(name)}: {plural(total, 'wrong row')}" + (
        f", the first {limit}" if total > limit else ""
    )
    table = new_table("", *sides, title=title)
    for d in found[: min(limit, SHOWN)]:
        table.add_row(d.kind, _cells(d.found, d, "red"), _cells(d.expected, d, "green"))
    return table


def _cells(row: dict[str, Any] | None, d: Difference, style: str) -> Text:
    if row is None:
        return Text("-", "dim")
    other = (d.expected if row is d.found else d.found) or {}
    text = Text()
    for name, value in row.items():
        same = name in other and other[name] == value
        text.append(f"{name}=", "dim").append(to_text(value) + " ", "" if same else style)
    return text.append(f"× {d.times}", "dim") if d.times > 1 else text
