"""Tables: how they are created and dropped."""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog import layout
from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.filling import forget
from belvedere.catalog.layout import Name, NameKind
from belvedere.catalog.state import bump, new_id, read_head, read_state
from belvedere.errors import CatalogError, SchemaError
from belvedere.stores.base import CatalogTransaction, Mapping, Store
from belvedere.types import Schema


def create_table(
    store: Store,
    name: str,
    schema: Schema,
    before_images: bool,
    if_not_exists: bool = False,
    mapping: Mapping | None = None,
) -> bool:
    """Define a table; with a mapping, of rows that foreign clients write."""
    _check_table(name, schema)
    if mapping is not None:
        return _adopt_table(store, name, schema, mapping, if_not_exists)
    if store.foreign is not None:
        raise CatalogError(
            f"{store.url} has foreign tables only: write CREATE TABLE {name} (...) USING hbase"
            " OPTIONS (table = 'namespace:name', ...)"
        )

    def body(t: CatalogTransaction) -> bool:
        check_not_of_source(t, name)
        if check_free(t, name, if_not_exists, "table"):
            return False
        is_told = before_images or store.history is not None
        table = new_id(t)
        delta = 0 if is_told else new_id(t)
        created = read_head(t).epoch
        definition = TableDefinition(table, name, schema, before_images, delta, created=created)
        layout.TABLES.put(t, definition.id, definition)
        layout.NAMES.put(t, name.lower(), Name("table", definition.id))
        bump(t)
        return True

    return store.catalog.transact(body)


def _adopt_table(
    store: Store, name: str, schema: Schema, mapping: Mapping, if_not_exists: bool
) -> bool:
    """Capture first: when the table is known, nothing that happens to it can be missed.

    After a crash in between something is captured that nobody asks for, under an id that never
    comes back.
    """
    if store.foreign is None:
        raise CatalogError(f"{store.url} has no foreign tables: leave out USING and OPTIONS")
    if store.catalog.read(lambda t: check_free(t, name, if_not_exists, "table")):
        return False
    count = 3 + len(mapping.columns)  # itself, its delta view, error tables
    table, delta, *faults = store.catalog.transact(lambda t: [new_id(t) for _ in range(count)])
    definition = TableDefinition(table, name, schema, False, delta, mapping, tuple(faults))
    store.foreign.adopt(table, mapping)

    def body(t: CatalogTransaction) -> bool:
        if check_free(t, name, if_not_exists, "table"):
            return False
        made = replace(definition, created=read_head(t).epoch)
        layout.TABLES.put(t, table, made)
        layout.ADOPTIONS.put(t, table, None)
        layout.NAMES.put(t, name.lower(), Name("table", table))
        bump(t)
        return True

    return store.catalog.transact(body)


def _check_table(name: str, schema: Schema) -> None:
    # SQL is loaded to change the catalog, not to read it
    from belvedere.sql.names import check_names

    check_names("the table", [name])
    check_names(f"a column of table {name}", schema.names)
    if not schema.key:
        raise SchemaError(f"table {name} has no key: add PRIMARY KEY (column, ...)")
    seen: set[str] = set()
    for column in schema.columns:
        if column.name.lower() in seen:
            raise SchemaError(f"table {name} has two columns {column.name}")
        seen.add(column.name.lower())
    for key in schema.key:
        schema.column(key)
        if schema.key.count(key) > 1:
            raise SchemaError(f"the key of table {name} lists {key} twice: list it once")


def check_not_of_source(t: CatalogTransaction, name: str) -> None:
    """A dotted name may be that of a source's relation."""
    source, dot, _ = name.lower().partition(".")
    if dot and layout.SOURCES.get(t, source) is not None:
        raise CatalogError(f"the name {name} is of source {source}: choose another name")


def check_free(t: CatalogTransaction, name: str, allowed: bool, kind: NameKind) -> bool:
    """Whether the name stands for such a thing already, if that is allowed; raises if it is not."""
    entry = layout.NAMES.get(t, name.lower())
    if entry is None:
        return False
    found = entry.kind
    if entry.dropping:
        raise CatalogError(
            f"table {name} is being dropped: DROP TABLE {name} finishes that, then create it"
        )
    if allowed and found == kind:
        return True
    if found != kind:
        raise CatalogError(
            f"a {found} {name} exists already: choose another name, or drop it first"
        )
    raise CatalogError(
        f"a {found} {name} exists already: drop it first, or use"
        f" {'IF NOT EXISTS' if kind == 'table' else 'OR REPLACE'}"
    )


def drop_table(store: Store, name: str, if_exists: bool = False) -> bool:
    """Three transactions, as catalog and rows are apart.

    After a crash between two of them DROP TABLE finishes what is left.

    1. the name says that the table is being dropped; no view uses it, and none will
    2. the rows are nobody's: writes and reads, of any process, are refused from here on, so none is
       acknowledged and lost
    3. the name is free
    """
    table = store.catalog.transact(lambda t: _begin_drop(t, name, if_exists))
    if table is None:
        return False
    store.base.drop(table.id)
    store.catalog.transact(lambda t: _end_drop(t, table))
    return True


def _begin_drop(t: CatalogTransaction, name: str, if_exists: bool) -> TableDefinition | None:
    state = read_state(t)
    if if_exists and name.lower() not in state.tables:
        return None
    if name.lower() in state.views:
        raise CatalogError(f"{name} is a view: use DROP MATERIALIZED VIEW")
    table = state.table(name)
    if table.joined is not None:
        raise CatalogError(
            f"{name} belongs to view {table.joined.view}: DROP MATERIALIZED VIEW"
            f" {table.joined.view} drops both"
        )
    users = {v.name for v in state.definitions() if table.id in v.planned.sources}
    if users:
        raise CatalogError(
            f"table {name} is used by {', '.join(sorted(users))}: drop these views first"
        )
    layout.NAMES.put(t, name.lower(), Name("table", table.id, dropping=True))
    bump(t)
    return table


def _end_drop(t: CatalogTransaction, table: TableDefinition) -> None:
    entry = layout.NAMES.get(t, table.name.lower())
    if entry is None or entry.id != table.id:
        # another process has dropped it too, and was faster; the name may be another table's by now
        return
    layout.NAMES.delete(t, table.name.lower())
    layout.ADOPTIONS.delete(t, table.id)
    layout.CHECKED.delete(t, table.id)
    forget(t, table.id)
    # an open epoch may still name its definition: a coordinator removes it
    layout.DROPPED.put(t, table.id, b"")
    bump(t)
