"""A store in HBase: a namespace of tables.

ns:belvedere    the catalog, and what else is one row: `catalog.py`, `tables.py`, the format
ns:state        auxiliary tables together
ns:name.id      views, one each, for other clients to read
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from belvedere.errors import StoreError, TableGone
from belvedere.stores.base import (
    BaseTables,
    Capabilities,
    Catalog,
    CatalogTransaction,
    ForeignTables,
    RowHistory,
    StateTables,
)
from belvedere.stores.closed import Closed
from belvedere.stores.hbase import catalog, tables
from belvedere.stores.hbase.base_tables import HBaseBase
from belvedere.stores.hbase.catalog import HBaseCatalog
from belvedere.stores.hbase.client import Cell, Client
from belvedere.stores.hbase.foreign import HBaseForeign
from belvedere.stores.hbase.forms import OneCell
from belvedere.stores.hbase.shard import LONGEST_KEY
from belvedere.stores.hbase.state import HBaseState
from belvedere.stores.hbase.sweep import Sweeper
from belvedere.stores.hbase.tables import Registry
from belvedere.stores.hbase.url import Address, check_slots, parse

FORMAT = 1
_ROW, _FAMILY, _QUALIFIER = b"format", "t", b"format"
_CATALOG = "belvedere"
_ID = "store-id"
MakeBase = Callable[[Client, Address], BaseTables]


class HBaseStore:
    """Open it with `HBaseStore.open`. It can be used by several threads, and pickled (by URL)."""

    def __init__(self, client: Client, address: Address, slots: int, base: BaseTables) -> None:
        self.address, self.client = address, client
        self.url = address.url
        self.read_only = False
        self.capabilities = Capabilities(
            longest_key=LONGEST_KEY,
            slot_transactions=False,
            owns_base_tables=False,
            conditional_writes=False,
            transactions=False,
            passing=False,
        )
        cells = client.cells(f"{address.namespace}:{_CATALOG}")
        self._entries = HBaseCatalog(cells)
        self._tables = HBaseState(
            client,
            Registry(cells, client, address.namespace),
            self._entries,
            slots,
            address.grace,
        )
        self.catalog: Catalog = self._entries
        self.state: StateTables = self._tables
        self.base: BaseTables = base
        captured = HBaseForeign(base) if isinstance(base, HBaseBase) else None
        self.foreign: ForeignTables | None = captured
        self.history: RowHistory | None = None

    @property
    def id(self) -> str:
        """In the catalog, from the first time that somebody asks."""

        def make(transaction: CatalogTransaction) -> bytes:
            known = transaction.get(_ID)
            if known is None:
                known = uuid.uuid4().hex.encode()
                transaction.put(_ID, known)
            return known

        return (self.catalog.get_one(_ID) or self.catalog.transact(make)).decode()

    @classmethod
    def open(
        cls,
        url: str,
        slots: int | None = None,
        grace: float | None = None,
        base: MakeBase | None = None,
        read_only: bool = False,
    ) -> HBaseStore:
        """Open the store at a URL, creating it (with `slots` slots) if nothing is there."""
        if read_only:
            raise StoreError(
                "a store in HBase cannot be opened to read only: leave out read_only, or read its"
                " views as a user of HBase who may read only"
            )
        check_slots(slots)
        address = parse(url)
        if grace is not None:
            address = replace(address, grace=grace)
        client = Client(address)
        try:
            found = _prepare(client, address.namespace, slots or address.slots)
            made = (base or _captured)(client, address)
            return cls(client, address, found, made)
        except BaseException:  # whatever it was, nobody gets this store, so nobody would close it
            client.close()
            raise

    @property
    def sweeper(self) -> Sweeper:
        return self._tables.sweeper

    def look_after(self, deadline: float) -> list[str]:
        self._tables.sweeper.start()
        return []

    def rest(self) -> None:
        pass

    def close(self) -> None:
        """Idempotent."""
        if isinstance(self.catalog, Closed):
            return
        with _cache_lock:
            if _cache.get(self.url) is self:
                del _cache[self.url]
        self._tables.close()
        closed: Any = Closed(self.url)
        # Who reads often keeps the catalog itself, not the store.
        self._entries._cells = closed
        self.catalog = self.base = self.state = closed
        self.client.close()

    def __enter__(self) -> HBaseStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return open_cached, (self.url,)


def _captured(client: Client, address: Address) -> BaseTables:
    """Tables of users, captured by this namespace's peer."""
    return HBaseBase(address.cluster, address.namespace, address.capture, client)


def exists(url: str) -> bool:
    """Whether there is a store at a URL."""
    address = parse(url)
    client = Client(address)
    try:
        return _read_format(client, address.namespace) is not None
    finally:
        client.close()


def _prepare(client: Client, namespace: str, wanted: int | None) -> int:
    """Make what is not there; the format comes last, so who finds it finds everything. Returns the
    number of slots.
    """
    found = _read_format(client, namespace)
    if found is None:
        _create(client, namespace, wanted or max(2, min(os.cpu_count() or 1, 8)))
        found = _read_format(client, namespace)
    if found is None:
        raise StoreError(f"namespace {namespace} is being removed: open it again in a moment")
    if found["format"] != FORMAT:
        raise StoreError(
            f"namespace {namespace} has format {found['format']}, this version of Belvedere reads"
            f" format {FORMAT}: use the version that wrote it"
        )
    slots = int(found["slots"])
    if wanted not in (None, slots):
        raise StoreError(
            f"namespace {namespace} has {slots} slots, not {wanted}: the number is fixed at"
            " creation; open it without one"
        )
    return slots


def _read_format(client: Client, namespace: str) -> dict[str, Any] | None:
    try:
        found = client.cells(f"{namespace}:{_CATALOG}").newest(_ROW, {_FAMILY: 0})
    except TableGone:
        return None
    formats: list[dict[str, Any]] = [json.loads(cell.value) for cell in found]
    return formats[0] if formats else None


def _create(client: Client, namespace: str, slots: int) -> None:
    client.tables.create_namespace(namespace)
    families = {**catalog.FAMILIES, tables.FAMILY: 1}
    state = (f"{namespace}:{tables.STATE}", OneCell().family, slots, slots)
    with ThreadPoolExecutor(2) as both:
        made = [
            both.submit(client.tables.create, f"{namespace}:{_CATALOG}", families),
            both.submit(client.tables.create_state, *state),
        ]
        for each in made:
            each.result()
    value = json.dumps({"format": FORMAT, "slots": slots}).encode()
    cell = Cell(_ROW, _FAMILY, _QUALIFIER, 1, value)
    client.cells(f"{namespace}:{_CATALOG}").change(_ROW, _FAMILY, _QUALIFIER, None, [cell])


_cache: dict[str, HBaseStore] = {}
_cache_lock = threading.Lock()


def open_cached(url: str) -> HBaseStore:
    """This process's store at a URL, opened when first asked for and then kept: for workers that
    run many tasks.
    """
    with _cache_lock:
        if url not in _cache:
            _cache[url] = HBaseStore.open(url)
        return _cache[url]
