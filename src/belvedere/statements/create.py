"""CREATE TABLE and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from belvedere.catalog.definitions import batches_text
from belvedere.catalog.tables import create_table
from belvedere.catalog.views import create_view
from belvedere.errors import SqlError
from belvedere.result import Message
from belvedere.sql.declaration import DeclaredView, declared_table, declared_view
from belvedere.sql.dialect import defining_query
from belvedere.statements.joined import check_not_joined, create_joined_view
from belvedere.statements.source import follow_named
from belvedere.warehouse.choice import DIVERGES

if TYPE_CHECKING:
    from belvedere.database import Database


def create(db: Database, statement: exp.Create, text: str) -> Message:
    if statement.kind == "TABLE":
        table = declared_table(statement)
        made = create_table(
            db.store,
            table.name,
            table.schema,
            table.before_images,
            table.if_not_exists,
            table.mapping,
        )
        return Message(
            f"table {table.name} created" if made else f"table {table.name} exists already"
        )
    if statement.kind != "VIEW":
        raise SqlError(
            f"CREATE {statement.kind} is not understood here: CREATE TABLE and CREATE MATERIALIZED"
            " VIEW are"
        )
    view = declared_view(statement)
    select = defining_query(text)
    if view.algorithm is not None or view.is_in_batches:
        return _create_joined(db, view, select)
    if view.replace:
        check_not_joined(db.state(), view.name)
    if db.state().sources:
        follow_named(db, select)
    made = create_view(
        db.store,
        view.name,
        select,
        view.key,
        view.consistency,
        view.replace,
        view.if_not_exists,
    )
    if not made:
        return Message(f"view {view.name} exists already")
    return Message(
        f"view {view.name} requested: it is built by the next catch_up() or by a running pipeline"
    )


def _create_joined(db: Database, view: DeclaredView, select: str) -> Message:
    chosen = create_joined_view(db, view, select)
    if chosen is None:
        return Message(f"view {view.name} exists already")
    batches = batches_text(chosen.every, chosen.period)
    gives = f"keeps it {chosen.reaches}"
    if chosen.reaches == DIVERGES:
        gives = "is no algorithm for several sources: the view may become wrong, and stay wrong"
    return Message(
        f"view {view.name} requested: {chosen.algorithm}{f' every {batches}' if batches else ''}"
        f" {gives}; it is"
        " loaded by the next catch_up() or by a running pipeline"
    )
