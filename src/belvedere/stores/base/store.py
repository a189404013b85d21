"""A store: its parts, what it can do, and what is done for it between epochs."""

from __future__ import annotations

from typing import Protocol

from belvedere.stores.base.base_tables import BaseTables
from belvedere.stores.base.capabilities import Capabilities
from belvedere.stores.base.catalog import Catalog
from belvedere.stores.base.foreign import ForeignTables
from belvedere.stores.base.history import RowHistory
from belvedere.stores.base.state import StateTables


class Store(Protocol):
    url: str
    # every write raises StoreError; readers cannot hold epochs, and begin again when theirs is gone
    read_only: bool
    capabilities: Capabilities
    catalog: Catalog
    base: BaseTables
    state: StateTables
    # None: the log has before-images, or delta views tell what a row was
    history: RowHistory | None
    foreign: ForeignTables | None  # None: all base tables are the store's own

    @property
    def id(self) -> str:
        """Of this store alone: of none that is made anew at its place, and of none that is restored
        from its backups, which has another history from there on.
        """

    def rest(self) -> None:
        """A task has ended and the next one may be long in coming: give back memory that only it
        would use.
        """

    def look_after(self, deadline: float) -> list[str]:
        """Do what keeps the store usable beside processes that died or hang; returns what was done,
        for a log. A process that holds a lock for longer than `deadline` seconds may be ended.
        """

    def close(self) -> None: ...
