"""What the next epoch does. Deciding only looks: the intent that follows makes it true.

changes   what was logged since the last epoch, within bounds that streams share fairly; the next
          transaction alone, while a complete view is live
load      the next rows of an origin for views that are being built; takes turns with changes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from belvedere.catalog.definitions import LIVE, LOADING, ViewDefinition, ViewStatus
from belvedere.catalog.loading import followed_tables
from belvedere.catalog.state import CatalogState
from belvedere.epochs.intent import CHANGES, LOAD, Load
from belvedere.epochs.intents import Choice
from belvedere.epochs.loads import Bound, next_step
from belvedere.epochs.rules import Rules
from belvedere.epochs.settings import Settings
from belvedere.stores.base import Store
from belvedere.types import Vector


@dataclass(slots=True)
class Chooser:
    """Remembers whose turn it is, and since when views are waited for."""

    store: Store
    settings: Settings
    rules: Rules = field(default_factory=Rules)
    loaded_last: bool = False
    # the end of the log when a group was first seen
    _first_seen: dict[int, Vector] = field(default_factory=dict)

    def choose(
        self, state: CatalogState, active: list[ViewDefinition], limit: Vector | None
    ) -> Choice | None:
        """What to do next, None if nothing; up to `limit`, if that is given."""
        committed = state.head.vector
        first = _first_loading(state, active)
        is_followed = bool(followed_tables(state, active))
        most = 1 if self.rules.one_by_one and has_complete(state) else self.settings.max_rows
        # views that are built, or will be when a table is adopted, need what comes after the limit
        is_bounded = first is None and not state.adopting
        high = self._high(committed, is_followed, limit if is_bounded else None, most)
        waits = high != committed
        if first is None:
            return Choice(CHANGES, high) if waits else None
        status = state.status[first.id]
        # They take turns.
        if waits and (self.loaded_last or self._comes_first(committed, status)):
            return Choice(CHANGES, high)
        return Choice(LOAD, committed, self._next_load(state, first, status))

    def _high(
        self, committed: Vector, is_followed: bool, limit: Vector | None, most: int
    ) -> Vector:
        end = self.store.base.end()
        if not is_followed:
            # Nobody needs the log yet: what is before its end will be loaded from base tables.
            return committed.merge(end)
        behind = {s: end[s] - committed[s] for s in end if end[s] > committed[s]}
        if limit is not None:
            behind = {s: rows for s, rows in behind.items() if committed[s] < limit[s]}
        shares = share_rows(behind, most)
        cuts = {s: self._cut(s, committed[s], rows, len(shares)) for s, rows in shares.items()}
        return committed.merge(cuts)

    def _cut(self, stream: str, low: int, rows: int, streams: int) -> int:
        return self.store.base.cut(stream, low, rows, self.settings.max_bytes // streams)

    def _comes_first(self, committed: Vector, status: ViewStatus) -> bool:
        """Whether changes come before loading: views that have not begun do not need what was
        logged before they were first seen.
        """
        if status.marks:
            return False
        seen = self._first_seen.setdefault(status.group, self.store.base.end())
        return not committed.covers(seen)

    def _next_load(self, state: CatalogState, view: ViewDefinition, status: ViewStatus) -> Load:
        """The next rows of the first origin that is not exhausted."""
        origin = next(n for n in view.nodes if n.id == status.next_origin)
        low = status.marks.get(origin.id)
        after = b"" if low is None else bytes.fromhex(low) + b"\xff"
        most = Bound(self.settings.load_rows, self.settings.max_bytes)
        deltas = {table.id: table.delta for table in state.tables.values()}
        delta = deltas[origin.operator.base_table] if origin.source else 0
        filled = state.filled.get(origin.operator.base_table) if origin.source else None
        table = 0 if filled is None else filled.table
        end, rows = next_step(self.store, origin, state.head.epoch, after, most, delta, table)
        self.store.rest()  # the rows that were counted are read by tasks, not here
        high = None if end is None else end.hex()
        return Load(status.group, origin.id, low, high, not status.marks, rows, table)


def has_complete(state: CatalogState) -> bool:
    """Whether some live view has to show the state after every transaction.

    Views become live between two epochs, so none is live in the middle of what was chosen before.
    """
    return any(v.is_complete and state.status[v.id].state == LIVE for v in state.definitions())


def _first_loading(state: CatalogState, active: list[ViewDefinition]) -> ViewDefinition | None:
    """The view whose group is loaded next."""
    loading = (v for v in active if state.status[v.id].state == LOADING)
    return min(loading, key=lambda v: (state.status[v.id].group, v.id), default=None)


def share_rows(behind: Mapping[str, int], rows: int) -> dict[str, int]:
    """So many rows, divided between streams that are behind by so much.

    Each gets an equal share; what a stream does not need, the others get. If there are fewer rows
    than streams, those that are furthest behind get one each.
    """
    shares: dict[str, int] = {}
    waiting = sorted(behind, key=lambda stream: (behind[stream], stream))
    waiting = waiting[-rows:]
    for number, stream in enumerate(waiting):  # the least behind first: it leaves most
        share = min(behind[stream], rows // (len(waiting) - number))
        shares[stream] = share
        rows -= share
    return shares
