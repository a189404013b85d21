"""Tables with the rows that a view joins from sources and keeps nothing else of: one for each view
with an algorithm. They are made before their view, and are gone after it.
"""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog import layout
from belvedere.catalog.definitions import Joined, TableDefinition
from belvedere.catalog.layout import Name
from belvedere.catalog.state import bump, new_id, read_head, read_state
from belvedere.catalog.tables import check_free, check_not_of_source
from belvedere.errors import CatalogError
from belvedere.stores.base import CatalogTransaction, Store, TableId
from belvedere.types import Schema


def joined_name(view: str) -> str:
    """What the table of a view is called."""
    return f"{view}__joined"


def create_joined(
    store: Store, view: str, schema: Schema, joined: Callable[[TableId], Joined]
) -> None:
    """`joined` is given the id of the internal table for positions."""
    name = joined_name(view)

    def body(t: CatalogTransaction) -> None:
        check_not_of_source(t, name)
        check_free(t, view, False, "view")
        check_free(t, name, False, "table")
        number, progress = new_id(t), new_id(t)
        about = joined(progress)
        for source in about.sources:
            if read_state(t).source(source).dropping:
                raise CatalogError(f"source {source} is being dropped: nothing new follows it")
        created = read_head(t).epoch
        made = TableDefinition(number, name, schema, created=created, joined=about)
        layout.TABLES.put(t, number, made)
        layout.ADOPTIONS.put(t, number, None)
        layout.NAMES.put(t, name.lower(), Name("table", number))
        bump(t)

    store.catalog.transact(body)


def begin_drop_joined(store: Store, view: str) -> TableDefinition | None:
    """From here on nobody keeps its rows; None if there are none. The view has to be gone."""

    def body(t: CatalogTransaction) -> TableDefinition | None:
        state = read_state(t)
        table = state.tables.get(joined_name(view).lower())
        if table is None or table.joined is None:
            return None
        users = sorted({v.name for v in state.definitions() if table.id in v.planned.sources})
        if users:
            raise CatalogError(
                f"the joined rows of view {view} are used by {', '.join(users)}: drop these views"
                " first"
            )
        layout.NAMES.put(t, table.name.lower(), Name("table", table.id, dropping=True))
        bump(t)
        return table

    return store.catalog.transact(body)


def end_drop_joined(store: Store, table: TableDefinition) -> None:
    """Nothing of it is left, in whatever state a crash has left an earlier try."""
    assert table.joined is not None
    store.base.drop(table.id)
    store.base.drop(table.joined.progress)

    def body(t: CatalogTransaction) -> None:
        entry = layout.NAMES.get(t, table.name.lower())
        if entry is not None and entry.id == table.id:
            layout.NAMES.delete(t, table.name.lower())
            layout.ADOPTIONS.delete(t, table.id)
            layout.KEEPING.delete(t, table.id)
            layout.DROPPED.put(t, table.id, b"")
        bump(t)

    store.catalog.transact(body)
