"""Base tables that users have in HBase: their captured log, as one stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

from belvedere.errors import Damaged, Dropped, SchemaError, Stale, StoreError
from belvedere.libraries import pa
from belvedere.stores.base import (
    AnyOperations,
    BaseSnapshot,
    Expected,
    LogBlock,
    Operations,
    RowRange,
    TableId,
    in_arrays,
)
from belvedere.stores.base.mapping import Mapping
from belvedere.stores.hbase.barrier import Barrier
from belvedere.stores.hbase.blocks import blocks_of
from belvedere.stores.hbase.capture import Capture, Family, Marks
from belvedere.stores.hbase.client import Client
from belvedere.stores.hbase.frames import frames_in
from belvedere.stores.hbase.install import install
from belvedere.stores.hbase.log_index import (
    Adopted,
    Changes,
    Entry,
    Loads,
    LogIndex,
    Progress,
    State,
)
from belvedere.stores.hbase.rows import RowsNow, UserRows
from belvedere.stores.hbase.segments import Plan, SegmentFiles, look
from belvedere.types import Position, Vector

_STREAM = "log"
_BARRIER_SECONDS = 120.0


class HBaseBase:
    """The log of adopted tables. Their rows are the users'; nothing here changes them."""

    def __init__(
        self, quorum: str, namespace: str, directory: str, client: Client | None = None
    ) -> None:
        """Without a client there is the log alone, and no rows."""
        self._client, self._quorum, self._namespace = client, quorum, namespace
        self._directory = directory
        self._user_rows: dict[TableId, UserRows] = {}
        self._lock = threading.RLock()  # of the index

    @cached_property
    def _index(self) -> LogIndex:
        index = LogIndex(self._quorum, self._namespace)
        index.create()
        return index

    @cached_property
    def _files(self) -> SegmentFiles:
        """Where changes are captured: as the URL says, else as the peer does."""
        if self._directory:
            return SegmentFiles.of(self._directory, self._namespace)
        directory = self.capture.directory()
        if not directory:
            raise StoreError(
                "it is not known where changes are captured: add ?capture=DIRECTORY to the URL"
            )
        return SegmentFiles(directory)

    @cached_property
    def capture(self) -> Capture:
        return Capture(self._quorum, self._namespace)

    @cached_property
    def _marks(self) -> Marks:
        return Marks(self._quorum, self._namespace)

    def streams(self) -> tuple[str, ...]:
        return (_STREAM,)

    # ------------------------------------------------------------ the log

    def end(self) -> Vector:
        return Vector({_STREAM: self.discover().end})

    def discover(self) -> State:
        """Index all frames that are complete and whose predecessors are there; any process may."""
        with self._lock:
            while True:
                state = self._index.refresh()
                changes = Plan(state, look(self._files, state)).run()
                if not changes:
                    return state
                self._index.change(changes)

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        _check_stream(stream)
        with self._lock:
            state = self._index.state
            if state.end < low + rows:
                state = self.discover()
            entries = _entries_from(state, low)
        return _cut(entries, low, rows, size)

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        _check_stream(stream)
        with self._lock:
            state = self._index.state
            if state.end < high or low < state.trimmed:
                state = self._index.refresh()
            entries = [entry for entry in _entries_from(state, low) if entry.position < high]
            tables = dict(state.tables)
        for entry in entries:
            _check_trim(self._index.state, entry.position)
            data = memoryview(self._bytes(entry))
            yield from blocks_of(entry, list(frames_in(data, entry.file)), tables)

    def _bytes(self, entry: Entry) -> bytes:
        try:
            data = self._files.read(entry.file, entry.begin, entry.size)
        except FileNotFoundError:
            with self._lock:
                _check_trim(self._index.refresh(), entry.position)
            raise Damaged(f"{entry.file} is gone, which has changes that nobody has read") from None
        if len(data) != entry.size:
            raise Damaged(f"{entry.file} is shorter than it was")
        return data

    def trim(self, stream: str, position: Position) -> None:
        _check_stream(stream)
        with self._lock:
            while self._trim_entries(self._index.refresh(), position):
                pass
            self._trim_files(self._index.state)

    def _trim_entries(self, state: State, position: Position) -> bool:
        """Whether another process was first, so that it must be tried again."""
        gone = [entry for entry in state.entries if entry.end <= position]
        if not gone:
            return False
        changes = Changes()
        for entry in gone:
            changes.remove(entry)
        changes.trimmed(gone[-1].end)
        return not self._index.change(changes)

    def _trim_files(self, state: State) -> None:
        """Remove files without entries that nobody will write to any more.

        The index forgets a file after it is gone, else it would be indexed from its beginning.
        """
        view = look(self._files, state)
        needed = {entry.file for entry in state.entries}
        live = self._marks.live_servers()
        changes = Changes()
        for name in view.lengths:
            is_read = name not in needed and not view.frames.get(name)
            has_ended = state.files.get(name, Progress()).ended or _writer(name) not in live
            if is_read and has_ended:
                self._files.delete(name)
        for name in set(state.files) - set(self._files.lengths()):
            changes.file(name, None)
            del state.files[name]
        for mark in [mark for mark in state.marks if mark[0] not in live]:
            changes.forget_mark(mark)
            del state.marks[mark]
        while changes and not self._index.change(changes):
            pass

    def room(self) -> tuple[int, int]:
        return self._files.room()

    def barrier(self, seconds: float = _BARRIER_SECONDS) -> Vector:
        """Positions that cover every operation that was acknowledged before the call."""
        deadline = time.monotonic() + seconds
        Barrier(self._marks, self.discover, self._check_peer, deadline).pass_through()
        return self.end()

    def _check_peer(self) -> None:
        state = self.capture.state()
        if state != "enabled":
            what = "is disabled" if state else "is not there"
            raise StoreError(
                f"changes are not captured, because the peer {self.capture.peer} {what}: run"
                " belvedere hbase install"
            )
        place = SegmentFiles(self.capture.directory()).directory
        if place != self._files.directory:
            raise StoreError(
                f"the peer {self.capture.peer} captures into {place}, but the URL says"
                f" {self._files.directory}: open the database with that directory, or without it"
            )

    def bulk_loads(self) -> dict[TableId, int]:
        """How often adopted tables got rows that no log shows; only what region servers tell."""
        state = self.discover()
        found = {}
        for table, adopted in state.tables.items():
            loads = state.loads.get(adopted.mapping.source, Loads())
            if loads.count and loads.position >= adopted.since:
                found[table] = loads.count
        return found

    def live_servers(self) -> set[str]:
        return self._marks.live_servers()

    # ------------------------------------------------------------ adoption

    def adopt(self, table: TableId, mapping: Mapping, set_scope: bool = True) -> None:
        """Capture a user's table from now on; what it has already is for `scan_range`.

        Operations count from here on: what was captured before is in the table by now.
        """
        if not self.capture.state():
            install(self._quorum, self._namespace, self._directory)
        self._check_peer()
        since = self.discover().end
        families = _check_families(mapping, self.capture.families(mapping.source))
        local = [family.name for family in families if family.scope == 0]
        if local and not set_scope:
            raise SchemaError(
                f"replication does not see the families {_names(local)} of {mapping.source}: set"
                " their REPLICATION_SCOPE to 1"
            )
        # The peer first: regions are opened anew with the scope, and then their order is kept.
        self.capture.add(mapping.source)
        if local:
            self.capture.set_scope(mapping.source, local)
        self._write_table(table, Adopted(mapping, since))

    def forget(self, table: TableId) -> None:
        """End the capture, if no other table is mapped to the same one. Idempotent."""
        self._user_rows.pop(table, None)
        with self._lock:
            known = self._index.refresh().tables.get(table)
            if known is None:
                return
            self._write_table(table, None)
            sources = {adopted.mapping.source for adopted in self._index.state.tables.values()}
        if known.mapping.source not in sources and self.capture.state():
            self.capture.remove(known.mapping.source)

    def mappings(self) -> dict[TableId, Mapping]:
        """All tables that are adopted, by whichever process."""
        with self._lock:
            tables = self._index.refresh().tables
            return {table: adopted.mapping for table, adopted in tables.items()}

    def _write_table(self, table: TableId, adopted: Adopted | None) -> None:
        changes = Changes()
        changes.table(table, adopted)
        with self._lock:
            self._index.refresh()
            while not self._index.change(changes):
                pass

    def start_scan(self, table: TableId) -> list[RowRange]:
        """Ranges of rows that can be scanned at once, in any order, each more than once."""
        starts = self.capture.starts(self.mapping(table).source)
        return list(zip(starts, [*starts[1:], b""], strict=True))

    def scan_range(self, table: TableId, low: bytes, high: bytes) -> int:
        """Put the rows of a range into the log as they are now; how many there were."""
        mapping = self.mapping(table)
        place = self._files.url
        return self.capture.scan(place, mapping.source, low, high, mapping.families)

    def mapping(self, table: TableId) -> Mapping:
        with self._lock:
            state = self._index.state
            if table not in state.tables:
                state = self._index.refresh()
            if table not in state.tables:
                raise Dropped(table)
            return state.tables[table].mapping

    # ------------------------------------------------------------ rows, which are the users'

    def drop(self, table: TableId) -> None:
        """Forget the mapping. The user's table stays as it is."""
        self.forget(table)

    def reclaim(self, seconds: float) -> bool:
        return False

    def count(self, table: TableId) -> int | None:
        return None

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        """Ordinary puts and deletes, row by row; their positions are known when they arrive."""
        if unless_after is not None:
            raise StoreError("HBase's tables have no conditional writes: put and delete rows")
        self.rows_of(table).write(keys, values)
        return Vector()

    def write_all(
        self,
        operations: Sequence[AnyOperations],
        unless_after: Vector | None = None,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        if expected:
            raise StoreError("HBase has no transactions: what was read cannot be compared")
        if len(operations) > 1:
            raise StoreError("HBase has no transactions over tables: write each by itself")
        for part in map(in_arrays, operations):
            self.write(part.table, part.keys, part.values, part.before_images, unless_after)
        return Vector()

    def put_one(
        self,
        table: TableId,
        key: bytes,
        value: bytes | None,
        before_images: bool,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        keys, values = pa.array([key], pa.binary()), pa.array([value], pa.binary())
        return self.write_all([Operations(table, keys, values, before_images)], expected=expected)

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def snapshot(self) -> AbstractContextManager[BaseSnapshot]:
        return nullcontext(RowsNow(self.rows_of))

    def rows_of(self, table: TableId) -> UserRows:
        if table not in self._user_rows:
            if self._client is None:
                raise StoreError("this log was opened without a client for rows")
            self._user_rows[table] = UserRows(self._client, self.mapping(table))
        return self._user_rows[table]


def _check_stream(stream: str) -> None:
    if stream != _STREAM:
        raise StoreError(f"there is no stream {stream!r}: the stream is {_STREAM}")


def _check_trim(state: State, position: Position) -> None:
    if position < state.trimmed:
        raise Stale(
            f"the log was trimmed to {state.trimmed}: position {position} cannot be read any more"
        )


def _entries_from(state: State, low: Position) -> list[Entry]:
    """Entries from a boundary on: half an entry cannot be read."""
    _check_trim(state, low)
    first = state.first(low)
    if first > 0 and state.entries[first - 1].end > low:
        raise StoreError(f"position {low} of the log is inside a transaction: take one from cut()")
    return state.entries[first:]


def _cut(entries: Sequence[Entry], low: Position, rows: int, size: int | None) -> Position:
    position, used = low, 0
    for entry in entries:
        used += entry.size
        fits = entry.end <= low + rows and (size is None or used <= size)
        if position > low and not fits:
            break
        position = entry.end
    return position


def _writer(file: str) -> str:
    """The server that writes a file, which its name begins with."""
    return file.rsplit("_", 1)[0]


def _check_families(mapping: Mapping, found: Sequence[Family] | None) -> list[Family]:
    """The families that are mapped; refuses those whose cells vanish without a log entry."""
    if found is None:
        raise SchemaError(f"HBase has no table {mapping.source}: create it there first")
    by_name = {family.name: family for family in found}
    missing = [name for name in mapping.families if name not in by_name]
    if missing:
        raise SchemaError(
            f"{mapping.source} has no families {_names(missing)}: it has {_names(by_name)}"
        )
    families = [by_name[name] for name in mapping.families]
    for family in families:
        if family.time_to_live or family.least_versions:
            raise SchemaError(
                f"cells of the family {_names([family.name])} of {mapping.source} vanish without a"
                " change that could be captured: set its TTL to FOREVER and MIN_VERSIONS to 0"
            )
    return families


def _names(names: Sequence[bytes] | dict[bytes, Family]) -> str:
    return ", ".join(name.decode(errors="backslashreplace") for name in names)
