"""How sources stand, for belvedere status: how far each was followed, and what to do."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from belvedere.cli.tables import new_table, size
from belvedere.source_status import SourceInfo

_STATES = {"following": "green", "idle": "dim", "new": "dim"}


def followed(sources: tuple[SourceInfo, ...]) -> list[RenderableType]:
    if not sources:
        return []
    advice = (source.advice for source in sources)
    return [sources_table(sources), *(Text(text, "yellow") for text in advice if text)]


def sources_table(sources: tuple[SourceInfo, ...]) -> Table:
    """Behind are transactions that are not in the views, unread is the source's log."""
    numbers = ("transactions", "behind", "seconds", "unread", "kept there")
    table = new_table("source", "type", "state", "relations", *numbers, right=numbers)
    for s in sources:
        table.add_row(
            Text(s.name, "bold"),
            s.kind,
            Text(s.state, _STATES.get(s.state, "bold red")),
            _relations(s),
            f"{s.transactions:,}",
            f"{s.lag_transactions:,}",
            f"{s.lag_seconds:.1f}",
            *((size(s.lag_bytes), size(s.kept_bytes)) if s.is_measured else ("-", "-")),
        )
    return table


def _relations(source: SourceInfo) -> str:
    """How many are there, how many of them are not simply followed, and how many are kept."""
    states = [relation.state for relation in source.relations]
    others = [f"{states.count(s)} {s}" for s in ("copying", "stopped") if s in states]
    kept = sum(relation.is_kept for relation in source.relations)
    return ", ".join([f"{len(states)}", *others, *([f"{kept} kept"] if states else [])])
