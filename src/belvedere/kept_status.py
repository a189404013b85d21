"""Status of views that an algorithm keeps: what it gives, what it waits for, and what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from belvedere.catalog.joined import joined_name
from belvedere.catalog.state import CatalogState
from belvedere.stores.base import Store

if TYPE_CHECKING:
    from belvedere.status import ViewInfo


def with_algorithms(
    store: Store, state: CatalogState, views: tuple[ViewInfo, ...]
) -> tuple[ViewInfo, ...]:
    if not state.joined():
        return views
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
            about = replace(about, advice=note.message or view.advice)
        found.append(about)
    return tuple(found)
