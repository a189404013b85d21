"""The catalog counts exactly, whatever is lost between it and HBase."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from belvedere.stores.base import Catalog, CatalogTransaction
from belvedere.stores.hbase import catalog as catalog_module
from belvedere.stores.hbase.catalog import ROW, HBaseCatalog
from belvedere.stores.hbase.client import Cells
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.store import HBaseStore
from tests.hbase.stores import open_new

pytestmark = pytest.mark.hbase


def change(catalog: Catalog, *deleted: str, **put: bytes) -> None:
    """One transaction; a slash in a key is written as two underscores."""

    def body(transaction: CatalogTransaction) -> None:
        for key in deleted:
            transaction.delete(key)
        for name, value in put.items():
            transaction.put(name.replace("__", "/"), value)

    catalog.transact(body)


class Lossy:
    """The Java side of cells over a network that loses calls, loses answers, and repeats.

    A lost answer is thrown away after HBase has applied the call. A repeated call is sent twice,
    and the second answer counts: that is what HBase's own client does when it gets none.
    """

    def __init__(self, java: Any, draw: random.Random) -> None:
        self._java, self._draw = java, draw
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._java, name)

    def change(self, *arguments: Any) -> Any:
        kind = self._draw.choice(["call", "answer", "repeat", "fine"])
        if kind == "call":
            self._fail()
        answer = self._java.change(*arguments)
        if kind == "answer":
            self._fail()
        return self._java.change(*arguments) if kind == "repeat" else answer

    def valueAt(self, *arguments: Any) -> Any:
        if self._draw.random() < 0.3:
            self._fail()
        return self._java.valueAt(*arguments)

    def _fail(self) -> None:
        self.lost += 1
        raise java_class("java.io.IOException")("lost")


def lossy_catalog(store: HBaseStore, seed: int) -> tuple[HBaseCatalog, Lossy]:
    """Another process's catalog, so to say: it knows nothing yet."""
    cells = store.client.cells(f"{store.address.namespace}:belvedere")
    lossy = Lossy(cells._java, random.Random(seed))
    return HBaseCatalog(Cells(store.client, lossy)), lossy


def increment(transaction: CatalogTransaction) -> None:
    transaction.put("n", b"%d" % (int(transaction.get("n") or b"0") + 1))


@pytest.fixture
def store(cluster: Cluster) -> Iterator[HBaseStore]:
    made = open_new(cluster, ())
    yield made
    made.close()


def test_transactions_count_exactly_over_a_network_that_loses(store: HBaseStore) -> None:
    """From threads with catalogs of their own, and from two other processes."""
    command = [sys.executable, "-m", "tests.hbase.counting", store.url, "10"]
    others = [subprocess.Popen([*command, str(seed)]) for seed in (11, 12)]
    made = [lossy_catalog(store, seed) for seed in range(4)]

    def count(catalog: HBaseCatalog) -> None:
        for _ in range(10):
            catalog.transact(increment)

    threads = [threading.Thread(target=count, args=(catalog,)) for catalog, _ in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    assert store.catalog.get_one("n") == b"60"
    assert all(lossy.lost > 3 for _, lossy in made)
    assert {catalog.get_one("n") for catalog, _ in made} == {b"60"}


def test_what_was_written_is_what_the_writer_knows_without_reading(store: HBaseStore) -> None:
    catalog = HBaseCatalog(store.client.cells(f"{store.address.namespace}:belvedere"))
    change(catalog, a=b"1")
    change(catalog, "a", b=b"2")
    assert (catalog.known("a"), catalog.known("b")) == (None, b"2")
    assert store.catalog.read(lambda t: t.scan("")) == [("b", b"2")]


def test_manifests_are_read_by_those_who_ask_for_them(store: HBaseStore) -> None:
    other = HBaseCatalog(store.client.cells(f"{store.address.namespace}:belvedere"))
    change(store.catalog, commit__1=b"c1", a=b"1")
    assert other.get_one("a") == b"1"
    assert not other._snapshot.has_apart
    assert other.read(lambda t: t.scan("commit/")) == [("commit/1", b"c1")]
    change(store.catalog, "commit/1", commit__2=b"c2")
    assert other.read(lambda t: t.scan("c")) == [("commit/2", b"c2")]
    assert other.read(lambda t: (t.get("commit/1"), t.get("commit/2"))) == (None, b"c2")


def test_old_deletes_are_removed_and_a_process_that_slept_sees_them_all_the_same(
    store: HBaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_module, "_KEEP_DELETES", 5)
    monkeypatch.setattr(catalog_module, "_PURGE_AT", 3)
    cells = store.client.cells(f"{store.address.namespace}:belvedere")
    change(store.catalog, **{f"pin__{i}": b"x" for i in range(10)})
    asleep, awake = HBaseCatalog(cells), HBaseCatalog(cells)
    assert len(asleep.read(lambda t: t.scan("pin/"))) == 10
    store.catalog.read(lambda t: t.scan("commit/"))  # now it has all entries, and may remove
    for number in range(9):
        change(store.catalog, f"pin/{number}")
        awake.mark()
    change(store.catalog, pin__3=b"again")
    for number in range(8):
        change(store.catalog, n=b"%d" % number)
    stored = {cell.qualifier for cell in cells.newest(ROW, {"c": 0})}
    assert b"pin/0" not in stored
    expected = [("pin/3", b"again"), ("pin/9", b"x")]
    for catalog in (asleep, awake, HBaseCatalog(cells), store.catalog):
        assert catalog.read(lambda t: t.scan("pin/")) == expected
