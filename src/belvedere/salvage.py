"""Tables whose rows are damaged: what is intact is kept, the rest is told, and views are built anew
from what is left. So are views whose own runs are damaged; if files of these are missing, the
database could not even be opened.

Only for a directory without a backup: a table is then not what was written to it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.catalog.filling import fill_again
from belvedere.catalog.layout import ROWS
from belvedere.catalog.state import read_state
from belvedere.errors import StoreError
from belvedere.inspection import RESTORE, Names
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.registry import embedded_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from belvedere.stores.embedded import EmbeddedStore
    from belvedere.stores.embedded.layout import Format
    from belvedere.stores.embedded.salvaging import Lost

_WHY = "and can only be salvaged alone: stop belvedere run and whoever reads or writes it, then try"


@dataclass(frozen=True, slots=True)
class LostRows:
    """Rows of a table, up to so many, that may be missing, older than they were, or back although
    they were deleted.
    """

    table: str
    slot: int
    keys: str
    rows: int
    what: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was lost, or would be; and the views that are built anew by the next epochs."""

    lost: tuple[LostRows, ...]
    views: tuple[str, ...]
    done: bool


def salvage(path: str | os.PathLike[str], really: bool = False) -> Salvaged:
    """Take damaged runs out of a database that nobody has open; unless `really`, only say which.

    All views that read such tables, or keep such runs, are requested anew, in one transaction
    before that: who is killed in between does it again.
    """
    from belvedere.stores.embedded import layout, parts

    folder = _folder(path)
    found = layout.current(folder, "then salvage it")
    with layout.locked(folder):
        why = f"{folder} is open, in this or another process, {_WHY} again"
        for part in parts.names(found.slots):
            layout.check_unused(folder / part, why)
        with _store(folder, found) as store:
            return _salvage(store, really)


def _folder(path: str | os.PathLike[str]) -> Path:
    from belvedere.stores.embedded.layout import is_store

    folder = embedded_path(os.fspath(path))
    if folder is None or not is_store(folder):
        raise StoreError(f"{os.fspath(path)} is no directory of a database: check the path")
    return Path(os.path.realpath(folder))


def _store(folder: Path, found: Format) -> EmbeddedStore:
    """Without the look at all parts, which would refuse it."""
    from belvedere.stores.embedded import EmbeddedStore
    from belvedere.stores.embedded.layout import SMALL_MAP
    from belvedere.stores.embedded.store import MAX_SIZE

    return EmbeddedStore(str(folder), found, SMALL_MAP, MAX_SIZE)


def _salvage(store: EmbeddedStore, really: bool) -> Salvaged:
    from belvedere.stores.embedded import salvaging

    found = [(place, salvaging.find_lost(place)) for place in store.places]
    (_, rows), *slots = found
    names = Names.of(dict(store.catalog.read(lambda t: t.scan(""))))
    damaged = {each.table for each in rows.values()}
    filled = store.catalog.read(ROWS.all).items()
    again = [relation for relation, place in filled if place.table in damaged]
    views = _readers(store, damaged.union(again))
    views |= _keepers(names, {each.table for _, lost in slots for each in lost.values()})
    concerned = tuple(sorted(views))
    if really:
        concerned = _build_anew(store, concerned, again)
        for place, lost in found:
            if lost:
                salvaging.take_out(place, lost)
    return Salvaged(tuple(_told(names, rows.values())), concerned, really)


def _build_anew(
    store: EmbeddedStore, views: tuple[str, ...], relations: list[int]
) -> tuple[str, ...]:
    """Views; and relations of sources whose rows were here to load them are copied once more."""
    from belvedere.catalog.views import rebuild_views

    def fill(t: CatalogTransaction) -> None:
        for number in relations:
            fill_again(t, number)

    return rebuild_views(store, lambda _: views, fill) if views or relations else ()


def _keepers(names: Names, tables: set[int]) -> set[str]:
    """Views with runs of their own that are damaged; those of dropped views are nobody's."""
    for table in sorted(tables & set(names.deltas)):
        raise StoreError(f"{names.describe(table)} is damaged: {RESTORE}")
    return {view for table in tables for view in names.users(table)}


def _readers(store: EmbeddedStore, tables: set[int]) -> set[str]:
    """Views that read a table, also through others."""
    views = store.catalog.read(read_state).definitions()
    return {view.name for view in views if tables & set(view.planned.sources)}


def _told(names: Names, lost: Iterable[Lost]) -> list[LostRows]:
    return [
        LostRows(
            names.describe(each.table),
            each.slot,
            names.keys(each.table, (each.low, each.high)),
            each.rows,
            each.what,
        )
        for each in lost
    ]
