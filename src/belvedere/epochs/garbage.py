"""Garbage: what dropped views and tables left, and when it may go."""

from __future__ import annotations

from collections.abc import Iterable

from belvedere.catalog.definitions import DROPPED, TableDefinition, ViewDefinition, ViewStatus
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
        if t.get("intent") is not None:
            return []
        gone = [
            int(key.split("/")[1])
            for key, value in t.scan("status/")
            if ViewStatus.from_bytes(value).state == DROPPED
        ]
        _forget(t, gone)
        for key, _ in t.scan("dropped/"):
            definition = TableDefinition.from_bytes(t.get(f"table/{key.split('/')[1]}") or b"")
            if definition.delta:
                t.put(f"garbage/{definition.delta}", b"%d" % read_head(t).epoch)
            t.delete(f"table/{definition.id}")
            t.delete(key)
        pin = oldest_pin_in(t, now)
        return [
            int(key.split("/")[1])
            for key, end in t.scan("garbage/")
            if pin is None or int(end) < pin.epoch
        ]

    return store.catalog.transact(body)


def _forget(t: CatalogTransaction, gone: list[int]) -> None:
    """Remove views; what no other view uses becomes garbage."""
    if not gone:
        return
    views = {
        int(key.split("/")[1]): ViewDefinition.from_bytes(value) for key, value in t.scan("view/")
    }
    kept = {
        n.id for view, definition in views.items() if view not in gone for n in definition.nodes
    }
    for node in {n.id: n for view in gone for n in views[view].nodes if n.id not in kept}.values():
        for table in state_tables(node):
            t.put(f"garbage/{table}", b"%d" % read_head(t).epoch)
            t.delete(f"errors/{table}")
    for view in gone:
        t.delete(f"status/{view}")
        t.delete(f"view/{view}")


def garbage_removed(store: Store, tables: Iterable[int]) -> None:
    def body(t: CatalogTransaction) -> None:
        for table in tables:
            t.delete(f"garbage/{table}")

    store.catalog.transact(body)
