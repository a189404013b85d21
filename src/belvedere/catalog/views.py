"""Views: how they are requested, replaced and dropped, and become live."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from belvedere.catalog.definitions import (
    DROPPED,
    LIVE,
    LOADING,
    REQUESTED,
    TableDefinition,
    ViewDefinition,
    ViewStatus,
)
from belvedere.catalog.state import CatalogState, bump, new_id, read_head, read_state
from belvedere.catalog.tables import check_free
from belvedere.errors import CatalogError
from belvedere.sql.planned import TableInfo, ViewInfo
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch


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
        planned = plan_view(select, key, *sight)
        view = ViewDefinition(0, name, select, tuple(key), consistency, planned, time.time())
        if store.catalog.transact(partial(_request, view=view, version=version)):
            return True


def _may_create(t: CatalogTransaction, name: str, replace_it: bool, if_not_exists: bool) -> bool:
    """False if the view is there and that is well; raises if the name cannot be taken."""
    entry = json.loads(t.get(f"name/{name.lower()}") or b"null")
    if entry is not None and entry["kind"] == "view" and replace_it:
        _refuse_readers(read_state(t), name, "replaced")
        return True
    return not check_free(t, name, if_not_exists, "view")


def _request(t: CatalogTransaction, view: ViewDefinition, version: int) -> bool:
    """Write a view that was planned from the definitions of this version of the catalog."""
    if read_head(t).version != version:
        return False
    numbered = replace(view, id=new_id(t))
    t.put(f"view/{numbered.id}", numbered.to_bytes())
    t.put(f"status/{numbered.id}", ViewStatus(REQUESTED).to_bytes())
    _point(t, view.name, numbered.id, json.loads(t.get(f"name/{view.name.lower()}") or b"null"))
    bump(t)
    return True


def _in_sight(
    t: CatalogTransaction, select: str, name: str
) -> tuple[list[TableInfo], list[ViewInfo]]:
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
        entry = json.loads(t.get(f"name/{relation}") or b"null")
        if entry is None or relation in views or relation == name.lower():
            continue
        # a table that has no views when its DROP begins gets none until it is gone
        if entry.get("dropping"):
            raise CatalogError(
                f"table {relation} is being dropped: DROP TABLE {relation} finishes that, then"
                " create it anew"
            )
        used = [entry["id"]]
        if entry["kind"] == "view":
            view = ViewDefinition.from_bytes(t.get(f"view/{entry['id']}") or b"")
            views[relation] = view.info
            waiting += view.planned.reads
            used = list(view.planned.sources)
        for table in used:
            tables[table] = TableDefinition.from_bytes(t.get(f"table/{table}") or b"").info
    return list(tables.values()), list(views.values())


def _point(t: CatalogTransaction, name: str, view: int, replacing: dict[str, Any] | None) -> None:
    """Let the name stand for a view; one that is live keeps being read until its replacement is
    live.
    """
    entry: dict[str, Any] = {"kind": "view", "id": view}
    if replacing is not None:
        if replacing.get("next"):
            _mark_dropped(t, replacing["next"])
        if ViewStatus.from_bytes(t.get(f"status/{replacing['id']}") or b"").state == LIVE:
            entry = {"kind": "view", "id": replacing["id"], "next": view}
        else:
            _mark_dropped(t, replacing["id"])
    t.put(f"name/{name.lower()}", json.dumps(entry).encode())


def _mark_dropped(t: CatalogTransaction, view: int) -> None:
    status = ViewStatus.from_bytes(t.get(f"status/{view}") or b"")
    t.put(f"status/{view}", replace(status, state=DROPPED).to_bytes())


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
        entry = json.loads(t.get(f"name/{name.lower()}") or b"null")
        if entry is None and if_exists:
            return False
        if entry is not None and entry["kind"] == "table":
            raise CatalogError(f"{name} is a table: use DROP TABLE")
        if entry is None:
            raise CatalogError(f"there is no view {name}: SHOW MATERIALIZED VIEWS lists them")
        _refuse_readers(read_state(t), name, "dropped")
        for view in filter(None, (entry["id"], entry.get("next"))):
            _mark_dropped(t, view)
        t.delete(f"name/{name.lower()}")
        bump(t)
        return True

    return store.catalog.transact(body)


def make_live(t: CatalogTransaction, views: Iterable[int], epoch: Epoch) -> None:
    """Loaded views become live as of an epoch that is just being committed; views that they replace
    go.
    """
    live = set()
    for view in views:
        status = ViewStatus.from_bytes(t.get(f"status/{view}") or b"")
        if status.state == LOADING:  # else it was dropped meanwhile
            t.put(
                f"status/{view}",
                ViewStatus(LIVE, live_since=epoch, loaded=status.loaded).to_bytes(),
            )
            live.add(view)
    for key, value in t.scan("name/") if live else []:
        entry = json.loads(value)
        if entry.get("next") in live:
            _mark_dropped(t, entry["id"])
            t.put(key, json.dumps({"kind": "view", "id": entry["next"]}).encode())
