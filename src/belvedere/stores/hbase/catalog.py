"""The catalog: one HBase row, changed by check-and-mutate on a version cell (rule R4).

A catalog key is a qualifier, and the timestamp of its cell is the version of the catalog in which
it was written. A process keeps the catalog as it last saw it; one Get with a time range brings what
was written since. So a delete is a cell too, with a value that says so: a delete marker would not
be seen there. It is removed for good when it is many versions old, and a process that has slept for
longer reads everything.

    m:v       who wrote a version: the id of its transaction, all versions
    m:p       deletes up to this version may have been removed
    c:key     entries: 1 and the value, or 0 for a deleted one
    e:key     the same for `commit/`: large, and only some processes look at them
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from belvedere.errors import StoreError, Unreachable
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.hbase.client import Cell, Cells

T = TypeVar("T")
ROW = b"catalog"
# The versions of `m:v` tell whether a transaction whose answer was lost has been applied, so there
# must be more of them than transactions while somebody waits for an answer.
FAMILIES = {"m": 100_000, "c": 1, "e": 1}
_META, _SHARED, _APART = FAMILIES
_VERSION, _PURGED = b"v", b"p"
_APART_KEYS = "commit/"
_PRESENT, _GONE = b"\1", b"\0"
_KEEP_DELETES = 1_000  # versions
_PURGE_AT, _PURGE_MOST = 100, 1_000  # deletes that are old enough
_TOO_MANY = 5_000  # deletes after which also a process purges that does not need all entries
_PATIENCE = 120.0  # seconds in which the outcome of a transaction must be known


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The catalog at one version; `gone` are deleted entries and the versions that deleted them.

    `has_apart` tells whether it has the entries of the family apart.
    """

    version: int = 0
    id: bytes | None = None
    entries: Mapping[str, bytes] = field(default_factory=dict)
    gone: Mapping[str, int] = field(default_factory=dict)
    has_apart: bool = False

    def after(
        self, version: int, id: bytes | None, written: Mapping[str, tuple[int, bytes | None]]
    ) -> _Snapshot:
        """With entries that were written since, each with its version; None deletes."""
        entries, gone = dict(self.entries), dict(self.gone)
        for key, (at, value) in written.items():
            if value is None:
                entries.pop(key, None)
                gone[key] = at
            else:
                gone.pop(key, None)
                entries[key] = value
        return _Snapshot(version, id, entries, gone, self.has_apart)

    def without(self, purged: int) -> _Snapshot:
        """Deletes up to this version were removed."""
        left = {key: at for key, at in self.gone.items() if at > purged}
        return _Snapshot(self.version, self.id, self.entries, left, self.has_apart)


class _NeedsApart(BaseException):
    """A body asks for entries of the family apart, which were not read. It is run again with them;
    bodies that catch Exception must not catch this.
    """


class _Reading:
    def __init__(self, snapshot: _Snapshot) -> None:
        self._snapshot = snapshot
        self.changes: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        if key in self.changes:
            return self.changes[key]
        self._check(key.startswith(_APART_KEYS))
        return self._snapshot.entries.get(key)

    def scan(self, prefix: str) -> list[tuple[str, bytes]]:
        self._check(prefix.startswith(_APART_KEYS) or _APART_KEYS.startswith(prefix))
        found: dict[str, bytes | None] = {**self._snapshot.entries, **self.changes}
        return sorted(
            (key, value)
            for key, value in found.items()
            if key.startswith(prefix) and value is not None
        )

    def put(self, key: str, value: bytes) -> None:
        raise StoreError("a catalog read cannot write: use transact")

    def delete(self, key: str) -> None:
        raise StoreError("a catalog read cannot write: use transact")

    def _check(self, is_apart: bool) -> None:
        if is_apart and not self._snapshot.has_apart:
            raise _NeedsApart


class _Writing(_Reading):
    def put(self, key: str, value: bytes) -> None:
        if not key:
            raise StoreError("a catalog key has at least one character")
        self.changes[key] = bytes(value)

    def delete(self, key: str) -> None:
        if self.get(key) is not None:
            self.changes[key] = None


class HBaseCatalog:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._snapshot = _Snapshot()

    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Optimistic: `body` runs over the newest catalog that was seen, and again if somebody else
        was faster.
        """
        while True:
            found = self._refresh()
            if len(found.gone) > _TOO_MANY and not found.has_apart:
                self._read_apart()
                continue
            writing = _Writing(found)
            try:
                result = body(writing)
            except _NeedsApart:
                self._read_apart()
                continue
            if not writing.changes or self._commit(found, writing.changes):
                return result

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        return self.read_marked(body)[1]

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[int, T]:
        while True:
            found = self._refresh()
            try:
                return found.version, body(_Reading(found))
            except _NeedsApart:
                self._read_apart()

    def get_one(self, key: str) -> bytes | None:
        return self.read(lambda transaction: transaction.get(key))

    def known(self, key: str) -> bytes | None:
        """An entry as it was last seen, without asking HBase; not of the family apart."""
        return self._snapshot.entries.get(key)

    def mark(self) -> int:
        return self._refresh().version

    def _refresh(self) -> _Snapshot:
        """The catalog as it is now: one Get."""
        known = self._snapshot
        return self._install(self._read_since(known) or self._read_all(known.has_apart))

    def _read_apart(self) -> None:
        self._install(self._read_all(has_apart=True))

    def _install(self, found: _Snapshot) -> _Snapshot:
        """Keep what is newer. A server that is cut off may answer from the past: then what is known
        is newer than what it says.
        """
        known = self._snapshot
        is_more = (found.version, found.has_apart) > (known.version, known.has_apart)
        loses = known.has_apart and not found.has_apart
        if is_more and not loses:
            self._snapshot = found
        return found if found.version >= known.version else known

    def _read_since(self, known: _Snapshot) -> _Snapshot | None:
        """What is known and what was written since; None if deletes since then may be missing."""
        if known.version == 0:
            return None
        found = self._cells.newest(ROW, self._families(known.version + 1, known.has_apart))
        meta, written = _sort(found)
        if _VERSION not in meta:
            raise StoreError(
                "the catalog is gone: was the namespace deleted? Close the store and open it again"
            )
        version, id = meta[_VERSION]
        if version <= known.version:
            return known
        purged = meta[_PURGED][0] if _PURGED in meta else 0
        if purged > known.version:
            return None
        return known.after(version, id, written).without(purged)

    def _read_all(self, has_apart: bool) -> _Snapshot:
        meta, written = _sort(self._cells.newest(ROW, self._families(0, has_apart)))
        version, id = meta.get(_VERSION, (0, None))
        return _Snapshot(has_apart=has_apart).after(version, id, written)

    def _families(self, since: int, has_apart: bool) -> dict[str, int]:
        families = {_META: 0, _SHARED: since}
        return families | {_APART: since} if has_apart else families

    def _commit(self, found: _Snapshot, changes: dict[str, bytes | None]) -> bool:
        """Write the version after `found`; False if somebody else has."""
        version, id = found.version + 1, os.urandom(16)
        purged = _purgeable(found)
        cells = [
            Cell(ROW, _META, _VERSION, version, id),
            *(_entry(key, value, version) for key, value in changes.items()),
            *_purge(found, purged),
        ]
        if not self._apply(found.id, version, id, cells):
            return False
        written = {key: (version, value) for key, value in changes.items()}
        self._install(found.without(purged).after(version, id, written))
        return True

    def _apply(self, old: bytes | None, version: int, id: bytes, cells: list[Cell]) -> bool:
        """Until it is known who wrote the version. Neither an error nor False tells: HBase's client
        repeats a call whose answer was lost, and the repetition meets its own work. Sending the
        same again is safe, because only one call can come after the version before.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                if self._cells.change(ROW, _META, _VERSION, old, cells):
                    return True
                writer = self._cells.value_at(ROW, _META, _VERSION, version)
            except Unreachable as error:
                writer = self._written_by(version, deadline, error)
            if writer is not None:
                return writer == id
            if time.monotonic() > deadline:
                raise Unreachable(
                    f"version {version} of the catalog was not written in {_PATIENCE:g} s: look"
                    " whether HBase's region servers run"
                )

    def _written_by(self, version: int, deadline: float, cause: Unreachable) -> bytes | None:
        while True:
            try:
                return self._cells.value_at(ROW, _META, _VERSION, version)
            except Unreachable:
                if time.monotonic() > deadline:
                    raise Unreachable(
                        f"it is not known whether version {version} of the catalog was written:"
                        " HBase does not answer. Look at the head before anything is repeated"
                    ) from cause


def _family(key: str) -> str:
    return _APART if key.startswith(_APART_KEYS) else _SHARED


def _entry(key: str, value: bytes | None, version: int) -> Cell:
    stored = _GONE if value is None else _PRESENT + value
    return Cell(ROW, _family(key), key.encode(), version, stored)


def _purgeable(found: _Snapshot) -> int:
    """Up to which version deletes can be removed; 0 if that is not worth it. Who does not have all
    entries does not know all deletes.
    """
    if not found.has_apart or len(found.gone) < _PURGE_AT:
        return 0
    old = sorted(at for at in found.gone.values() if at <= found.version - _KEEP_DELETES)
    return old[:_PURGE_MOST][-1] if len(old) >= _PURGE_AT else 0


def _purge(found: _Snapshot, upto: int) -> list[Cell]:
    """Remove deletes at their own timestamps, with what they cover: what was put later stays."""
    if not upto:
        return []
    gone = [(key, at) for key, at in found.gone.items() if at <= upto]
    deletes = [Cell(ROW, _family(key), key.encode(), at, kind="C") for key, at in gone]
    return [Cell(ROW, _META, _PURGED, upto), *deletes]


_Written = dict[str, tuple[int, bytes | None]]


def _sort(cells: list[Cell]) -> tuple[dict[bytes, tuple[int, bytes]], _Written]:
    """Cells of the row: those about versions, and entries."""
    meta: dict[bytes, tuple[int, bytes]] = {}
    written: _Written = {}
    for cell in cells:
        if cell.family == _META:
            meta[cell.qualifier] = cell.timestamp, cell.value
        else:
            value = None if cell.value == _GONE else cell.value[1:]
            written[cell.qualifier.decode()] = cell.timestamp, value
    return meta, written
