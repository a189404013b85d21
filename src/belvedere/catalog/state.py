"""The catalog as a whole: one reading of all names, definitions and states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from belvedere.catalog import layout
from belvedere.catalog.damage import decodes
from belvedere.catalog.definitions import Filled, TableDefinition, ViewDefinition, ViewStatus
from belvedere.catalog.head import Head
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.errors import CatalogError, NotKept, ViewNotReady
from belvedere.graph import columns_used
from belvedere.stores.base import CatalogTransaction, Store, TableId
from belvedere.types import Column, Epoch, Vector

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CatalogState:
    """One consistent reading of the whole catalog."""

    head: Head
    tables: dict[str, TableDefinition]
    views: dict[str, ViewDefinition]  # by the name under which they are read
    building: dict[str, ViewDefinition]  # replacements that are not live yet
    status: dict[int, ViewStatus]
    errors: dict[int, int]  # rows in error, by error table
    dropping: set[int] = field(default_factory=set)  # tables of which a DROP has begun
    # tables of others that are not complete: with which vector they are, if that is known
    adopting: dict[int, Vector | None] = field(default_factory=dict)
    sources: dict[str, SourceDefinition] = field(default_factory=dict)
    # where the rows are of relations whose changes only pass, if they are here
    filled: dict[int, Filled] = field(default_factory=dict)

    def in_error(self, view: ViewDefinition) -> int:
        """How many rows the view cannot evaluate, nodes that it shares count too; and wrong cells
        of foreign tables in columns that it uses.
        """
        if not any(self.errors.values()):
            return 0
        faults = (table for _, _, table in self.faults_of(view))
        return sum(self.errors.get(table, 0) for table in (*view.error_tables, *faults))

    def faults_of(self, view: ViewDefinition) -> Iterator[tuple[TableDefinition, Column, TableId]]:
        """Columns of foreign tables that a view uses, with the tables of their wrong cells."""
        tables = {table.id: table for table in self.tables.values() if table.faults}
        used = columns_used(view.nodes) if tables else {}
        for table in (tables[number] for number in used if number in tables):
            chosen, schema = used[table.id], table.schema
            for column, fault in zip(schema.value_columns, table.faults[:-1], strict=True):
                if chosen is None or schema.columns.index(column) in chosen:
                    yield table, column, fault

    def table(self, name: str) -> TableDefinition:
        if name.lower() in self.views:
            raise CatalogError(f"{name} is a view: it is maintained, not written to")
        return _named(self.tables, name, "table", "SHOW TABLES")

    def view(self, name: str) -> ViewDefinition:
        if name.lower() in self.tables:
            raise CatalogError(f"{name} is a table: use table({name!r})")
        return _named(self.views, name, "view", "SHOW MATERIALIZED VIEWS")

    def relation(self, name: str) -> TableDefinition | ViewDefinition:
        found = self.tables.get(name.lower()) or self.views.get(name.lower())
        if found is None and "." in name:
            from belvedere.sql.names import unknown_relation  # which readers of rows do without

            raise CatalogError(str(unknown_relation(name)))
        if found is None:
            raise CatalogError(
                f"there is no table or view {name}: SHOW TABLES and SHOW MATERIALIZED VIEWS list"
                " them"
            )
        return found

    def source(self, name: str) -> SourceDefinition:
        return _named(self.sources, name, "source", "SHOW SOURCES")

    def relations_of(self, source: str) -> list[TableDefinition]:
        """The tables that follow relations of a source."""
        low = source.lower()
        return [t for t in self.tables.values() if t.followed and t.followed.source.lower() == low]

    def is_kept(self, table: TableDefinition) -> bool:
        """Whether the rows of a table are here, and stay."""
        filled = self.filled.get(table.id)
        return not table.passes or (filled is not None and filled.keep)

    def readable(self, table: TableDefinition) -> TableDefinition:
        """The same table as its rows are read, which may be under another id; also while they are
        here for a while only.
        """
        if not table.passes:
            return table
        filled, followed = self.filled.get(table.id), table.followed
        if filled is None or not (filled.keep or filled.until):
            raise NotKept(table.name)
        check_complete(self, table, is_held=True)
        assert followed is not None
        own = replace(followed, passes=False)
        return replace(table, id=filled.table, followed=own, created=filled.since)

    def joined(self) -> list[TableDefinition]:
        """The tables with joined rows of sources."""
        return [t for t in self.tables.values() if t.joined is not None]

    def definitions(self) -> list[ViewDefinition]:
        return [*self.views.values(), *self.building.values()]


def _named(found: dict[str, T], name: str, kind: str, hint: str) -> T:
    if name.lower() not in found:
        raise CatalogError(f"there is no {kind} {name}: {hint} lists them")
    return found[name.lower()]


def check_complete(
    state: CatalogState, found: TableDefinition | ViewDefinition, is_held: bool = False
) -> None:
    """Refuse to read a relation of a source whose rows are not kept, or not all there yet."""
    if isinstance(found, TableDefinition) and not (is_held or state.is_kept(found)):
        raise NotKept(found.name)
    if isinstance(found, TableDefinition) and found.followed and found.id in state.adopting:
        raise ViewNotReady(
            f"{found.name} is still being copied from its source: catch_up(), or a running"
            " pipeline, completes it; belvedere status shows how it goes"
        )
    if isinstance(found, TableDefinition) and found.joined and found.id in state.adopting:
        raise ViewNotReady(
            f"{found.name} is still being loaded from its sources: catch_up(), or a running"
            " pipeline, completes it; belvedere status shows how it goes"
        )


def read_head(t: CatalogTransaction) -> Head:
    return layout.HEAD.get(t) or Head(0, 0, Vector())


def committed(store: Store) -> Head:
    """The head as it is now."""
    return layout.HEAD.current(store.catalog) or Head(0, 0, Vector())


def read_floor(t: CatalogTransaction) -> Epoch:
    """The epoch below which history may be gone."""
    return layout.FLOORS.get(t) or 0


@decodes("what a name stands for")
def read_state(t: CatalogTransaction) -> CatalogState:
    tables, views = layout.TABLES.all(t), layout.VIEWS.all(t)
    errors = {table: sum(slots.values()) for table, slots in layout.ERRORS.all(t).items()}
    state = CatalogState(read_head(t), {}, {}, {}, layout.STATUS.all(t), errors)
    state.adopting.update(layout.ADOPTIONS.all(t))
    state.sources.update(layout.SOURCES.all(t))
    state.filled.update(layout.ROWS.all(t))
    for name, entry in layout.NAMES.all(t).items():
        if entry.kind == "table":
            state.tables[name] = tables[entry.id]
            if entry.dropping:
                state.dropping.add(entry.id)
            continue
        state.views[name] = views[entry.id]
        if entry.next:
            state.building[name] = views[entry.next]
    return state


def bump(t: CatalogTransaction) -> None:
    """Tell other processes that definitions or states of views have changed."""
    head = read_head(t)
    layout.HEAD.put(t, replace(head, version=head.version + 1))


def new_id(t: CatalogTransaction) -> int:
    value = layout.NEXT_ID.get(t) or 1
    layout.NEXT_ID.put(t, value + 1)
    return value
