"""CREATE TABLE and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from belvedere.catalog.tables import create_table
from belvedere.catalog.views import create_view
from belvedere.errors import SqlError
from belvedere.result import Message
from belvedere.sql.declaration import declared_table, declared_view
from belvedere.sql.dialect import defining_query

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
    made = create_view(
        db.store,
        view.name,
        defining_query(text),
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
