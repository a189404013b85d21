"""Whether log, views and catalog of a store can be from one time, as far as epochs and positions
tell.

Stores check their own parts when they are opened. This is what every store can be asked, and what
tells of parts that were mixed before stores kept marks of their own: the log goes at least as far
as the committed epoch and the open one, it is not trimmed beyond what is committed, and no slot is
ahead of the epoch that is open.
"""

from __future__ import annotations

from belvedere.catalog import layout
from belvedere.catalog.head import Head
from belvedere.catalog.state import read_head
from belvedere.errors import Stale, StoreError
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch

_TRIES = 100


def check_sound(store: Store) -> None:
    """Raise if parts of the store are from different times. Epochs may go on meanwhile."""
    for _ in range(_TRIES):
        # before the catalog, which leads
        floors = [store.state.status(slot).write_floor for slot in range(store.state.slots)]
        head, is_open = store.catalog.read(_progress)
        found = _trouble(store, head, floors, head.epoch + is_open)
        if found is None:
            return
        if store.catalog.read(_progress)[0] == head:
            break
    mixed = f"the parts of {store.url} are not from one time: {found}"
    restore = (
        "A part was replaced alone, or this copy was not made in one piece. Restore the whole"
        " directory from one backup"
    )
    raise StoreError(f"{mixed}. {restore}")


def _progress(t: CatalogTransaction) -> tuple[Head, bool]:
    return read_head(t), layout.INTENT.get(t) is not None


def _trouble(store: Store, head: Head, floors: list[Epoch], last: Epoch) -> str | None:
    for slot, floor in enumerate(floors):
        if floor > last:
            return f"slot {slot} has epoch {floor}, the catalog knows epochs up to {last}"
    ends = store.base.end()
    for stream, position in head.vector.items():
        if ends[stream] < position:
            return (
                f"the change log ends at {ends[stream]:,}, the views contain operations up"
                f" to {position:,}"
            )
        try:
            store.base.cut(stream, position, 0)
        except Stale:
            return (
                f"the change log was trimmed beyond position {position:,}, up to which the views"
                " contain it"
            )
    return None
