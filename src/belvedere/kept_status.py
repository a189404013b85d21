"""Status of views that an algorithm keeps: what it gives, what it waits for, and what is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from belvedere.catalog.joined import joined_name
from belvedere.catalog.state import CatalogState
from belvedere.stores.base import Store

if TYPE_CHECKING:
    from belvedere.status import ViewInfo
    from belvedere.warehouse.keeping import Behind


@dataclass(frozen=True, slots=True)
class KeptLag:
    """How far a view is behind a source: in transactions that were received and are not in it, and
    in seconds since the first of them; in bytes of the source's log that were not read, and that it
    keeps for this view alone.
    """

    source: str
    lag_transactions: int
    lag_seconds: float
    lag_bytes: int
    kept_bytes: int
    note: str

    @classmethod
    def of(cls, told: Behind) -> KeptLag:
        seconds = max(0.0, time.time() - told.since) if told.since else 0.0
        return cls(told.source, told.transactions, seconds, told.unread, told.kept, told.note)


def with_algorithms(
    store: Store, state: CatalogState, views: tuple[ViewInfo, ...]
) -> tuple[ViewInfo, ...]:
    if not state.joined():
        return views
    from belvedere.capture.condition import LOST
    from belvedere.warehouse.keeping import read_notes

    notes = read_notes(store)
    found = []
    for view in views:
        table = state.tables.get(joined_name(view.name).lower())
        if table is None or table.joined is None:
            found.append(view)
            continue
        joined, note = table.joined, notes.get(table.id)
        about = replace(view, algorithm=joined.algorithm, given=joined.given(view.given))
        if note is not None:
            about = replace(about, waits=note.waits, asked=note.asked, asked_again=note.again)
            again = ". ALTER SOURCE ... RELOAD loads the view again" if note.state == LOST else ""
            about = replace(about, advice=f"{note.message}{again}" or view.advice)
            about = replace(about, lags=tuple(map(KeptLag.of, note.behind)))
        found.append(about)
    return tuple(found)
