"""HBase's side of change capture, as Java's classes do it: the peer, marker rows, scans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from belvedere.errors import StoreError
from belvedere.stores.hbase.jvm import java_class

_PACKAGE = "belvedere.hbase.client"


@contextmanager
def java_errors(what: str) -> Iterator[None]:
    """Errors of Java become ours, and say what was being done."""
    throwable = java_class("java.lang.Throwable")
    try:
        yield
    except throwable as error:
        raise StoreError(f"HBase could not {what}: {error.toString()}") from error


@dataclass(frozen=True, slots=True)
class Family:
    """A column family of a user's table; 0 means no time to live."""

    name: bytes
    time_to_live: int
    least_versions: int
    scope: int
    versions: int


class Capture:
    """The peer of a namespace, and the tables that it captures."""

    def __init__(self, quorum: str, namespace: str) -> None:
        self.quorum, self.namespace = quorum, namespace
        with java_errors("be reached"):
            self._java: Any = java_class(f"{_PACKAGE}.Capture")(quorum, namespace)

    @property
    def peer(self) -> str:
        return str(self._java.peer())

    def install(self, directory: str, settings: Sequence[str] = ()) -> None:
        """Namespace, marker table and peer, as far as they are not there."""
        with java_errors("add the peer that captures changes"):
            self._java.install(directory, list(settings))

    def uninstall(self) -> None:
        with java_errors("remove the peer that captures changes"):
            self._java.uninstall()

    def state(self) -> str:
        """`enabled`, `disabled`, or nothing if there is no peer."""
        with java_errors("list its peers"):
            return str(self._java.state())

    def directory(self) -> str:
        """Where the peer captures to; nothing if there is no peer."""
        with java_errors("list its peers"):
            return str(self._java.directory())

    def enable(self) -> None:
        with java_errors("enable the peer that captures changes"):
            self._java.enable()

    def disable(self) -> None:
        with java_errors("disable the peer that captures changes"):
            self._java.disable()

    def add(self, table: str) -> None:
        with java_errors(f"capture {table}"):
            self._java.add(table)

    def remove(self, table: str) -> None:
        with java_errors(f"end the capture of {table}"):
            self._java.remove(table)

    def tables(self) -> set[str]:
        """The user's tables that are captured."""
        with java_errors("describe the peer that captures changes"):
            return {str(name) for name in self._java.tables()}

    def families(self, table: str) -> tuple[Family, ...] | None:
        """The families of a table; None if there is no such table."""
        with java_errors(f"describe {table}"):
            rows = self._java.families(table)
        if rows is None:
            return None
        texts = [[str(text) for text in row] for row in rows]
        return tuple(Family(name.encode(), *map(int, rest)) for name, *rest in texts)

    def set_scope(self, table: str, families: Sequence[bytes]) -> None:
        with java_errors(f"let replication see {table}"):
            self._java.setScope(table, [name.decode() for name in families])

    def starts(self, table: str) -> list[bytes]:
        """The first rows of a table's regions."""
        with java_errors(f"list the regions of {table}"):
            return sorted(bytes(start) for start in self._java.starts(table))

    def scan(
        self, directory: str, table: str, low: bytes, high: bytes, families: Sequence[bytes]
    ) -> int:
        """Put rows into the log as they are found; how many."""
        names = [name.decode() for name in families]
        with java_errors(f"scan {table}"):
            scan_frames: Any = java_class(f"{_PACKAGE}.ScanFrames")
            return int(scan_frames.write(self.quorum, directory, table, low, high, names))

    def page(self, table: str, after: bytes, rows: int, families: Sequence[bytes]) -> bytes:
        """The first rows behind one as a frame, as they are now; fewer: there are no more."""
        names = [name.decode() for name in families]
        with java_errors(f"scan {table}"):
            scan_frames: Any = java_class(f"{_PACKAGE}.ScanFrames")
            return bytes(scan_frames.page(self.quorum, table, after, rows, names))

    def rows(self, table: str, rows: Sequence[bytes], families: Sequence[bytes]) -> bytes:
        """Some rows as a frame, as they are now, as far as they are there."""
        names = [name.decode() for name in families]
        with java_errors(f"read rows of {table}"):
            scan_frames: Any = java_class(f"{_PACKAGE}.ScanFrames")
            wanted = java_class("byte[][]")(list(rows))
            return bytes(scan_frames.rows(self.quorum, table, wanted, names))

    def dead_servers(self) -> set[str]:
        """Servers that have ended, as long as the master remembers them."""
        with java_errors("list its region servers"):
            return {str(name) for name in self._java.deadServers()}

    def places(self, table: str) -> list[str] | None:
        """For every region of a table its server, or nothing; None if there is no such table."""
        with java_errors(f"list the regions of {table}"):
            found = self._java.places(table)
        return None if found is None else [str(server) for server in found]


class Marks:
    """Marker rows, and which servers there are to mark."""

    def __init__(self, quorum: str, namespace: str) -> None:
        with java_errors("be reached"):
            self._java: Any = java_class(f"{_PACKAGE}.Marks")(quorum, namespace)

    def live_servers(self) -> set[str]:
        with java_errors("list its region servers"):
            return {str(name) for name in self._java.liveServers()}

    def dead_queues(self) -> list[str]:
        """Queues of servers that have ended, which nobody has delivered to their end yet."""
        with java_errors("list the queues of replication"):
            return [str(name) for name in self._java.deadQueues()]

    def place(self, servers: Sequence[str]) -> dict[str, bytes]:
        """A marker row on each server, as far as it lives."""
        with java_errors("place the regions of the marker table"):
            rows = self._java.place(list(servers))
        pairs = zip(servers, rows, strict=True)
        return {server: bytes(row) for server, row in pairs if row is not None}

    def put(self, row: bytes) -> int:
        with java_errors("put a marker row"):
            return int(self._java.put(row))
