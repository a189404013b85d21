"""Views join between two epochs (rule R7): their nodes are bound, and what is new among them is
loaded from what is there.

    origins(new)   a base table, or a live node, whose rows feed a new node that keeps state; a join
                   or a top-k is an origin for what stands above it, because it can give its rows as
                   soon as its own inputs are loaded

Origins are loaded one after the other, inputs first, in steps of a key range; each step is an
epoch. Views that join together are one group: an origin is read once for all of them. A view that
needs nodes of a group under way waits for it, and one of a foreign table until that is adopted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from belvedere.catalog import layout
from belvedere.catalog.definitions import LIVE, LOADING, REQUESTED, ViewDefinition, ViewStatus
from belvedere.catalog.state import CatalogState
from belvedere.graph import Node, Places, bind, places
from belvedere.stores.base import CatalogTransaction, TableId


def origins(nodes: Sequence[Node], building: frozenset[int]) -> tuple[int, ...]:
    """The nodes from whose rows the new ones are loaded, in loading order: older nodes are never
    above younger ones.
    """
    by_id = {n.id: n for n in nodes}
    found: set[int] = set()
    for node in nodes:
        if node.id in building and node.stateful and not node.derived:
            below = (_root(by_id, i) for i in node.below)
            found |= {n.id for n in below if n.derived or n.source or n.id not in building}
    return tuple(sorted(found))


def _root(by_id: dict[int, Node], node: int) -> Node:
    """The node below all stateless ones."""
    found = by_id[node]
    return _root(by_id, found.below[0]) if found.stateless else found


def followed_tables(state: CatalogState, active: Iterable[ViewDefinition]) -> frozenset[TableId]:
    """The base tables whose changes anybody needs now; a view whose loading has not begun needs
    none: it takes rows as they are then.
    """
    found = {table.id for table in state.tables.values() if table.delta}
    for view in active:
        found |= _followed(view, state.status[view.id])
    return frozenset(found)


def _followed(view: ViewDefinition, status: ViewStatus) -> set[TableId]:
    sources = {n.id: n.operator.base_table for n in view.nodes if n.source}
    # of a view that may be dropped meanwhile
    shares = any(n.id not in status.building and n.id not in sources for n in view.nodes)
    if status.state == LIVE or shares:
        return set(sources.values())
    return {table for node, table in sources.items() if node in status.marks}


def has_requests(t: CatalogTransaction) -> bool:
    """Whether a view waits to join."""
    return any(status.state == REQUESTED for status in layout.STATUS.all(t).values())


def admit(t: CatalogTransaction, new_id: Callable[[], int]) -> dict[int, bool]:
    """Requested views join: no epoch is open, so all of them start from what is committed now.

    Returns the views that joined, and whether everything they need is kept already.
    """
    status = layout.STATUS.all(t)
    requested = [view for view, s in sorted(status.items()) if s.state == REQUESTED]
    if not requested:
        return {}
    running = [view for view, s in status.items() if s.state in (LIVE, LOADING)]
    active = {view: layout.VIEWS.need(t, view) for view in running}
    known = _places(active.values())
    complete = frozenset(n.id for n in known.values())
    busy = _busy(status, active)
    joined = []
    for definition in _complete_below(t, requested):
        if not (busy and _uses(definition, known, busy)):
            joined.append(definition.bind(known, new_id))
    for view in joined:
        layout.VIEWS.put(t, view.id, view)
    if joined:
        _join(t, joined, complete)
    return {view.id: all(n.id in complete for n in view.nodes) for view in joined}


def _complete_below(t: CatalogTransaction, requested: Iterable[int]) -> Iterator[ViewDefinition]:
    """The views none of whose tables is being adopted."""
    adopting = layout.ADOPTIONS.all(t).keys()
    for definition in (layout.VIEWS.need(t, view) for view in requested):
        if adopting.isdisjoint(definition.planned.sources):
            yield definition


def _places(views: Iterable[ViewDefinition]) -> Places:
    """Where the nodes of views are found by those that come later."""
    return places({n.id: n for view in views for n in view.nodes}.values())


def _busy(status: Mapping[int, ViewStatus], active: Mapping[int, ViewDefinition]) -> set[int]:
    """The nodes that are being loaded, and that no live view has."""
    building = {n for s in status.values() if s.state == LOADING for n in s.building}
    live = (v for view, v in active.items() if status[view].state == LIVE)
    return building - {n.id for view in live for n in view.nodes}


def _uses(view: ViewDefinition, known: Places, busy: set[int]) -> bool:
    """Whether the view would share a node that another group is loading."""
    trial = count(-1, -1)
    return any(n.id in busy for n in bind(view.planned.nodes, dict(known), trial.__next__))


def _join(t: CatalogTransaction, group: Sequence[ViewDefinition], complete: frozenset[int]) -> None:
    """A base table's node keeps nothing, so it is never new."""
    nodes = {n.id: n for v in group for n in v.nodes}
    building = frozenset(n.id for n in nodes.values() if n.id not in complete and not n.source)
    first = min(v.id for v in group)
    for view in group:
        status = layout.STATUS.need(t, view.id)
        found = origins(view.nodes, building)
        joining = replace(
            status, state=LOADING, group=first, building=tuple(sorted(building)), origins=found
        )
        layout.STATUS.put(t, view.id, joining)
