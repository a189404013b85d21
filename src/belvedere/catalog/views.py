"""Views: how they are requested, replaced and dropped, and become live."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from belvedere.catalog import layout
from belvedere.catalog.definitions import (
    COMPLETE,
    DROPPED,
    LIVE,
    LOADING,
    REQUESTED,
    ViewDefinition,
    ViewStatus,
)
from belvedere.catalog.filling import ask_rows
from belvedere.catalog.layout import Name
from belvedere.catalog.state import CatalogState, bump, new_id, read_head, read_state
from belvedere.catalog.tables import check_free, check_not_of_source
from belvedere.errors import CatalogError
from belvedere.graph import error_table
from belvedere.sql.planned import TableInfo, ViewInfo
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch

Sight = tuple[list[TableInfo], list[ViewInfo]]


def create_view(
    store: Store,
    name: str,
    select: str,
    key: Sequence[str],
    consistency: str,
    replace_it: bool = False,
    if_not_exists: bool = False,
) -> bool:
    """Register a view as requested; a coordinator loads it and makes it live between two epochs
    (rule R7).
    """
    from belvedere.sql.names import check_names
    from belvedere.sql.planner import plan_view

    check_names("the view", [name])
    check_reached(store, consistency)
    while True:
        version, wanted, sight = store.catalog.read(
            lambda t: (
                read_head(t).version,
                _may_create(t, name, replace_it, if_not_exists),
                _in_sight(t, select, name),
            )
        )
        if not wanted:
            return False
        planned = plan_view(select, key, *sight, store.capabilities.longest_key)
        view = ViewDefinition(0, name, select, tuple(key), consistency, planned, time.time())
        if store.catalog.transact(partial(_request, view=view, version=version)):
            return True


def check_reached(store: Store, consistency: str) -> None:
    """Raise if views in this store cannot reach a level."""
    if consistency == COMPLETE and store.foreign is not None:
        raise CatalogError(
            "consistency = 'complete' needs a log in which transactions have an order, and in the"
            " log of tables of others only the operations on each row have one: leave the option"
            " out, or ask for 'strong' or less"
        )


def _may_create(t: CatalogTransaction, name: str, replace_it: bool, if_not_exists: bool) -> bool:
    """False if the view is there and that is well; raises if the name cannot be taken."""
    check_not_of_source(t, name)
    entry = layout.NAMES.get(t, name.lower())
    if entry is not None and entry.kind == "view" and replace_it:
        _refuse_readers(read_state(t), name, "replaced")
        return True
    return not check_free(t, name, if_not_exists, "view")


def _request(t: CatalogTransaction, view: ViewDefinition, version: int) -> bool:
    """Write a view that was planned from the definitions of this version of the catalog."""
    if read_head(t).version != version:
        return False
    numbered = replace(view, id=new_id(t))
    layout.VIEWS.put(t, numbered.id, numbered)
    layout.STATUS.put(t, numbered.id, ViewStatus(REQUESTED))
    _point(t, view.name, numbered.id, layout.NAMES.get(t, view.name.lower()))
    ask_rows(t, view.planned.sources)
    bump(t)
    return True


def _in_sight(t: CatalogTransaction, select: str, name: str) -> Sight:
    """The tables and views that a SELECT refers to, and what these views refer to: other
    definitions are not read.
    """
    from belvedere.sql.dialect import parse
    from belvedere.sql.query import relations

    tables: dict[int, TableInfo] = {}
    views: dict[str, ViewInfo] = {}
    waiting = [relation.lower() for relation in relations(parse(select))]
    while waiting:
        relation = waiting.pop()
        entry = layout.NAMES.get(t, relation)
        if entry is None or relation in views or relation == name.lower():
            continue
        # a table that has no views when its DROP begins gets none until it is gone
        if entry.dropping:
            raise CatalogError(
                f"table {relation} is being dropped: DROP TABLE {relation} finishes that, then"
                " create it anew"
            )
        used = [entry.id]
        if entry.kind == "view":
            view = layout.VIEWS.need(t, entry.id)
            views[relation] = view.info
            waiting += view.planned.reads
            used = list(view.planned.sources)
        for table in used:
            tables[table] = layout.TABLES.need(t, table).info
    return list(tables.values()), list(views.values())


def _point(t: CatalogTransaction, name: str, view: int, replacing: Name | None) -> None:
    """Let the name stand for a view; one that is live keeps being read until its replacement is
    live.
    """
    entry = Name("view", view)
    if replacing is not None:
        if replacing.next:
            _mark_dropped(t, replacing.next)
        if layout.STATUS.need(t, replacing.id).state == LIVE:
            entry = Name("view", replacing.id, next=view)
        else:
            _mark_dropped(t, replacing.id)
    layout.NAMES.put(t, name.lower(), entry)


def _mark_dropped(t: CatalogTransaction, view: int) -> None:
    layout.STATUS.put(t, view, replace(layout.STATUS.need(t, view), state=DROPPED))


def _refuse_readers(state: CatalogState, name: str, what: str) -> None:
    readers = sorted(
        {
            v.name
            for v in state.definitions()
            if name.lower() in v.planned.reads and v.name.lower() != name.lower()
        }
    )
    if readers:
        raise CatalogError(
            f"view {name} cannot be {what}, it is used by {', '.join(readers)}: drop these views"
            " first"
        )


def drop_view(store: Store, name: str, if_exists: bool = False) -> bool:
    """Take the name away at once; a coordinator removes the tables between two epochs."""

    def body(t: CatalogTransaction) -> bool:
        entry = layout.NAMES.get(t, name.lower())
        if entry is None and if_exists:
            return False
        if entry is not None and entry.kind == "table":
            raise CatalogError(f"{name} is a table: use DROP TABLE")
        if entry is None:
            raise CatalogError(f"there is no view {name}: SHOW MATERIALIZED VIEWS lists them")
        _refuse_readers(read_state(t), name, "dropped")
        for view in filter(None, (entry.id, entry.next)):
            _mark_dropped(t, view)
        layout.NAMES.delete(t, name.lower())
        bump(t)
        return True

    return store.catalog.transact(body)


def rebuild_views(
    store: Store,
    names: Callable[[CatalogState], Sequence[str]],
    also: Callable[[CatalogTransaction], None] = lambda t: None,
) -> tuple[str, ...]:
    """Drop views and request them again, in one transaction, in which something else may be done
    between the two; returns which.

    So must all views that share what they keep: a view that comes later would share it again. What
    they kept is not read any more, so it may be damaged.
    """
    from belvedere.sql.planner import plan_view

    def look(t: CatalogTransaction) -> tuple[CatalogState, list[tuple[ViewDefinition, Sight]]]:
        state = read_state(t)
        found = _sharing(state, names(state))
        return state, [(view, _in_sight(t, view.select, view.name)) for view in found]

    while True:
        state, found = store.catalog.read(look)
        new = []
        for view, sight in found:
            planned = plan_view(view.select, view.key, *sight, store.capabilities.longest_key)
            again = replace(view, planned=planned, created=time.time(), bound=False)
            new.append(again)
        body = partial(_request_again, views=new, version=state.head.version, also=also)
        if store.catalog.transact(body):
            return tuple(view.name for view in new)


def _sharing(state: CatalogState, names: Sequence[str]) -> list[ViewDefinition]:
    """Views as they are wanted now, and all that share something that is kept with one of them."""
    wanted = {view.id for name in names for view in _versions(state, state.view(name).name)}
    views = state.definitions()
    kept = {view.id: {n.id for n in view.nodes if n.stateful or error_table(n)} for view in views}
    lost = {node for view in wanted for node in kept[view]}
    concerned = {view.name for view in views if view.id in wanted or kept[view.id] & lost}
    return [_versions(state, name)[-1] for name in sorted(concerned)]


def _versions(state: CatalogState, name: str) -> list[ViewDefinition]:
    """What is read under a name, then what will replace it."""
    found = [state.views.get(name.lower()), state.building.get(name.lower())]
    return [view for view in found if view is not None]


def _request_again(
    t: CatalogTransaction,
    views: Sequence[ViewDefinition],
    version: int,
    also: Callable[[CatalogTransaction], None],
) -> bool:
    if read_head(t).version != version:
        return False
    for view in views:
        entry = layout.NAMES.get(t, view.name.lower())
        for old in filter(None, (entry.id, entry.next) if entry else ()):
            _mark_dropped(t, old)
    also(t)
    for view in views:
        ask_rows(t, view.planned.sources)
        numbered = replace(view, id=new_id(t))
        layout.VIEWS.put(t, numbered.id, numbered)
        layout.STATUS.put(t, numbered.id, ViewStatus(REQUESTED))
        layout.NAMES.put(t, view.name.lower(), Name("view", numbered.id))
    bump(t)
    return True


def make_live(t: CatalogTransaction, views: Iterable[int], epoch: Epoch) -> None:
    """Loaded views become live as of an epoch that is just being committed; views that they replace
    go.
    """
    live = set()
    for view in views:
        status = layout.STATUS.need(t, view)
        if status.state == LOADING:  # else it was dropped meanwhile
            now_live = ViewStatus(LIVE, live_since=epoch, loaded=status.loaded)
            layout.STATUS.put(t, view, now_live)
            live.add(view)
    for name, entry in layout.NAMES.all(t).items() if live else ():
        if entry.next in live:
            _mark_dropped(t, entry.id)
            layout.NAMES.put(t, name, Name("view", entry.next))
