"""What the past of a view costs: for each epoch that is kept, the records that it wrote."""

from __future__ import annotations

from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.history import kept, oldest_readable
from belvedere.catalog.state import read_head
from belvedere.cost.report import HistoryCost
from belvedere.epochs.commits import manifests
from belvedere.graph import state_tables
from belvedere.stores.base import CatalogTransaction, Store

_RECENT = 20  # epochs


def history_cost(store: Store, view: ViewDefinition | None) -> HistoryCost:
    """From what recent epochs wrote for a view that is there; of a new one only how much is kept
    is known.
    """

    def body(t: CatalogTransaction) -> tuple[str, int, list[dict[str, int]]]:
        recent = [m["written"] for m in manifests(t, _RECENT) if m["operations"]]
        return str(kept(t)), read_head(t).epoch - oldest_readable(t), recent

    words, epochs, written = store.catalog.read(body)
    if view is None or not written:
        return HistoryCost(words, epochs)
    tables = [table for node in view.nodes for table in state_tables(node)]
    counts = [store.state.count(slot, t) for t in tables for slot in range(store.state.slots)]
    there, size = sum(records for records, _ in counts), sum(size for _, size in counts)
    records = sum(w.get(str(table), 0) for w in written for table in tables) / len(written)
    return HistoryCost(words, epochs, round(records), round(records * size / max(there, 1)))
