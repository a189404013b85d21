"""The catalog: names, definitions, the head of history.

All of it in the store's one transaction domain (rule R4).

    next_id              ids of tables, views, nodes and state tables, never reused
    head                 the committed epoch, the catalog version, the committed vector
    name/orders          what a name stands for; a view being replaced has a `next`, a table being
                         dropped says so
    table/7, view/12     definitions
    status/12            where a view stands
    errors/31            rows in error, by error table and slot
    lease, intent        the coordinator and the open epoch      (epochs)
    commit/000...41      manifests of committed epochs
    pin/...              epochs that long readers hold           (views.pins)
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field, replace
from typing import TypeVar

from belvedere.catalog.damage import decodes
from belvedere.catalog.definitions import TableDefinition, ViewDefinition, ViewStatus
from belvedere.errors import CatalogError
from belvedere.stores.base import FLOOR, CatalogTransaction
from belvedere.types import Epoch, Vector

_HEAD = struct.Struct("<QQ")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """What readers see: the last committed epoch, and the vector of positions that it covers."""

    epoch: Epoch
    version: int
    vector: Vector

    def to_bytes(self) -> bytes:
        return _HEAD.pack(self.epoch, self.version) + json.dumps(self.vector.to_json()).encode()

    @classmethod
    @decodes("the committed epoch")
    def from_bytes(cls, data: bytes | None) -> Head:
        if data is None:
            return cls(0, 0, Vector())
        epoch, version = _HEAD.unpack_from(data)
        return cls(epoch, version, Vector(json.loads(data[_HEAD.size :])))


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
            raise CatalogError(
                f"there is no table or view {name}: SHOW TABLES and SHOW MATERIALIZED VIEWS list"
                " them"
            )
        return found

    def definitions(self) -> list[ViewDefinition]:
        return [*self.views.values(), *self.building.values()]


def _named(found: dict[str, T], name: str, kind: str, hint: str) -> T:
    if name.lower() not in found:
        raise CatalogError(f"there is no {kind} {name}: {hint} lists them")
    return found[name.lower()]


def read_head(t: CatalogTransaction) -> Head:
    return Head.from_bytes(t.get("head"))


@decodes("the epoch up to which history may be removed")
def read_floor(t: CatalogTransaction) -> Epoch:
    """The epoch below which history may be gone."""
    return int(t.get(FLOOR) or b"0")


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
