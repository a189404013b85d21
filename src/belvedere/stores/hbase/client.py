"""The HBase client in Java, for Python: batches of Arrow arrays in and out, errors with advice.

Java's classes are in `java/client`. A call crosses once per batch, and lets other threads of Python
run meanwhile.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from belvedere.errors import StoreError
from belvedere.libraries import pa
from belvedere.stores.hbase import columns
from belvedere.stores.hbase.faults import translate
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.url import Address

_REACH_SECONDS = 3.0
# A region server that dies is noticed after a while, and its regions are opened elsewhere: calls
# must last longer than that. A wrong address is found out before, with little patience.
_SETTINGS = {
    "hbase.client.operation.timeout": "120000",
    "hbase.client.meta.operation.timeout": "60000",
    "hbase.rpc.timeout": "30000",
    "hbase.client.pause": "50",
    "hbase.client.retries.number": "20",
    "zookeeper.recovery.retry": "2",
    "zookeeper.recovery.retry.intervalmill": "300",
    "zookeeper.session.timeout": "6000",
}

_BRIEF = {
    **_SETTINGS,
    "hbase.client.operation.timeout": "3000",
    "hbase.client.meta.operation.timeout": "3000",
    "hbase.rpc.timeout": "3000",
    "hbase.client.retries.number": "2",
    "zookeeper.registry.async.get.timeout": "3000",
}


class Cell(NamedTuple):
    """A cell as it is written and read; `kind` is P for a put, C for the deletion of a column up to
    the timestamp, F for that of a family.
    """

    row: bytes
    family: str
    qualifier: bytes
    timestamp: int
    value: bytes = b""
    kind: str = "P"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a scan; `last` is the key after which the next one begins, None at the end."""

    columns: list[pa.BinaryArray]
    last: bytes | None
    prefix: int
    counted: int


class Client:
    """A connection to a cluster, of the process that opened it."""

    def __init__(self, address: Address) -> None:
        _reach(address)
        self.servers = address.servers
        self._process = os.getpid()
        java = java_class("belvedere.hbase.client.Client")
        self.call(java.find, _settings(address, _BRIEF))
        self._java = self.call(java, _settings(address, _SETTINGS))
        self.tables = Tables(self)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call Java; what it throws is raised as a StoreError that says what to do."""
        import jpype

        if os.getpid() != self._process:
            raise StoreError(
                "this process was forked from one that uses HBase, where that cannot go on: open"
                " the database after the fork, or start processes with the method 'spawn'"
            )
        try:
            return function(*arguments)
        except jpype.JException as error:
            raise translate(error, self.servers) from error

    def cells(self, table: str) -> Cells:
        return Cells(self, self._java.cells(table))

    def records(self, table: str, prefix: bytes, family: str, names: Sequence[str]) -> Records:
        """The rows of an HBase table that begin with a slot and `prefix`; the first of the names is
        the stamp's.
        """
        java = self._java.records(table, _bytes(prefix), family, list(names))
        return Records(self, java, len(names))

    def rows(self, table: str, places: Sequence[tuple[bytes, bytes]]) -> Rows:
        """Some columns, by family and qualifier, of a table that is the user's."""
        pair = [pa.array([place[i] for place in places], pa.binary()) for i in (0, 1)]
        return Rows(self, self._java.rows(table, _bytes(columns.pack(pair))))

    def commit(self, slot: int, epoch: int) -> Commit:
        return Commit(self, self._java.commit(slot, epoch))

    def close(self) -> None:
        self.call(self._java.close)


class Tables:
    """Making and removing tables; all of it can be repeated."""

    def __init__(self, client: Client) -> None:
        self._client, self._java = client, client._java.tables()

    def has_namespace(self, namespace: str) -> bool:
        return bool(self._client.call(self._java.hasNamespace, namespace))

    def create_namespace(self, namespace: str) -> None:
        self._client.call(self._java.createNamespace, namespace)

    def delete_namespace(self, namespace: str) -> None:
        self._client.call(self._java.deleteNamespace, namespace)

    def names(self, namespace: str) -> list[str]:
        return [str(name) for name in self._client.call(self._java.list, namespace)]

    def region_servers(self) -> int:
        return int(self._client.call(self._java.regionServers))

    def exists(self, table: str) -> bool:
        return bool(self._client.call(self._java.exists, table))

    def create(self, table: str, versions: dict[str, int]) -> None:
        """A table with these families and the versions that each keeps."""
        self._client.call(self._java.create, table, list(versions), list(versions.values()))

    def create_state(self, table: str, family: str, slots: int, regions: int) -> None:
        self._client.call(self._java.createState, table, family, slots, regions)

    def delete(self, table: str) -> None:
        self._client.call(self._java.delete, table)

    def compact(self, table: str, seconds: int = 60) -> None:
        """Flush and compact to one file per region, and wait for it."""
        self._client.call(self._java.compact, table, seconds)


class Cells:
    """Single cells of a table, with their timestamps."""

    def __init__(self, client: Client, java: Any) -> None:
        self._client, self._java = client, java

    def newest(self, row: bytes, since: dict[str, int]) -> list[Cell]:
        """The newest cells of some families, each from a timestamp on, in one snapshot."""
        longs = java_class("long[]")(list(since.values()))
        return self._found(self._java.newest, _bytes(row), list(since), longs)

    def versions(self, row: bytes, family: str, qualifier: bytes) -> list[Cell]:
        """All versions of a cell, the newest first."""
        return self._found(self._java.versions, _bytes(row), family, _bytes(qualifier))

    def value_at(self, row: bytes, family: str, qualifier: bytes, timestamp: int) -> bytes | None:
        function = self._java.valueAt
        found = self._client.call(function, _bytes(row), family, _bytes(qualifier), timestamp)
        return None if found is None else bytes(found)

    def change(
        self, row: bytes, family: str, qualifier: bytes, expected: bytes | None, cells: list[Cell]
    ) -> bool:
        """Apply cells of a row if one cell has this value, or is absent for None. False does not
        say that they were not applied: look what is there.
        """
        old = None if expected is None else _bytes(expected)
        function, packed = self._java.change, _bytes(_pack_cells(cells))
        return bool(
            self._client.call(function, _bytes(row), family, _bytes(qualifier), old, packed)
        )

    def apply(self, cells: list[Cell]) -> None:
        """Apply cells, those of one row as one; they stand side by side."""
        if cells:
            self._client.call(self._java.apply, _bytes(_pack_cells(cells)))

    def _found(self, function: Callable[..., Any], *arguments: Any) -> list[Cell]:
        packed = columns.unpack(bytes(self._client.call(function, *arguments)))
        row, family, qualifier, timestamp, kind, value = packed
        times = columns.numbers(timestamp).tolist()
        lists = (each.to_pylist() for each in (row, family, qualifier, value, kind))
        return [
            Cell(r, f.decode(), q, t, v, k.decode())
            for t, r, f, q, v, k in zip(times, *lists, strict=True)
        ]


class Records:
    """The records of a state table: see `Records.java`."""

    def __init__(self, client: Client, java: Any, width: int) -> None:
        self._client, self.java, self.width = client, java, width

    def get(self, slot: int, keys: pa.BinaryArray, until: int) -> list[pa.BinaryArray]:
        packed = _bytes(columns.pack([keys]))
        return columns.unpack(bytes(self._client.call(self.java.get, slot, packed, until)))

    def scan(
        self,
        slot: int,
        low: bytes,
        high: bytes | None,
        until: int,
        rows: int,
        reverse: bool = False,
        after: bool = False,
    ) -> Page:
        end = None if high is None else _bytes(high)
        arguments = (slot, _bytes(low), after, end, until, reverse, rows)
        return _page(self._client.call(self.java.scan, *arguments))

    def prefixes(
        self, slot: int, prefixes: Any, begin: Page | None, limit: int, rows: int, until: int
    ) -> Page:
        """Records of packed prefixes, from where the page before ended."""
        first, last, counted = (0, None, 0)
        if begin is not None and begin.last is not None:
            first, last, counted = begin.prefix, _bytes(begin.last), begin.counted
        arguments = (slot, prefixes, first, last, counted, limit, rows, until)
        return _page(self._client.call(self.java.prefixes, *arguments))

    def sweep(self, slot: int, last: bytes | None, keep: int, rows: int) -> Page:
        start = None if last is None else _bytes(last)
        return _page(self._client.call(self.java.sweep, slot, start, keep, rows))

    def erase(self, slot: int, last: bytes | None, rows: int) -> Page:
        start = None if last is None else _bytes(last)
        return _page(self._client.call(self.java.erase, slot, start, rows))

    def floor_row(self, slot: int) -> bytes:
        return bytes(self.java.floorRowOf(slot))


class Rows:
    """Rows of a user's table: see `Rows.java`."""

    def __init__(self, client: Client, java: Any) -> None:
        self._client, self._java = client, java

    def get(self, rows: pa.BinaryArray) -> list[pa.BinaryArray]:
        """The newest cells, a column for each place."""
        packed = _bytes(columns.pack([rows]))
        return columns.unpack(memoryview(self._client.call(self._java.get, packed)))

    def scan(self, low: bytes, after: bool, high: bytes | None, rows: int) -> Page:
        """Keys, and a column for each place."""
        end = None if high is None else _bytes(high)
        return _page(self._client.call(self._java.scan, _bytes(low), after, end, rows))

    def write(self, packed: bytes) -> None:
        self._client.call(self._java.write, _bytes(packed))


class Commit:
    """Writes of one slot at one epoch, refused by regions whose floor has reached the epoch."""

    def __init__(self, client: Client, java: Any) -> None:
        self._client, self._java = client, java

    def add(self, records: Records, packed: bytes, count: bytes) -> None:
        """Begin to write: keys, stamps without their flag (NULL deletes), cells."""
        self._client.call(self._java.add, records.java, _bytes(packed), _bytes(count))

    def finish(self) -> bool:
        """Wait for all; False if something was refused."""
        return bool(self._client.call(self._java.finish))


def _settings(address: Address, patience: dict[str, str]) -> list[str]:
    settings = {
        "hbase.zookeeper.quorum": address.servers,
        "hbase.zookeeper.property.clientPort": str(address.quorum[0][1]),
        "zookeeper.znode.parent": address.znode,
        **patience,
    }
    return [text for setting in settings.items() for text in setting]


def packed_keys(keys: pa.BinaryArray) -> Any:
    """Keys as Java takes them, for several calls."""
    return _bytes(columns.pack([keys]))


def _page(java: Any) -> Page:
    last = None if java.last is None else bytes(java.last)
    found = [] if java.columns is None else columns.unpack(bytes(java.columns))
    return Page(found, last, int(java.prefix), int(java.counted))


def _pack_cells(cells: list[Cell]) -> bytes:
    lists: tuple[list[bytes], ...] = (
        [cell.row for cell in cells],
        [cell.family.encode() for cell in cells],
        [cell.qualifier for cell in cells],
        [cell.timestamp.to_bytes(8, "little") for cell in cells],
        [cell.kind.encode() for cell in cells],
        [cell.value for cell in cells],
    )
    return columns.pack([pa.array(values, pa.binary()) for values in lists])


def _bytes(value: bytes) -> Any:
    return java_class("byte[]")(value)


def _reach(address: Address) -> None:
    """Whether any of ZooKeeper's servers is there: Java would try for minutes."""
    reasons = []
    for host, port in address.quorum:
        try:
            socket.create_connection((host, port), _REACH_SECONDS).close()
            return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise StoreError(
        f"ZooKeeper cannot be reached ({'; '.join(reasons)}): is HBase started, and is this the"
        " address of its ZooKeeper?"
    )
