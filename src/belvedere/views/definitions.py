"""Definitions of tables and views, as the catalog keeps them. A definition never changes; its id is never reused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from belvedere.operators.graph import from_json, to_json
from belvedere.sql.planner import PlannedView, TableInfo
from belvedere.stores.base import TableId
from belvedere.types import Schema

REQUESTED, LOADING, LIVE, DROPPED = "requested", "loading", "live", "dropped"


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """`delta` is the delta auxiliary view of a table that is written without before-images, else 0."""

    id: TableId
    name: str
    schema: Schema
    before_images: bool = True
    delta: TableId = 0

    @property
    def info(self) -> TableInfo:
        return TableInfo(self.id, self.name, self.schema)

    def to_bytes(self) -> bytes:
        data = {"id": self.id, "name": self.name, "schema": self.schema.to_json()}
        return json.dumps({**data, "before_images": self.before_images, "delta": self.delta}).encode()

    @classmethod
    @lru_cache(maxsize=4096)  # definitions never change, and every epoch reads all of them
    def from_bytes(cls, data: bytes) -> TableDefinition:
        d = json.loads(data)
        return cls(d["id"], d["name"], Schema.from_json(d["schema"]), d["before_images"], d["delta"])


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    id: int
    name: str
    select: str
    key: tuple[str, ...]  # as the user named it, or ()
    consistency: str
    planned: PlannedView
    created: float

    @property
    def schema(self) -> Schema:
        return self.planned.schema

    def to_bytes(self) -> bytes:
        p = self.planned
        planned = {"schema": p.schema.to_json(), "named": p.named, "unique": p.unique, "source": p.source, "nodes": to_json(p.nodes)}
        data = {"id": self.id, "name": self.name, "select": self.select, "key": self.key, "consistency": self.consistency}
        return json.dumps({**data, "created": self.created, "planned": planned}).encode()

    @classmethod
    @lru_cache(maxsize=4096)
    def from_bytes(cls, data: bytes) -> ViewDefinition:
        d = json.loads(data)
        p = d["planned"]
        planned = PlannedView(Schema.from_json(p["schema"]), p["named"], p["unique"], p["source"], from_json(p["nodes"]))
        return cls(d["id"], d["name"], d["select"], tuple(d["key"]), d["consistency"], planned, d["created"])


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """Where a view stands: requested, loading up to a watermark, live since an epoch, or dropped.

    `watermark` is the largest base key that is loaded (None: all). `errors` counts rows in error, by error table and slot.
    """

    state: str
    watermark: bytes | None = b""
    live_since: int = 0
    loaded: int = 0
    errors: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def in_error(self) -> int:
        return sum(n for slots in self.errors.values() for n in slots.values())

    def to_bytes(self) -> bytes:
        mark = None if self.watermark is None else self.watermark.hex()
        data: dict[str, Any] = {"state": self.state, "watermark": mark, "live_since": self.live_since}
        return json.dumps({**data, "loaded": self.loaded, "errors": self.errors}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ViewStatus:
        d = json.loads(data)
        mark = None if d["watermark"] is None else bytes.fromhex(d["watermark"])
        return cls(d["state"], mark, d["live_since"], d["loaded"], d["errors"])
