"""The index that makes one stream of many files: which bytes of which file have which positions.

One row of HBase, changed by check-and-mutate. A process has it in memory and reads what is newer.
Cells, by the first byte of their name:

    e position    an entry: file, bytes, operations
    f file        how far it is indexed, and whether it has ended
    m queue, row  the last marker that a server's log has brought
    t, n          the position of the first entry, and of the next one
    T table       a mapping, and the position from which it counts; empty: forgotten
    b table       the position of the last bulk load, and how many there were

Entries and files are deleted; who has them in memory learns of the first from `t`, and has no harm
from the second, as files never come back.
"""

from __future__ import annotations

import struct
import uuid
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from belvedere.stores.base.base_tables import TableId
from belvedere.stores.base.mapping import Mapping
from belvedere.stores.hbase.capture import java_errors
from belvedere.stores.hbase.jvm import java_class
from belvedere.types import Position

_ENTRY = struct.Struct(">QQI")
_FILE = struct.Struct(">Q?")
_NUMBER = struct.Struct(">Q")
_LOADS = struct.Struct(">QQ")
_TABLE = struct.Struct(">I")
_SIZE = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Entry:
    """A stretch of a file that no epoch divides."""

    position: Position
    file: str
    begin: int
    stop: int
    operations: int

    @property
    def end(self) -> Position:
        return self.position + self.operations

    @property
    def size(self) -> int:
        return self.stop - self.begin


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a file is indexed; `ended`: nothing more will be written to it."""

    indexed: int = 0
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Adopted:
    """A table's mapping; operations before `since` are not given."""

    mapping: Mapping
    since: Position


@dataclass(frozen=True, slots=True)
class Loads:
    """Bulk loads into the regions of a table: where the last one was seen, and how many."""

    position: Position = 0
    count: int = 0


Mark = tuple[str, bytes]  # the server whose log it was, and the marker row


@dataclass
class State:
    """The row as this process has read it."""

    version: int = 0
    id: bytes = b""
    entries: list[Entry] = field(default_factory=list)
    files: dict[str, Progress] = field(default_factory=dict)
    marks: dict[Mark, int] = field(default_factory=dict)
    tables: dict[TableId, Adopted] = field(default_factory=dict)
    loads: dict[str, Loads] = field(default_factory=dict)
    trimmed: Position = 0
    end: Position = 0

    def first(self, position: Position) -> int:
        """The number of the first entry at or behind a position."""
        return bisect_left(self.entries, position, key=lambda entry: entry.position)

    def take(self, name: bytes, value: bytes) -> None:
        """One cell that is newer than what is known."""
        kind, rest = name[:1], name[1:]
        if kind == b"e":
            self.entries.append(_entry(rest, value))
        elif kind == b"f":
            self.files[rest.decode()] = Progress(*_FILE.unpack(value))
        elif kind == b"m":
            queue, row = rest.split(b"\0", 1)
            self.marks[queue.decode(), row] = _NUMBER.unpack(value)[0]
        elif kind == b"T":
            self._take_table(_TABLE.unpack(rest)[0], value)
        elif kind == b"b":
            self.loads[rest.decode()] = Loads(*_LOADS.unpack(value.ljust(_LOADS.size, b"\0")))
        elif kind == b"t":
            self.trimmed = _NUMBER.unpack(value)[0]
        elif kind == b"n":
            self.end = _NUMBER.unpack(value)[0]

    def _take_table(self, table: TableId, value: bytes) -> None:
        if value:
            mapping = Mapping.from_bytes(value[_NUMBER.size :])
            self.tables[table] = Adopted(mapping, _NUMBER.unpack_from(value)[0])
        else:
            self.tables.pop(table, None)

    def drop_trimmed(self) -> None:
        del self.entries[: self.first(self.trimmed)]


class Changes:
    """Cells of the next version: a value, or None to remove a cell."""

    def __init__(self) -> None:
        self.cells: dict[bytes, bytes | None] = {}

    def __bool__(self) -> bool:
        return bool(self.cells)

    def add(self, entry: Entry) -> None:
        value = _ENTRY.pack(entry.begin, entry.stop, entry.operations) + entry.file.encode()
        self.cells[b"e" + _NUMBER.pack(entry.position)] = value

    def remove(self, entry: Entry) -> None:
        self.cells[b"e" + _NUMBER.pack(entry.position)] = None

    def file(self, name: str, progress: Progress | None) -> None:
        value = None if progress is None else _FILE.pack(progress.indexed, progress.ended)
        self.cells[b"f" + name.encode()] = value

    def mark(self, mark: Mark, number: int) -> None:
        queue, row = mark
        self.cells[b"m" + queue.encode() + b"\0" + row] = _NUMBER.pack(number)

    def forget_mark(self, mark: Mark) -> None:
        queue, row = mark
        self.cells[b"m" + queue.encode() + b"\0" + row] = None

    def end(self, position: Position) -> None:
        self.cells[b"n"] = _NUMBER.pack(position)

    def trimmed(self, position: Position) -> None:
        self.cells[b"t"] = _NUMBER.pack(position)

    def loads(self, table: str, loads: Loads) -> None:
        self.cells[b"b" + table.encode()] = _LOADS.pack(loads.position, loads.count)

    def table(self, table: TableId, adopted: Adopted | None) -> None:
        """A table that is forgotten leaves an empty cell: others must see it."""
        value = b""
        if adopted is not None:
            value = _NUMBER.pack(adopted.since) + adopted.mapping.to_bytes()
        self.cells[b"T" + _TABLE.pack(table)] = value

    def to_bytes(self) -> bytes:
        parts = []
        for name, value in self.cells.items():
            parts += [_SIZE.pack(len(name)), name]
            parts += [_SIZE.pack(-1)] if value is None else [_SIZE.pack(len(value)), value]
        return b"".join(parts)


class LogIndex:
    """The row in HBase, and this process's copy of it. One thread at a time."""

    def __init__(self, quorum: str, namespace: str) -> None:
        self.state = State()
        with java_errors("open the index of the log"):
            row: Any = java_class("belvedere.hbase.client.LogRow")
            self._row = row(quorum, f"{namespace}:log")

    def create(self) -> None:
        with java_errors("create the table of the log's index"):
            self._row.create()

    def refresh(self) -> State:
        with java_errors("read the index of the log"):
            data = bytes(self._row.read(self.state.version))
        (version,) = _NUMBER.unpack_from(data)
        if version == 0:
            return self.state
        texts = _texts(data[_NUMBER.size :])
        self.state.version, self.state.id = version, texts[0]
        for name, value in zip(texts[1::2], texts[2::2], strict=True):
            self.state.take(name, value)
        self.state.drop_trimmed()
        return self.state

    def change(self, changes: Changes) -> bool:
        """Make the next version; False if another process was first: refresh, and plan anew."""
        state, new_id = self.state, uuid.uuid4().bytes
        with java_errors("change the index of the log"):
            done = self._row.change(state.version, state.id, new_id, changes.to_bytes())
        self.refresh()
        return bool(done)


def _entry(name: bytes, value: bytes) -> Entry:
    begin, stop, operations = _ENTRY.unpack_from(value)
    file = value[_ENTRY.size :].decode()
    return Entry(_NUMBER.unpack(name)[0], file, begin, stop, operations)


def _texts(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        found.append(data[at - size : at])
    return found
