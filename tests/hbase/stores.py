"""Stores in HBase for tests: a namespace of its own for each."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

from belvedere.stores.base import BaseTables, TableShape
from belvedere.stores.hbase.local import Cluster
from belvedere.stores.hbase.store import HBaseStore
from belvedere.stores.memory import Rules
from belvedere.stores.memory.base_tables import MemoryBase

_numbers = itertools.count(1)


def namespace() -> str:
    return f"test_{os.getpid()}_{next(_numbers)}"


def open_new(cluster: Cluster, tables: tuple[int, ...] = tuple(range(1, 20))) -> HBaseStore:
    """A new store with two slots, base tables in memory, and these auxiliary tables."""
    store = HBaseStore.open(cluster.url(namespace()), slots=2, grace=0, base=memory_base)
    store.state.create([TableShape(table) for table in tables])
    return store


def memory_base(*_: Any) -> BaseTables:
    return MemoryBase(1, 1, Rules(), lambda what: None, time.time)
