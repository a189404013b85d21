"""How far views that are being built have got: rows of about so many, and about how long the rest
will take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.catalog.definitions import LOADING, ViewStatus
from belvedere.catalog.state import CatalogState
from belvedere.epochs.intent import LOAD
from belvedere.graph import Node
from belvedere.stores.base import Store


@dataclass(frozen=True, slots=True)
class Progress:
    rows: int
    total: int  # 0: not known
    seconds_left: float | None  # None: not known

    @property
    def rows_left(self) -> int:
        return max(self.total - self.rows, 0)


def progress(
    store: Store, state: CatalogState, status: ViewStatus, manifests: Sequence[dict[str, Any]]
) -> Progress:
    """Of the group of views that are built together with a view of this status."""
    if status.state != LOADING:
        return Progress(status.loaded, 0, None)
    sizes = [_rows(store, state, node) for node in _origins(state, status.group).values()]
    total = 0 if None in sizes else max(sum(size or 0 for size in sizes), status.loaded)
    rate = _rate(manifests)
    return Progress(
        status.loaded, total, (total - status.loaded) / rate if total and rate else None
    )


def _origins(state: CatalogState, group: int) -> dict[int, Node]:
    """What the views of a group are loaded from."""
    found = {}
    for view in state.definitions():
        status = state.status[view.id]
        if status.state == LOADING and status.group == group:
            found.update({node.id: node for node in view.nodes if node.id in status.origins})
    return found


def _rows(store: Store, state: CatalogState, origin: Node) -> int | None:
    """About how many rows an origin has; a join as many as its larger side, until it is known
    better.
    """
    if origin.source:
        base = origin.operator.base_table
        table = next(t for t in state.tables.values() if t.id == base)
        filled = state.filled.get(base)
        rows = base if filled is None else filled.table
        return _records(store, table.delta) if table.delta else store.base.count(rows)
    return max(_records(store, kept.table) for kept in origin.origin.kept())


def _records(store: Store, table: int) -> int:
    return sum(store.state.count(slot, table)[0] for slot in range(store.state.slots))


def _rate(manifests: Sequence[dict[str, Any]]) -> float | None:
    """Rows per second of the loading steps among recent epochs; what was done between them counts
    as their time.
    """
    steps = [m for m in manifests if m["kind"] == LOAD]
    if not steps:
        return None
    seconds = steps[-1]["committed"] - steps[0]["started"]
    rows = sum(m["changes"] for m in steps)
    return rows / seconds if seconds > 0 and rows else None
