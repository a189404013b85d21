"""Positions that somebody waits for, noted in the catalog, for who follows a source to see.

A position behind which nothing of ours happened is written seldom, as each write is an epoch; who
waits for one says so, and it is written at once.
"""

from __future__ import annotations

from typing import Any

from belvedere.catalog import layout
from belvedere.sources.base import Source
from belvedere.stores.base import Store


def note_awaited(store: Store, name: str, source: Source, position: str) -> None:
    """Of a source that is still there. The one that is further stays, as it satisfies both."""
    if store.read_only:
        return  # it comes a little later
    before = read_awaited(store, name)
    if before is not None and source.covers(before, position):
        return

    def body(t: Any) -> None:
        if layout.SOURCES.get(t, name.lower()) is not None:
            layout.AWAITED.put(t, name.lower(), position)

    store.catalog.transact(body)


def read_awaited(store: Store, name: str) -> str | None:
    return store.catalog.read(lambda t: layout.AWAITED.get(t, name.lower()))


def forget_awaited(store: Store, name: str) -> None:
    """Positions of before a source was loaded again may never be reached."""
    store.catalog.transact(lambda t: layout.AWAITED.delete(t, name.lower()))
