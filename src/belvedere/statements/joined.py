"""CREATE MATERIALIZED VIEW ... WITH (algorithm = ...): two things, of which the user names one.

the joined rows   a table that an algorithm of the warehouse keeps, from sources
the view          an ordinary view over this table, so readers, feeds and sinks know no other
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from belvedere.catalog.definitions import Joined, TableDefinition
from belvedere.catalog.joined import (
    begin_drop_joined,
    create_joined,
    end_drop_joined,
    joined_name,
)
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.sources import check_follows
from belvedere.catalog.state import CatalogState
from belvedere.catalog.views import create_view, drop_view
from belvedere.connections import open_for
from belvedere.errors import BelvedereError, CatalogError, SourceError, SqlError
from belvedere.sources.base import Relation
from belvedere.sql.declaration import DeclaredView
from belvedere.sql.dialect import parse, sql_of
from belvedere.stores.base import TableId
from belvedere.warehouse.choice import COMPLETE, GLOBAL, LOCAL, SINGLE, STRONG, Choice, choose
from belvedere.warehouse.definition import joined_schema, to_text
from belvedere.warehouse.keeping import sources_of
from belvedere.warehouse.loading import PARTS
from belvedere.warehouse.rows import Shape
from belvedere.warehouse.shape import core_of

if TYPE_CHECKING:
    from belvedere.database import Database

_COPIES = "files"  # a source that keeps all rows here anyhow


def create_joined_view(db: Database, view: DeclaredView, select: str) -> Choice | None:
    """What was chosen; None if the view is there, and that is well."""
    check_follows(db.store)
    if view.name.lower() in db.state().views and view.if_not_exists:
        return None
    if view.replace:
        raise SqlError(
            "a view WITH (algorithm = ...) replaces none: DROP MATERIALIZED VIEW, then create it"
        )
    relations: list[Relation] = []
    core = core_of(parse(select), partial(_relation, db, relations), joined_name(view.name))
    chosen = choose(
        core.shape,
        _scenario(db, core.shape),
        view.asked,
        view.algorithm,
        view.every or 1,
        all(relation.has_before for relation in relations),
        view.period,
    )
    schema = joined_schema(core.shape, relations, core.names)
    text = to_text(core.shape, relations)
    sources = core.shape.sources

    def joined(progress: TableId) -> Joined:
        about = view.name, select, chosen.algorithm, chosen.every, chosen.reaches, progress
        return Joined(*about, text, sources, chosen.period)

    create_joined(db.store, view.name, schema, joined)
    try:
        create_view(db.store, view.name, sql_of(core.upper), view.key, _asked(view, chosen))
    except BelvedereError:
        drop_joined(db, view.name)
        raise
    return chosen


def _asked(view: DeclaredView, chosen: Choice) -> str:
    """Of epochs: what was asked for, or else no more than the algorithm gives."""
    return view.asked or (STRONG if chosen.reaches == COMPLETE else chosen.reaches)


def _relation(db: Database, found: list[Relation], table: exp.Table) -> tuple[str, Relation]:
    """What FROM names: a relation of a source, as it is there now."""
    source, dot, name = table.name.partition(".")
    known = db.state().sources
    if not dot or source.lower() not in known:
        raise SqlError(
            f"{table.name} is no relation of a source, and a view WITH (algorithm = ...) joins"
            " relations of sources only: leave `algorithm` out"
        )
    definition = known[source.lower()]
    if definition.kind == _COPIES:
        raise SqlError(
            f"{definition.name} is a source of files, whose rows are kept here anyhow: leave"
            " `algorithm` out"
        )
    found.append(db.connections.of(definition).describe(name))
    return definition.name, found[-1]


def _scenario(db: Database, shape: Shape) -> str:
    """What the sources say of their transactions. Where they say nothing, these are global if two
    sources have the table that tells which of them belong together.
    """
    sources = [db.state().source(name) for name in shape.sources]
    if {source.transactions for source in sources} == {SINGLE}:
        return SINGLE
    told = [s for s in sources if len(sources) > 1 and _may_be_global(db, s)]
    return GLOBAL if len(told) > 1 else LOCAL


def _may_be_global(db: Database, source: SourceDefinition) -> bool:
    if source.transactions not in ("", GLOBAL):
        return False
    has_table = PARTS in db.connections.of(source).relations()
    if source.transactions == GLOBAL and not has_table:
        raise SourceError(
            f"source {source.name} says transactions = 'global', and has no table {PARTS}: create"
            " it there, with columns gid (the key) and sources"
        )
    return has_table


def check_not_joined(state: CatalogState, view: str) -> None:
    """An ordinary view does not take the place of one with an algorithm."""
    if has_joined(state, view):
        raise CatalogError(
            f"view {view} is kept by an algorithm: DROP MATERIALIZED VIEW {view} first"
        )


def has_joined(state: CatalogState, view: str) -> bool:
    """Also when the view itself is gone, as a crash has ended a DROP."""
    table = state.tables.get(joined_name(view).lower())
    return table is not None and table.joined is not None


def drop_joined_view(db: Database, name: str) -> str:
    """What could not be done, for the message."""
    drop_view(db.store, name, True)
    return drop_joined(db, name)


def drop_joined(db: Database, view: str) -> str:
    table = begin_drop_joined(db.store, view)
    if table is None:
        return ""
    left = "".join(_forget(db, table, name) for name in sources_of(db.state(), table))
    end_drop_joined(db.store, table)
    return left


def _forget(db: Database, table: TableDefinition, name: str) -> str:
    """Have a server forget the view; it may be gone for ever, or its password may be."""
    try:
        with closing(open_for(db.state().source(name), table)) as source:
            source.remove()
    except SourceError as error:
        return (
            f"; source {name} was not told, and may keep its log for this view (what is named"
            f" ..._{table.id} there): {error}"
        )
    return ""
