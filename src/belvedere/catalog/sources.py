"""Sources and their relations: how they are created and dropped.

A relation is a table named `source.relation`. It is complete when all that it had when it was first
copied is in the epochs; until then no view uses it (`layout.ADOPTIONS`).
"""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog import layout
from belvedere.catalog.definitions import Followed, TableDefinition
from belvedere.catalog.filling import fill_again, forget
from belvedere.catalog.layout import Name
from belvedere.catalog.source_definition import SecretPlace, SourceDefinition
from belvedere.catalog.state import CatalogState, bump, new_id, read_head, read_state
from belvedere.catalog.tables import check_free
from belvedere.catalog.views import rebuild_views
from belvedere.errors import CatalogError
from belvedere.stores.base import CatalogTransaction, Store
from belvedere.types import Schema, Vector


def create_source(
    store: Store,
    name: str,
    kind: str,
    options: dict[str, str],
    secrets: dict[str, SecretPlace],
    if_not_exists: bool = False,
) -> bool:
    """Whether it was made; it is there already if that is allowed."""
    check_follows(store)

    def body(t: CatalogTransaction) -> bool:
        if not _check_source_free(read_state(t), name, if_not_exists):
            return False
        number, progress = new_id(t), new_id(t)
        made = SourceDefinition(number, name, kind, options, secrets, progress)
        layout.SOURCES.put(t, name.lower(), made)
        bump(t)
        return True

    return store.catalog.transact(body)


def check_follows(store: Store) -> None:
    """Changes of others go into our own tables' log, a transaction of theirs as one of ours."""
    able = store.capabilities
    if not (able.owns_base_tables and able.transactions and able.conditional_writes):
        raise CatalogError(
            f"{store.url} cannot follow sources: open a database in a directory, and create the"
            " source there"
        )


def _check_source_free(state: CatalogState, name: str, allowed: bool) -> bool:
    low = name.lower()
    if (found := state.sources.get(low)) is not None:
        if found.dropping:
            raise CatalogError(f"source {name} is being dropped: DROP SOURCE {name} finishes that")
        if allowed:
            return False
        raise CatalogError(f"a source {name} exists already: drop it first, or use IF NOT EXISTS")
    clash = [known for known in (*state.tables, *state.views) if known.startswith(f"{low}.")]
    if clash:
        raise CatalogError(
            f"the relations of a source {name} would be named like {clash[0]}, which exists:"
            " choose another name"
        )
    return True


def create_relation(store: Store, name: str, followed: Followed, schema: Schema) -> bool:
    """Follow a relation from now on; False if that is done already. A view waits until it has been
    copied; if its changes only pass, that is asked for with the view.
    """

    def body(t: CatalogTransaction) -> bool:
        source = read_state(t).source(followed.source)
        if source.dropping:
            raise CatalogError(f"source {source.name} is being dropped: nothing new follows it")
        _check_one_name(read_state(t), name, followed)
        if check_free(t, name, True, "table"):
            return False
        number = new_id(t)
        made = TableDefinition(number, name, schema, created=read_head(t).epoch, followed=followed)
        layout.TABLES.put(t, number, made)
        if not followed.passes:
            layout.ADOPTIONS.put(t, number, None)
        layout.NAMES.put(t, name.lower(), Name("table", number))
        bump(t)
        return True

    return store.catalog.transact(body)


def _check_one_name(state: CatalogState, name: str, followed: Followed) -> None:
    for table in state.relations_of(followed.source):
        is_same = table.followed is not None and table.followed.relation == followed.relation
        if is_same and table.name.lower() != name.lower():
            raise CatalogError(f"{name} is followed already as {table.name}: use that name")


def relation_name(source: str, relation: str) -> str:
    """What a relation of a source is called here."""
    return f"{source}.{relation}"


def ask_reload(store: Store, source: str, relations: list[int] | None) -> None:
    """Have these tables copied again, or all of a source, whose log may be lost. Where changes only
    pass there is nothing with which a copy could be compared, so views are built anew from it.
    """

    def chosen(state: CatalogState) -> list[TableDefinition]:
        every = state.relations_of(source)
        return [table for table in every if relations is None or table.id in relations]

    def readers(state: CatalogState) -> list[str]:
        passing = {table.id for table in chosen(state) if table.passes}
        return [v.name for v in state.definitions() if passing & set(v.planned.sources)]

    def body(t: CatalogTransaction) -> None:
        state = read_state(t)
        found = state.source(source)
        for table in chosen(state):
            if table.passes:
                fill_again(t, table.id)
            else:
                layout.ADOPTIONS.put(t, table.id, None)
        if relations is None:
            again = replace(found, generation=found.generation + 1)
            layout.SOURCES.put(t, found.name.lower(), again)

    rebuild_views(store, readers, body)


def note_copied(store: Store, table: TableDefinition, vector: Vector) -> None:
    """All rows that a relation had are in the log before this vector."""

    def body(t: CatalogTransaction) -> None:
        if table.id in layout.ADOPTIONS.all(t):
            layout.ADOPTIONS.put(t, table.id, vector)
            bump(t)

    store.catalog.transact(body)


def begin_drop_source(store: Store, name: str) -> SourceDefinition:
    """From here on nobody follows it, and no view will use it."""

    def body(t: CatalogTransaction) -> SourceDefinition:
        state = read_state(t)
        found = state.source(name)
        _check_unused(state, found)
        layout.SOURCES.put(t, found.name.lower(), replace(found, dropping=True))
        for table in state.relations_of(name):
            layout.NAMES.put(t, table.name.lower(), Name("table", table.id, dropping=True))
        bump(t)
        return found

    return store.catalog.transact(body)


def _check_unused(state: CatalogState, source: SourceDefinition) -> None:
    tables = {table.id for table in state.relations_of(source.name)}
    users = sorted(
        {v.name for v in state.definitions() if tables & set(v.planned.sources)}
        | {t.joined.view for t in state.joined() if t.joined and source.name in t.joined.sources}
    )
    if users:
        raise CatalogError(
            f"source {source.name} is used by {', '.join(users)}: drop these views first"
        )


def end_drop_source(store: Store, source: SourceDefinition) -> None:
    """Nothing of it is left, in whatever state a crash has left an earlier try."""
    tables = store.catalog.read(read_state).relations_of(source.name)
    for table in tables:
        store.base.drop(table.id)
    store.base.drop(source.progress)

    def body(t: CatalogTransaction) -> None:
        for table in tables:
            entry = layout.NAMES.get(t, table.name.lower())
            if entry is not None and entry.id == table.id:
                layout.NAMES.delete(t, table.name.lower())
                layout.ADOPTIONS.delete(t, table.id)
                forget(t, table.id)
                layout.DROPPED.put(t, table.id, b"")
        found = layout.SOURCES.get(t, source.name.lower())
        if found is not None and found.id == source.id:
            layout.SOURCES.delete(t, source.name.lower())
            layout.CONDITIONS.delete(t, source.name.lower())
            layout.AWAITED.delete(t, source.name.lower())
        bump(t)

    store.catalog.transact(body)
