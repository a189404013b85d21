"""Relations that are not kept: their changes pass through our log, and their rows are here only as
long as somebody needs them, in a table of their own.

    asked for    a view is requested or verified, or the rows are to stay: a new table, to be filled
    filled       who follows the source copies the relation into it, and writes it from then on
    forgotten    nobody needs it: a coordinator drops it, like any table

That the relation is adopted (`layout.ADOPTIONS`) says that its rows are all there; a view waits for
that before it joins. Views that have joined before go on from what passes. Each step is a
transaction of the catalog, and a table that was forgotten is noted until it is dropped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from belvedere.catalog import layout
from belvedere.catalog.definitions import LIVE, LOADING, REQUESTED, Filled
from belvedere.catalog.state import bump, new_id
from belvedere.stores.base import CatalogTransaction, Store, TableId
from belvedere.types import Vector


def ask_rows(t: CatalogTransaction, tables: Iterable[TableId]) -> None:
    """For a view that is requested: of relations whose rows are not here."""
    for number in tables:
        table = layout.TABLES.get(t, number)
        if table is not None and table.passes and layout.ROWS.get(t, number) is None:
            _fill(t, number, keep=False)


def keep_rows(store: Store, number: TableId) -> bool:
    """Have the rows of a relation stay here from now on; False if they do already."""

    def body(t: CatalogTransaction) -> bool:
        found = layout.ROWS.get(t, number)
        if found is not None and found.keep:
            return False
        if found is None:
            _fill(t, number, keep=True)
        else:
            layout.ROWS.put(t, number, replace(found, keep=True))
        bump(t)
        return True

    return store.catalog.transact(body)


def hold_rows(store: Store, numbers: Iterable[TableId], until: float) -> None:
    """Have the rows of relations here until a time, if nobody lets them go before."""

    def body(t: CatalogTransaction) -> None:
        for number in numbers:
            if layout.ROWS.get(t, number) is None:
                _fill(t, number, keep=False)
            found = layout.ROWS.need(t, number)
            layout.ROWS.put(t, number, replace(found, until=(*found.until, until)))
        bump(t)

    store.catalog.transact(body)


def let_go(store: Store, numbers: Iterable[TableId], until: float) -> None:
    """What was held until this time; others may hold it still."""

    def body(t: CatalogTransaction) -> None:
        for number in numbers:
            found = layout.ROWS.get(t, number)
            if found is not None:
                others = tuple(time for time in found.until if time != until)
                layout.ROWS.put(t, number, replace(found, until=others))
        bump(t)

    store.catalog.transact(body)


def fill_again(t: CatalogTransaction, number: TableId) -> None:
    """What was filled may lack changes: begin with an empty table."""
    found = layout.ROWS.get(t, number)
    if found is not None:
        layout.FORGOTTEN.put(t, found.table, b"")
    _fill(t, number, found is not None and found.keep, () if found is None else found.until)


def _fill(
    t: CatalogTransaction, number: TableId, keep: bool, until: tuple[float, ...] = ()
) -> None:
    alone = number not in _used(t, (LIVE, LOADING))
    layout.ROWS.put(t, number, Filled(new_id(t), keep, alone, until=until))
    layout.ADOPTIONS.put(t, number, None)


def _used(t: CatalogTransaction, states: tuple[str, ...]) -> set[TableId]:
    """The base tables of views in some states."""
    views = [view for view, status in layout.STATUS.all(t).items() if status.state in states]
    return {table for view in views for table in layout.VIEWS.need(t, view).planned.sources}


def claim_copy(store: Store, number: TableId, filled: Filled) -> str:
    """Begin to copy a relation into the table that is to be filled; "" if that is not wanted any
    more. What another one has begun is worth nothing from here on: it will not be `note_filled`.
    """
    claim = uuid.uuid4().hex

    def body(t: CatalogTransaction) -> str:
        found, adopting = layout.ROWS.get(t, number), layout.ADOPTIONS.all(t)
        is_wanted = number in adopting and adopting[number] is None
        if found is None or found.table != filled.table or not is_wanted:
            return ""
        layout.ROWS.put(t, number, replace(found, claim=claim))
        bump(t)
        return claim

    return store.catalog.transact(body)


def note_filled(store: Store, number: TableId, claim: str, vector: Vector) -> None:
    """The copy of this claim is complete with a vector."""

    def body(t: CatalogTransaction) -> None:
        found, adopting = layout.ROWS.get(t, number), layout.ADOPTIONS.all(t)
        if found is None or found.claim != claim or number not in adopting:
            return
        layout.ADOPTIONS.put(t, number, vector)
        bump(t)

    store.catalog.transact(body)


def note_since(t: CatalogTransaction, number: TableId, epoch: int) -> None:
    """The rows are all in the epochs, up to this one."""
    found = layout.ROWS.get(t, number)
    if found is not None:
        layout.ROWS.put(t, number, replace(found, since=epoch))


def forget_rows(t: CatalogTransaction, now: float) -> None:
    """Rows that no view waits for, and that need not stay. No epoch may be open: it may load from
    them.
    """
    filled = layout.ROWS.all(t).items()
    passing = [number for number, rows in filled if not _stays(rows, now)]
    needed = _used(t, (REQUESTED, LOADING)) if passing else set()
    gone = [number for number in passing if number not in needed]
    for number in gone:
        forget(t, number)
    if gone:
        bump(t)


def _stays(rows: Filled, now: float) -> bool:
    return rows.keep or any(time > now for time in rows.until)


def forget(t: CatalogTransaction, number: TableId) -> None:
    """Of one relation, whatever state it is in."""
    found = layout.ROWS.get(t, number)
    if found is not None:
        layout.FORGOTTEN.put(t, found.table, b"")
        layout.ROWS.delete(t, number)
        layout.ADOPTIONS.delete(t, number)


def drop_forgotten(store: Store) -> None:
    """Let the store remove forgotten rows. After a crash in between it is done once more."""
    if not store.capabilities.passing:
        return  # after each epoch: no look at a catalog that may be far away
    gone = list(store.catalog.read(layout.FORGOTTEN.all))
    for table in gone:
        store.base.drop(table)

    def body(t: CatalogTransaction) -> None:
        for table in gone:
            layout.FORGOTTEN.delete(t, table)

    if gone:
        store.catalog.transact(body)
