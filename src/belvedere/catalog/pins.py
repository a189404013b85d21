"""Pins: epochs that long readers hold, respected by collection and by log trimming (rule R6)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from belvedere.catalog import layout
from belvedere.catalog.history import AsOf, state_as_of
from belvedere.catalog.state import CatalogState, read_state
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch, Vector

PIN_SECONDS = 3600.0  # a reader that died leaves its pin no longer than this


@dataclass(frozen=True, slots=True)
class Pin:
    epoch: Epoch
    vector: Vector


@dataclass(frozen=True, slots=True)
class Held:
    """A pin that is registered ("": it could not be), and the catalog at that moment: names and
    epoch belong together (rule R6).
    """

    key: str
    pin: Pin
    state: CatalogState


@contextmanager
def pinned(store: Store, as_of: AsOf | None = None) -> Iterator[Held]:
    """Hold the committed epoch, or one that is still kept: what it shows stays readable until the
    end of the block.
    """
    held = hold(store, PIN_SECONDS, as_of)
    try:
        yield held
    finally:
        release(store, held)


def release(store: Store, held: Held) -> None:
    remove(store, held.key)


def remove(store: Store, key: str) -> None:
    """The same, for whoever has kept the key of the pin alone."""
    if key:
        store.catalog.transact(lambda t: layout.PINS.delete(t, key))


def hold(store: Store, seconds: float, as_of: AsOf | None = None) -> Held:
    """Hold the committed epoch, or one that is still kept, for some time, for a reader whose end
    nobody sees, such as a DataFrame.

    In a store that is only read nothing can be held: if it is kept up to date elsewhere, what the
    epoch shows may go (Stale).
    """
    if store.read_only:
        state = store.catalog.read(lambda t: _state(t, as_of))
        return Held("", Pin(state.head.epoch, state.head.vector), state)
    key = uuid.uuid4().hex

    def body(t: CatalogTransaction) -> Held:
        state = _state(t, as_of)
        head = state.head
        for old, pin in layout.PINS.all(t).items():
            if pin["expires"] < time.time():
                layout.PINS.delete(t, old)
        vector = head.vector.to_json()
        expires = time.time() + seconds
        layout.PINS.put(t, key, {"epoch": head.epoch, "vector": vector, "expires": expires})
        return Held(key, Pin(head.epoch, head.vector), state)

    return store.catalog.transact(body)


def _state(t: CatalogTransaction, as_of: AsOf | None) -> CatalogState:
    return read_state(t) if as_of is None else state_as_of(t, as_of, time.time())


def clear(store: Store) -> None:
    """Nothing is held: the store is a copy, and its readers are not here."""

    def body(t: CatalogTransaction) -> None:
        for key in layout.PINS.all(t):
            layout.PINS.delete(t, key)

    store.catalog.transact(body)


def oldest_pin(store: Store, now: float) -> Pin | None:
    return store.catalog.read(lambda t: oldest_pin_in(t, now))


def oldest_pin_in(t: CatalogTransaction, now: float) -> Pin | None:
    alive = [pin for pin in layout.PINS.all(t).values() if pin["expires"] > now]
    if not alive:
        return None
    lowest = reduce(Vector.lowest, (Vector(p["vector"]) for p in alive))
    return Pin(min(p["epoch"] for p in alive), lowest)
