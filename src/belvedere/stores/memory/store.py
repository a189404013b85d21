"""The parts of a store in memory, together."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.base import (
    BaseTables,
    Capabilities,
    Catalog,
    ForeignTables,
    RowHistory,
    StateTables,
)
from belvedere.stores.closed import Closed
from belvedere.stores.memory.base_tables import MemoryBase
from belvedere.stores.memory.catalog import MemoryCatalog
from belvedere.stores.memory.foreign import ForeignBase
from belvedere.stores.memory.rows import RowRules, RowState
from belvedere.stores.memory.state import MemoryState, Rules


class MemoryStore:
    def __init__(
        self,
        slots: int = 4,
        streams: int = 1,
        rules: Rules | None = None,
        point: Callable[[str], None] = lambda what: None,
        clock: Callable[[], float] = time.time,
        rows: RowRules | None = None,
        foreign: bool = False,
    ) -> None:
        """With `rows` the state tables are those of a store without slot transactions; with
        `foreign` the base tables are those of a store that captures them.
        """
        if slots < 1 or streams < 1:
            raise StoreError(
                f"a store has at least one slot and one stream, not {slots} and {streams}"
            )
        self.url = "memory:"
        self.read_only = False
        self.rules = rules or Rules()
        self.catalog: Catalog = MemoryCatalog(point)
        captured = ForeignBase(point, clock) if foreign else None
        self.foreign: ForeignTables | None = captured
        # with single rows all is told by before-images and delta views, as in most such stores
        has_history = rows is None and not foreign
        own = MemoryBase(streams, slots, self.rules, point, clock, has_history)
        self.base: BaseTables = captured or own
        self.history: RowHistory | None = own if has_history else None
        self.state: StateTables = (
            MemoryState(slots, self.rules, point)
            if rows is None
            else RowState(slots, rows, point, self.catalog)
        )
        self.capabilities = Capabilities(
            slot_transactions=rows is None,
            owns_base_tables=not foreign,
            conditional_writes=not foreign,
            transactions=streams == 1 and not foreign,
            passing=has_history,
            shared=False,
        )

    @cached_property
    def id(self) -> str:
        return uuid.uuid4().hex

    def look_after(self, deadline: float) -> list[str]:
        return []

    def rest(self) -> None:
        pass

    def close(self) -> None:
        """Idempotent, as the rest is unreachable then. Who keeps the catalog itself is told too."""
        closed: Any = Closed(self.url)
        if isinstance(self.catalog, MemoryCatalog):
            self.catalog._point = closed
        self.catalog = self.base = self.state = self.history = closed
