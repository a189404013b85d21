"""The catalog's layout: every kind of entry has one accessor here, and nobody else knows its key.

All of it is in the store's one transaction domain (rule R4).

    NEXT_ID    next_id            ids of tables, views, nodes and state tables, never reused
    HEAD       head               the committed epoch, the catalog version, the committed vector
    FLOORS     floor              the epoch below which history may go (`stores.base.FLOOR`)
    NAMES      name/orders        what a name stands for
    TABLES     table/7            definitions of tables
    VIEWS      view/12            definitions of views
    STATUS     status/12          where a view stands
    ERRORS     errors/31          rows in error of an error table, by slot
    LEASE      lease              the coordinator
    INTENT     intent             the open epoch
    COMMITS    commit/000...41    manifests of committed epochs
    PINS       pin/...            epochs that long readers hold
    EPOCHS     epoch/000...41     committed epochs that can be read: time, vector, rows in error
    KEPT       history            how much history is kept for readers of the past
    CONSUMERS  consumer/billing   named readers of change feeds
    DROPPED    dropped/7          tables that are dropped, and whose definition is still there
    GARBAGE    garbage/31         state tables to remove, and the epoch in which they ended
    REPAIRS    repair/...         records that a repair will write
    SOURCES    source/shop        databases of others whose changes are followed
    CONDITIONS condition/shop     how following a source goes, for status
    AWAITED    awaited/shop       the position of a source that somebody waits for
    KEEPING    keeping/7          how keeping the joined rows of sources goes, for status
    ADOPTIONS  adopt/7            tables of others whose rows are not all in the log yet, or not in
                                  the epochs: the vector with which they are, None while unknown
    ROWS       rows/7             where the rows are of a relation whose changes only pass
    FORGOTTEN  forgotten/31       tables of such rows that nobody needs any more, to be dropped
    CHECKED    checked/7          bulk loads of a foreign table that were seen when its picture was
                                  last found right, or made so
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from belvedere.catalog.damage import decodes
from belvedere.catalog.definitions import Filled, TableDefinition, ViewDefinition, ViewStatus
from belvedere.catalog.head import Head
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.stores.base import FLOOR, Catalog, CatalogTransaction
from belvedere.types import Epoch, Vector

K = TypeVar("K", str, int)
T = TypeVar("T")
NameKind = Literal["table", "view"]


@dataclass(frozen=True)
class Entry(Generic[T]):
    """One entry."""

    key: str
    decode: Callable[[bytes], T]
    encode: Callable[[T], bytes]

    def get(self, t: CatalogTransaction) -> T | None:
        stored = t.get(self.key)
        return None if stored is None else self.decode(stored)

    def current(self, catalog: Catalog) -> T | None:
        """As it is committed now, without a transaction."""
        stored = catalog.get_one(self.key)
        return None if stored is None else self.decode(stored)

    def put(self, t: CatalogTransaction, value: T) -> None:
        t.put(self.key, self.encode(value))

    def delete(self, t: CatalogTransaction) -> None:
        t.delete(self.key)


@dataclass(frozen=True)
class Entries(Generic[K, T]):
    """Entries of one kind, by number or name. Numbers are padded to `digits`, to stand in order."""

    prefix: str
    read: Callable[[str], K]
    decode: Callable[[bytes], T]
    encode: Callable[[T], bytes]
    digits: int = 0

    def key(self, which: K) -> str:
        return f"{self.prefix}{str(which).zfill(self.digits)}"

    def get(self, t: CatalogTransaction, which: K) -> T | None:
        stored = t.get(self.key(which))
        return None if stored is None else self.decode(stored)

    def need(self, t: CatalogTransaction, which: K) -> T:
        """One that must be there; Damaged if it is not."""
        return self.decode(t.get(self.key(which)) or b"")

    def all(self, t: CatalogTransaction) -> dict[K, T]:
        """All of them, in the order of their keys."""
        return {which: self.decode(value) for which, value in self._scan(t)}

    def last(self, t: CatalogTransaction, count: int) -> list[T]:
        return [self.decode(value) for _, value in self._scan(t)[-count:]]

    def _scan(self, t: CatalogTransaction) -> list[tuple[K, bytes]]:
        start = len(self.prefix)
        return [(self.read(key[start:]), value) for key, value in t.scan(self.prefix)]

    def put(self, t: CatalogTransaction, which: K, value: T) -> None:
        t.put(self.key(which), self.encode(value))

    def delete(self, t: CatalogTransaction, which: K) -> None:
        t.delete(self.key(which))


@dataclass(frozen=True, slots=True)
class Name:
    """What a name stands for; a view being replaced has a `next`, a table being dropped says so."""

    kind: NameKind
    id: int
    next: int = 0
    dropping: bool = False

    def to_bytes(self) -> bytes:
        said: dict[str, Any] = {"kind": self.kind, "id": self.id}
        if self.next:
            said["next"] = self.next
        if self.dropping:
            said["dropping"] = True
        return json.dumps(said).encode()

    @classmethod
    @decodes("a name")
    def from_bytes(cls, data: bytes) -> Name:
        d = json.loads(data)
        return cls(d["kind"], d["id"], d.get("next") or 0, bool(d.get("dropping")))


def _object(what: str) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """JSON, whose meaning is that of its users."""
    return decodes(what)(json.loads), lambda value: json.dumps(value).encode()


def _number(what: str) -> tuple[Callable[[bytes], int], Callable[[int], bytes]]:
    return decodes(what)(int), lambda value: b"%d" % value


def _same(value: bytes) -> bytes:
    return value


NEXT_ID = Entry[int]("next_id", *_number("the next id"))
HEAD = Entry[Head]("head", Head.from_bytes, Head.to_bytes)
FLOORS = Entry[Epoch](FLOOR, *_number("the epoch up to which history may be removed"))
LEASE = Entry[dict[str, Any]]("lease", *_object("the lease"))
INTENT = Entry[bytes]("intent", _same, _same)
NAMES = Entries[str, Name]("name/", str, Name.from_bytes, Name.to_bytes)
TABLES = Entries[int, TableDefinition](
    "table/", int, TableDefinition.from_bytes, TableDefinition.to_bytes
)
VIEWS = Entries[int, ViewDefinition](
    "view/", int, ViewDefinition.from_bytes, ViewDefinition.to_bytes
)
STATUS = Entries[int, ViewStatus]("status/", int, ViewStatus.from_bytes, ViewStatus.to_bytes)
ERRORS = Entries[int, dict[str, int]]("errors/", int, *_object("a count of rows in error"))
COMMITS = Entries[int, dict[str, Any]]("commit/", int, *_object("a manifest"), digits=20)
PINS = Entries[str, dict[str, Any]]("pin/", str, *_object("a pin"))
EPOCHS = Entries[int, dict[str, Any]]("epoch/", int, *_object("a committed epoch"), digits=20)
KEPT = Entry[dict[str, Any]]("history", *_object("how much history is kept"))
CONSUMERS = Entries[str, dict[str, Any]]("consumer/", str, *_object("a consumer"))
DROPPED = Entries[int, bytes]("dropped/", int, _same, _same)
GARBAGE = Entries[int, Epoch]("garbage/", int, *_number("the end of a state table"))
ADOPTIONS = Entries[int, Vector | None](
    "adopt/",
    int,
    decodes("how far a table is adopted")(lambda data: Vector(json.loads(data)) if data else None),
    lambda vector: b"" if vector is None else json.dumps(vector.to_json()).encode(),
)
ROWS = Entries[int, Filled]("rows/", int, Filled.from_bytes, Filled.to_bytes)
FORGOTTEN = Entries[int, bytes]("forgotten/", int, _same, _same)
SOURCES = Entries[str, SourceDefinition](
    "source/", str, SourceDefinition.from_bytes, SourceDefinition.to_bytes
)
CONDITIONS = Entries[str, dict[str, Any]]("condition/", str, *_object("the condition of a source"))
AWAITED = Entries[str, str](
    "awaited/", str, decodes("the position that is waited for")(bytes.decode), str.encode
)
KEEPING = Entries[int, dict[str, Any]]("keeping/", int, *_object("how a view is kept"))
CHECKED = Entries[int, int]("checked/", int, *_number("the bulk loads that were checked"))
REPAIRS = Entries[str, bytes]("repair/", str, _same, _same)
