"""Definitions of tables and views, as the catalog keeps them. Ids are never reused.

A definition never changes, except that a view's nodes are bound once, when it joins.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from belvedere.catalog.damage import decodes
from belvedere.errors import CatalogError, NotKept
from belvedere.graph import Node, Places, bind, error_table, from_json, to_json
from belvedere.sql.planned import PlannedView, TableInfo, ViewInfo
from belvedere.stores.base import Mapping, TableId
from belvedere.types import Schema

REQUESTED, LOADING, LIVE, DROPPED = "requested", "loading", "live", "dropped"
STRONG, COMPLETE = "strong", "complete"  # levels of consistency that epochs can give


@dataclass(frozen=True, slots=True)
class Followed:
    """A relation of a source whose changes are followed, named as the source does; whether its log
    tells whole rows before; and whether changes only pass through our log, so that the rows are not
    kept, or in a table of their own (`Filled`).
    """

    source: str
    relation: str
    has_before: bool = True
    passes: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """Where the rows are of a relation whose changes pass: a table that is filled for views that
    are loaded, or kept from then on (`keep`).

    `alone`: no view had anything of the relation when this was asked for. `claim` names the copy
    that fills it. `since` is the epoch that was committed when it was complete. `until` has, for
    each who reads it meanwhile, a time until which that takes at most.
    """

    table: TableId
    keep: bool
    alone: bool
    claim: str = ""
    since: int = 0
    until: tuple[float, ...] = ()

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    @decodes("where the rows of a relation are")
    def from_bytes(cls, data: bytes) -> Filled:
        found = json.loads(data)
        return cls(**{**found, "until": tuple(found["until"])})


@dataclass(frozen=True, slots=True)
class Joined:
    """What a table is of whose rows are joined from sources for one view: the SELECT as the user
    wrote it, the algorithm that keeps them and the level of consistency that it reaches, an
    internal table that says how far, and, as JSON, what the warehouse knows of the joins.
    """

    view: str
    select: str
    algorithm: str
    every: int
    reaches: str
    progress: TableId
    core: str
    sources: tuple[str, ...]
    period: float = 0.0  # seconds between batches, where they are of a time

    def given(self, epochs: str) -> str:
        """The level of the view, of what epochs give: they may skip states."""
        return epochs if self.reaches == COMPLETE else self.reaches

    def __str__(self) -> str:
        batches = batches_text(self.every, self.period)
        return f"{self.algorithm} every {batches}" if batches else self.algorithm


def batches_text(every: int, period: float) -> str:
    """Batches of a view that an algorithm keeps, as in WITH (every = ...); "" for one by one."""
    if period:
        return f"{period:g} s"
    return f"{every} transactions" if every > 1 else ""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """`delta` is the delta auxiliary view of a table that is written
    without before-images, else 0. A foreign table has a mapping, and its delta view has records of
    cells (`changes.cells`) instead of rows. `faults` are its error tables (`operators.faults`): one
    for each column that is not of the key, then one for rows whose key is none. `created` is the
    epoch that was committed when it was made. `followed`: it is written by following a source only.
    `joined`: it is written for one view only.
    """

    id: TableId
    name: str
    schema: Schema
    before_images: bool = True
    delta: TableId = 0
    mapping: Mapping | None = None
    faults: tuple[TableId, ...] = ()
    created: int = 0
    followed: Followed | None = None
    joined: Joined | None = None

    @property
    def passes(self) -> bool:
        """Whether its changes only pass: then no rows are under its own id."""
        return self.followed is not None and self.followed.passes

    def check_kept(self) -> None:
        """Before its rows are read: that none are here does not mean that there are none."""
        if self.passes:
            raise NotKept(self.name)

    @property
    def state_tables(self) -> tuple[TableId, ...]:
        """All that is kept for it."""
        return (*([self.delta] if self.delta else []), *self.faults)

    def check_writable(self) -> None:
        if self.followed is not None:
            raise CatalogError(
                f"{self.name} is a relation of source {self.followed.source}: write to it there,"
                " and its changes arrive here"
            )
        if self.joined is not None:
            raise CatalogError(
                f"{self.name} has the joined rows of view {self.joined.view}: write to its sources"
            )

    @property
    def info(self) -> TableInfo:
        return TableInfo(self.id, self.name, self.schema)

    def to_bytes(self) -> bytes:
        data: dict[str, Any] = {"id": self.id, "name": self.name}
        data["schema"] = self.schema.to_json()
        data |= {"before_images": self.before_images, "delta": self.delta}
        if self.mapping is not None:
            data["mapping"] = json.loads(self.mapping.to_bytes())
            data["faults"] = list(self.faults)
        if self.created:
            data["created"] = self.created
        if self.followed is not None:
            data["followed"] = asdict(self.followed)
        if self.joined is not None:
            data["joined"] = asdict(self.joined)
        return json.dumps(data).encode()

    @classmethod
    @lru_cache(maxsize=4096)  # definitions never change, and every epoch reads all of them
    @decodes("the definition of a table")
    def from_bytes(cls, data: bytes) -> TableDefinition:
        d = json.loads(data)
        schema, mapping = Schema.from_json(d["schema"]), d.get("mapping")
        found = None if mapping is None else Mapping.from_bytes(json.dumps(mapping).encode())
        faults = tuple(d.get("faults", ()))
        images, created = d["before_images"], d.get("created", 0)
        followed = Followed(**d["followed"]) if "followed" in d else None
        joined = Joined(**{**j, "sources": tuple(j["sources"])}) if (j := d.get("joined")) else None
        kept = found, faults, created, followed, joined
        return cls(d["id"], d["name"], schema, images, d["delta"], *kept)


def given(asked: str) -> str:
    """The level that epochs give a view that asks for one: never less than strong."""
    return COMPLETE if asked == COMPLETE else STRONG


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """`bound` says that the nodes are real: ids and state tables are given when the view joins, so
    that it shares what is live then.
    """

    id: int
    name: str
    select: str
    key: tuple[str, ...]  # as the user named it, or ()
    consistency: str
    planned: PlannedView
    created: float
    bound: bool = False

    @property
    def schema(self) -> Schema:
        return self.planned.schema

    @property
    def info(self) -> ViewInfo:
        return ViewInfo(self.name, self.select, self.schema.names)

    @property
    def is_complete(self) -> bool:
        """Whether readers shall be able to see the state after every transaction."""
        return self.consistency == COMPLETE

    @property
    def given(self) -> str:
        """The level of consistency that epochs give the view."""
        return given(self.consistency)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that exist; none before the view has joined."""
        return self.planned.nodes if self.bound else ()

    @property
    def error_tables(self) -> tuple[TableId, ...]:
        return tuple(table for table in map(error_table, self.nodes) if table)

    def bind(self, known: Places, new_id: Callable[[], int]) -> ViewDefinition:
        return replace(
            self,
            planned=replace(self.planned, nodes=bind(self.planned.nodes, known, new_id)),
            bound=True,
        )

    def to_bytes(self) -> bytes:
        p = self.planned
        planned = {
            "schema": p.schema.to_json(),
            "named": p.named,
            "unique": p.unique,
            "nodes": to_json(p.nodes),
        }
        planned = {**planned, "checked": p.checked, "reads": p.reads, "columns": p.columns}
        data = {
            "id": self.id,
            "name": self.name,
            "select": self.select,
            "key": self.key,
            "consistency": self.consistency,
        }
        return json.dumps(
            {**data, "created": self.created, "bound": self.bound, "planned": planned}
        ).encode()

    @classmethod
    @lru_cache(maxsize=4096)
    @decodes("the definition of a view")
    def from_bytes(cls, data: bytes) -> ViewDefinition:
        d = json.loads(data)
        p = d["planned"]
        nodes = from_json(p["nodes"])
        texts = p["checked"], tuple(p["reads"])
        planned = PlannedView(
            Schema.from_json(p["schema"]),
            p["named"],
            p["unique"],
            nodes,
            *texts,
            tuple(p["columns"]),
        )
        return cls(
            d["id"],
            d["name"],
            d["select"],
            tuple(d["key"]),
            d["consistency"],
            planned,
            d["created"],
            d["bound"],
        )


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """Where a view stands: requested, loading, live since an epoch, or dropped.

    While it loads: `group` are the views that are built together (by the lowest id), `building` the
    nodes that are new with them. `origins` are the nodes from whose rows this one is loaded, and
    `marks` says of origins of the group up to which key that is done (hex; None: all).
    """

    state: str
    live_since: int = 0
    loaded: int = 0
    group: int = 0
    building: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()
    marks: dict[int, str | None] = field(default_factory=dict)

    @property
    def next_origin(self) -> int:
        """The origin that is loaded next."""
        return next(o for o in self.origins if self.marks.get(o, "") is not None)

    def to_bytes(self) -> bytes:
        # asdict would copy every number
        return json.dumps({f.name: getattr(self, f.name) for f in fields(self)}).encode()

    @classmethod
    @lru_cache(maxsize=4096)
    @decodes("the status of a view")
    def from_bytes(cls, data: bytes) -> ViewStatus:
        d = json.loads(data)
        marks = {int(origin): mark for origin, mark in d["marks"].items()}
        return cls(
            d["state"],
            d["live_since"],
            d["loaded"],
            d["group"],
            tuple(d["building"]),
            tuple(d["origins"]),
            marks,
        )
