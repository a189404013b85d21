"""The catalog: names, definitions, the head of history. All of it in the store's one transaction domain (rule R4).

    next_id              ids of tables, views, nodes and state tables, never reused
    head                 the committed epoch, the catalog version, the committed vector
    name/orders          what a name stands for; a view being replaced has a `next`, a table being dropped says so
    table/7, view/12     definitions
    status/12            where a view stands
    errors/31            rows in error, by error table and slot
    lease, intent        the coordinator and the open epoch      (pipeline.ledger)
    commit/000...41      manifests of committed epochs
    pin/...              epochs that long readers hold           (views.pins)
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from belvedere.errors import CatalogError, SchemaError
from belvedere.sql.planned import TableInfo, ViewInfo
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Epoch, Position, Schema
from belvedere.views.damage import decodes
from belvedere.views.definitions import DROPPED, LIVE, LOADING, REQUESTED, TableDefinition, ViewDefinition, ViewStatus

_HEAD = struct.Struct("<QQ")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """What readers see: the last committed epoch, and the vector of positions that it covers."""

    epoch: Epoch
    version: int
    vector: dict[str, Position]

    def to_bytes(self) -> bytes:
        return _HEAD.pack(self.epoch, self.version) + json.dumps(self.vector).encode()

    @classmethod
    @decodes("the committed epoch")
    def from_bytes(cls, data: bytes | None) -> Head:
        if data is None:
            return cls(0, 0, {})
        epoch, version = _HEAD.unpack_from(data)
        return cls(epoch, version, json.loads(data[_HEAD.size :]))


@dataclass(frozen=True, slots=True)
class CatalogState:
    """One consistent reading of the whole catalog."""

    head: Head
    tables: dict[str, TableDefinition]
    views: dict[str, ViewDefinition]  # by the name under which they are read
    building: dict[str, ViewDefinition]  # replacements that are not live yet
    status: dict[int, ViewStatus]
    errors: dict[int, int]  # rows in error, by error table
    dropping: set[int] = field(default_factory=set)  # tables of which a DROP has begun

    def in_error(self, view: ViewDefinition) -> int:
        """How many rows the view cannot evaluate; nodes that it shares count too."""
        return sum(self.errors.get(table, 0) for table in view.error_tables)

    def table(self, name: str) -> TableDefinition:
        if name.lower() in self.views:
            raise CatalogError(f"{name} is a view: it is maintained, not written to")
        return _named(self.tables, name, "table", "SHOW TABLES")

    def view(self, name: str) -> ViewDefinition:
        if name.lower() in self.tables:
            raise CatalogError(f"{name} is a table: use table({name!r})")
        return _named(self.views, name, "view", "SHOW MATERIALIZED VIEWS")

    def relation(self, name: str) -> TableDefinition | ViewDefinition:
        found = self.tables.get(name.lower()) or self.views.get(name.lower())
        if found is None:
            raise CatalogError(f"there is no table or view {name}: SHOW TABLES and SHOW MATERIALIZED VIEWS list them")
        return found

    def definitions(self) -> list[ViewDefinition]:
        return [*self.views.values(), *self.building.values()]


def _named(found: dict[str, T], name: str, kind: str, hint: str) -> T:
    if name.lower() not in found:
        raise CatalogError(f"there is no {kind} {name}: {hint} lists them")
    return found[name.lower()]


def read_head(t: CatalogTransaction) -> Head:
    return Head.from_bytes(t.get("head"))


@decodes("a name or a count")
def read_state(t: CatalogTransaction) -> CatalogState:
    tables = {d.id: d for d in (TableDefinition.from_bytes(v) for _, v in t.scan("table/"))}
    views = {d.id: d for d in (ViewDefinition.from_bytes(v) for _, v in t.scan("view/"))}
    status = {int(k.split("/")[1]): ViewStatus.from_bytes(v) for k, v in t.scan("status/")}
    errors = {int(k.split("/")[1]): sum(json.loads(v).values()) for k, v in t.scan("errors/")}
    state = CatalogState(read_head(t), {}, {}, {}, status, errors)
    for key, value in t.scan("name/"):
        name, entry = key.split("/", 1)[1], json.loads(value)
        if entry["kind"] == "table":
            state.tables[name] = tables[entry["id"]]
            if entry.get("dropping"):
                state.dropping.add(entry["id"])
            continue
        state.views[name] = views[entry["id"]]
        if entry.get("next"):
            state.building[name] = views[entry["next"]]
    return state


def bump(t: CatalogTransaction) -> None:
    """Tell other processes that definitions or states of views have changed."""
    head = read_head(t)
    t.put("head", replace(head, version=head.version + 1).to_bytes())


def new_id(t: CatalogTransaction) -> int:
    value = int(t.get("next_id") or b"1")
    t.put("next_id", b"%d" % (value + 1))
    return value


def create_table(store: Store, name: str, schema: Schema, before_images: bool, if_not_exists: bool = False) -> bool:
    _check_table(name, schema)

    def body(t: CatalogTransaction) -> bool:
        if _exists(t, name, if_not_exists, "table"):
            return False
        definition = TableDefinition(new_id(t), name, schema, before_images, 0 if before_images else new_id(t))
        t.put(f"table/{definition.id}", definition.to_bytes())
        t.put(f"name/{name.lower()}", json.dumps({"kind": "table", "id": definition.id}).encode())
        bump(t)
        return True

    return store.catalog.transact(body)


def _check_table(name: str, schema: Schema) -> None:
    from belvedere.sql.names import check_names  # SQL is loaded to change the catalog, not to read it

    check_names("the table", [name])
    check_names(f"a column of table {name}", schema.names)
    if not schema.key:
        raise SchemaError(f"table {name} has no key: add PRIMARY KEY (column, ...)")
    seen: set[str] = set()
    for column in schema.columns:
        if column.name.lower() in seen:
            raise SchemaError(f"table {name} has two columns {column.name}")
        seen.add(column.name.lower())
    for key in schema.key:
        schema.column(key)
        if schema.key.count(key) > 1:
            raise SchemaError(f"the key of table {name} lists {key} twice: list it once")


def _exists(t: CatalogTransaction, name: str, allowed: bool, kind: str) -> bool:
    entry = t.get(f"name/{name.lower()}")
    if entry is None:
        return False
    found = json.loads(entry)["kind"]
    if json.loads(entry).get("dropping"):
        raise CatalogError(f"table {name} is being dropped: DROP TABLE {name} finishes that, then create it")
    if allowed and found == kind:
        return True
    if found != kind:
        raise CatalogError(f"a {found} {name} exists already: choose another name, or drop it first")
    raise CatalogError(f"a {found} {name} exists already: drop it first, or use {'IF NOT EXISTS' if kind == 'table' else 'OR REPLACE'}")


def create_view(
    store: Store, name: str, select: str, key: Sequence[str], consistency: str, replace_it: bool = False, if_not_exists: bool = False
) -> bool:
    """Register a view as requested; a coordinator loads it and makes it live between two epochs (rule R7)."""
    from belvedere.sql.names import check_names
    from belvedere.sql.planner import plan_view

    check_names("the view", [name])

    def body(t: CatalogTransaction) -> bool:
        entry = t.get(f"name/{name.lower()}")
        replacing = json.loads(entry) if entry and replace_it and json.loads(entry)["kind"] == "view" else None
        if replacing is None and _exists(t, name, if_not_exists, "view"):
            return False
        if replacing is not None:
            _refuse_readers(read_state(t), name, "replaced")
        planned = plan_view(select, key, *_in_sight(t, select, name))
        view = ViewDefinition(new_id(t), name, select, tuple(key), consistency, planned, time.time())
        t.put(f"view/{view.id}", view.to_bytes())
        t.put(f"status/{view.id}", ViewStatus(REQUESTED).to_bytes())
        _point(t, name, view.id, replacing)
        bump(t)
        return True

    return store.catalog.transact(body)


def _in_sight(t: CatalogTransaction, select: str, name: str) -> tuple[list[TableInfo], list[ViewInfo]]:
    """The tables and views that a SELECT refers to, and what these views refer to: other definitions are not read."""
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
        if entry.get("dropping"):  # a table that has no views when its DROP begins gets none until it is gone
            raise CatalogError(f"table {relation} is being dropped: DROP TABLE {relation} finishes that, then create it anew")
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
    """Let the name stand for a view; one that is live keeps being read until its replacement is live."""
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
    readers = sorted({v.name for v in state.definitions() if name.lower() in v.planned.reads and v.name.lower() != name.lower()})
    if readers:
        raise CatalogError(f"view {name} cannot be {what}, it is used by {', '.join(readers)}: drop these views first")


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


def drop_table(store: Store, name: str, if_exists: bool = False) -> bool:
    """Three transactions, as catalog and rows are apart. After a crash between two of them DROP TABLE finishes what is left.

    1. the name says that the table is being dropped; no view uses it, and none will
    2. the rows are nobody's: writes and reads, of any process, are refused from here on, so none is acknowledged and lost
    3. the name is free
    """
    table = store.catalog.transact(lambda t: _begin_drop(t, name, if_exists))
    if table is None:
        return False
    store.base.drop(table.id)
    store.catalog.transact(lambda t: _end_drop(t, table))
    return True


def _begin_drop(t: CatalogTransaction, name: str, if_exists: bool) -> TableDefinition | None:
    state = read_state(t)
    if if_exists and name.lower() not in state.tables:
        return None
    if name.lower() in state.views:
        raise CatalogError(f"{name} is a view: use DROP MATERIALIZED VIEW")
    table = state.table(name)
    users = {v.name for v in state.definitions() if table.id in v.planned.sources}
    if users:
        raise CatalogError(f"table {name} is used by {', '.join(sorted(users))}: drop these views first")
    t.put(f"name/{name.lower()}", json.dumps({"kind": "table", "id": table.id, "dropping": True}).encode())
    bump(t)
    return table


def _end_drop(t: CatalogTransaction, table: TableDefinition) -> None:
    key = f"name/{table.name.lower()}"
    if json.loads(t.get(key) or b"{}").get("id") != table.id:
        return  # another process has dropped it too, and was faster; the name may be another table's by now
    t.delete(key)
    t.put(f"dropped/{table.id}", b"")  # an open epoch may still name its definition: a coordinator removes it
    bump(t)


def make_live(t: CatalogTransaction, views: Iterable[int], epoch: Epoch) -> None:
    """Loaded views become live as of an epoch that is just being committed; views that they replace go."""
    live = set()
    for view in views:
        status = ViewStatus.from_bytes(t.get(f"status/{view}") or b"")
        if status.state == LOADING:  # else it was dropped meanwhile
            t.put(f"status/{view}", ViewStatus(LIVE, live_since=epoch, loaded=status.loaded).to_bytes())
            live.add(view)
    for key, value in t.scan("name/") if live else []:
        entry = json.loads(value)
        if entry.get("next") in live:
            _mark_dropped(t, entry["id"])
            t.put(key, json.dumps({"kind": "view", "id": entry["next"]}).encode())
