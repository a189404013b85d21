"""What is damaged in the directory of a database: read by the embedded store, here with names, what
it means, and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from belvedere.catalog import layout
from belvedere.catalog.definitions import DROPPED, TableDefinition, ViewDefinition
from belvedere.catalog.layout import Entries, Entry
from belvedere.encoding.one_key import decoder
from belvedere.errors import BelvedereError, Damaged, StoreError
from belvedere.graph import error_table, state_tables
from belvedere.stores.base import CatalogTransaction, TableId
from belvedere.stores.embedded.inspection import Part, StoreInspection
from belvedere.stores.embedded.inspection import inspect as inspect_store
from belvedere.stores.embedded.run_inspection import Damage
from belvedere.stores.registry import embedded_path

RESTORE = "restore the whole directory from one backup"
SALVAGE = "belvedere salvage takes it out, and has the views built anew"
_LARGEST_KEY = 60  # characters of a key that are shown


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is damaged."""

    part: str
    file: str
    what: str
    concerns: str  # a table or a view, in words; "" if it is none, or not known
    views: tuple[str, ...]  # that have to be built anew, if that is what helps
    keys: str  # which of them, in words; "" if it is not known
    remedy: str


@dataclass(frozen=True, slots=True)
class Inspection:
    path: str
    parts: tuple[Part, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def rebuildable(self) -> tuple[str, ...]:
        """Views that can be built anew, and are damaged."""
        return tuple(sorted({view for each in self.findings for view in each.views}))

    def to_json(self) -> dict[str, Any]:
        listed = []
        for part in self.parts:
            known = asdict(part)
            del known["damages"]  # keys are bytes; findings tell them in words
            listed.append(known)
        findings = [asdict(each) for each in self.findings]
        return {"path": self.path, "ok": self.ok, "parts": listed, "damaged": findings}


def inspect(url: str | os.PathLike[str]) -> Inspection:
    """Read everything in the directory of a database and say what is damaged.

    It need not be possible to open it; others may have it open.
    """
    path = embedded_path(os.fspath(url))
    if path is None:
        raise StoreError(f"{url} keeps no files of ours: there is nothing to look at")
    found = inspect_store(path)
    names = Names.of(found.catalog)
    can_be_opened = all(part.can_be_opened for part in found.parts)
    refused = list(_not_opened(found)) if can_be_opened else []
    findings = [
        _finding(part, damage, names, can_be_opened, bool(refused))
        for part in found.parts
        for damage in part.damages
    ]
    findings += _unreadable_entries(found)
    return Inspection(found.path, found.parts, tuple(findings or refused))


def _finding(
    part: Part, damage: Damage, names: Names, can_be_opened: bool, is_refused: bool
) -> Finding:
    """Runs of views can be made anew; what is in LMDB's files cannot be told apart so well."""
    is_run = can_be_opened and part.name.startswith("slots/")
    views = names.users(damage.table) if is_run else ()
    concerns = names.describe(damage.table) if damage.table else ""
    keys = names.keys(damage.table, damage.keys) if damage.keys else ""
    remedy = RESTORE
    if can_be_opened and part.name == "base" and damage.keys is not None:
        remedy = f"{RESTORE}; without one, belvedere salvage keeps all other rows"
    if views:
        remedy = SALVAGE if is_refused else f"belvedere rebuild {' '.join(views)}"
    elif is_run and damage.table not in names.by_table:
        remedy = "nothing: it belongs to a view that was dropped, and goes with the next epochs"
    return Finding(part.name, damage.file, damage.what, concerns, views, keys, remedy)


def _not_opened(found: StoreInspection) -> Iterator[Finding]:
    """That the parts do not belong together is only seen when they are opened."""
    from belvedere.catalog.soundness import check_sound
    from belvedere.stores.embedded import EmbeddedStore

    try:
        with EmbeddedStore.open(found.path, read_only=True) as store:
            check_sound(store)
    except BelvedereError as error:
        what = error.what if isinstance(error, Damaged) else str(error).partition(". ")[0]
        yield Finding("all", found.path, what, "", (), "", RESTORE)


# ---------------------------------------------------------------- the catalog


class _Readable(CatalogTransaction):
    """The entries of a catalog that could be read."""

    def __init__(self, entries: Mapping[str, bytes]) -> None:
        self._entries = entries

    def get(self, key: str) -> bytes | None:
        return self._entries.get(key)

    def scan(self, prefix: str) -> list[tuple[str, bytes]]:
        return [item for item in self._entries.items() if item[0].startswith(prefix)]

    def put(self, key: str, value: bytes) -> None:
        raise StoreError("what is inspected is not written")

    def delete(self, key: str) -> None:
        raise StoreError("what is inspected is not written")


_ENTRIES = [each for each in vars(layout).values() if isinstance(each, Entry | Entries)]


def _unreadable_entries(found: StoreInspection) -> Iterator[Finding]:
    """Entries whose bytes are those that were written, and that still cannot be understood."""
    t = _Readable(found.catalog)
    file = os.path.join(found.path, "catalog")
    for kind in _ENTRIES:
        for key, value in t.scan(kind.prefix if isinstance(kind, Entries) else kind.key):
            try:
                kind.decode(value)
            except Damaged as error:
                what = f"the entry {key}: {error.what}"
                yield Finding("catalog", file, what, "", (), "", RESTORE)


@dataclass(frozen=True, slots=True)
class Names:
    """Whose the tables of a store are."""

    tables: dict[TableId, TableDefinition]
    by_table: dict[TableId, tuple[ViewDefinition, ...]]  # state tables, and the views that use them
    deltas: dict[TableId, TableDefinition]

    @classmethod
    def of(cls, catalog: Mapping[str, bytes]) -> Names:
        t = _Readable(catalog)
        tables = {table.id: table for table in _decoded(t, layout.TABLES)}
        for key, filled in _decoded_by_key(t, layout.ROWS):
            if key in tables:
                tables[filled.table] = tables[key]
        dropped = {view for view, status in _status(t).items() if status == DROPPED}
        by_table: dict[TableId, tuple[ViewDefinition, ...]] = {}
        for view in _decoded(t, layout.VIEWS):
            used = {table for n in view.nodes for table in (*state_tables(n), error_table(n))}
            for table in used if view.id not in dropped else ():
                by_table[table] = (*by_table.get(table, ()), view)
        deltas = {state: table for table in tables.values() for state in table.state_tables}
        return cls(tables, by_table | dict.fromkeys(deltas, ()), deltas)

    def users(self, table: TableId) -> tuple[str, ...]:
        return tuple(sorted(view.name for view in self.by_table.get(table, ())))

    def describe(self, table: TableId) -> str:
        if table in self.tables:
            return f"table {self.tables[table].name}"
        if table in self.deltas:
            return f"the delta view of table {self.deltas[table].name}"
        owners = self.by_table.get(table, ())
        for view in owners:
            if view.planned.sink.table == table:
                return f"view {view.name}"
        users = ", ".join(self.users(table))
        return f"an auxiliary view of {users}" if users else f"table {table}"

    def keys(self, table: TableId, keys: tuple[bytes, bytes | None]) -> str:
        low, high = (self._key(table, key) for key in keys)
        if not keys[0]:
            return "of any kind" if keys[1] is None else f"up to {high}"
        return f"from {low} on" if keys[1] is None else f"from {low} up to {high}"

    def _key(self, table: TableId, key: bytes | None) -> str:
        """A key of a table or a view in its own words, any other in hexadecimal digits."""
        if key is not None and table in self.tables:
            kinds = [column.type for column in self.tables[table].schema.key_columns]
            with suppress(BelvedereError):  # the beginning of a key
                return repr(decoder(kinds)(key))[:_LARGEST_KEY]
        for view in self.by_table.get(table, ()):
            if key is not None and view.planned.sink.table == table and view.planned.unique:
                kinds = [column.type for column in view.schema.key_columns]
                try:
                    return repr(decoder(kinds)(key))[:_LARGEST_KEY]
                except BelvedereError:
                    break  # the first key of a stretch, in an order of its own
        return (key or b"").hex()[:_LARGEST_KEY]


def _decoded(t: CatalogTransaction, kind: Entries[int, Any]) -> Iterator[Any]:
    return (value for _, value in _decoded_by_key(t, kind))


def _decoded_by_key(t: CatalogTransaction, kind: Entries[int, Any]) -> Iterator[tuple[int, Any]]:
    for key, value in t.scan(kind.prefix):
        try:
            yield int(key.removeprefix(kind.prefix)), kind.decode(value)
        except (Damaged, ValueError):
            continue  # told by `_unreadable_entries`


def _status(t: CatalogTransaction) -> dict[int, str]:
    found = {}
    for key, value in t.scan(layout.STATUS.prefix):
        try:
            found[int(key.removeprefix(layout.STATUS.prefix))] = layout.STATUS.decode(value).state
        except (Damaged, ValueError):
            continue  # told by `_unreadable_entries`
    return found
