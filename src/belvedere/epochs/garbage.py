"""Garbage: what dropped views and tables left, and when it may go."""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog import layout
from belvedere.catalog.definitions import DROPPED
from belvedere.catalog.filling import forget_rows
from belvedere.catalog.pins import oldest_pin_in
from belvedere.catalog.state import read_head
from belvedere.epochs.lease import Lease, check_fence
from belvedere.graph import state_tables
from belvedere.stores.base import CatalogTransaction, Store


def remove_dropped(store: Store, lease: Lease, now: float) -> list[int]:
    """Forget definitions of dropped views that no open epoch names; returns the state tables that
    can be dropped next.

    Tables stay while a pin is as old as their view's end: a long reader may have taken that view
    into its cut (rule R6).
    """

    def body(t: CatalogTransaction) -> list[int]:
        check_fence(t, lease)
        if layout.INTENT.get(t) is not None:
            return []
        _forget(t, [view for view, s in layout.STATUS.all(t).items() if s.state == DROPPED])
        for table in layout.DROPPED.all(t):
            for kept in layout.TABLES.need(t, table).state_tables:
                layout.GARBAGE.put(t, kept, read_head(t).epoch)
                layout.ERRORS.delete(t, kept)
            layout.TABLES.delete(t, table)
            layout.DROPPED.delete(t, table)
        pin = oldest_pin_in(t, now)
        forget_rows(t, now)
        ends = layout.GARBAGE.all(t).items()
        return [table for table, end in ends if pin is None or end < pin.epoch]

    return store.catalog.transact(body)


def _forget(t: CatalogTransaction, gone: list[int]) -> None:
    """Remove views; what no other view uses becomes garbage."""
    if not gone:
        return
    views = layout.VIEWS.all(t)
    kept = {
        n.id for view, definition in views.items() if view not in gone for n in definition.nodes
    }
    for node in {n.id: n for view in gone for n in views[view].nodes if n.id not in kept}.values():
        for table in state_tables(node):
            layout.GARBAGE.put(t, table, read_head(t).epoch)
            layout.ERRORS.delete(t, table)
    for view in gone:
        layout.STATUS.delete(t, view)
        layout.VIEWS.delete(t, view)


def garbage_removed(store: Store, tables: Iterable[int]) -> None:
    def body(t: CatalogTransaction) -> None:
        for table in tables:
            layout.GARBAGE.delete(t, table)

    store.catalog.transact(body)
