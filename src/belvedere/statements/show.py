"""SHOW and DESCRIBE: what there is, and the statements that would create it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from belvedere.catalog.definitions import (
    COMPLETE,
    STRONG,
    Joined,
    TableDefinition,
    ViewDefinition,
    batches_text,
)
from belvedere.catalog.joined import joined_name
from belvedere.catalog.source_definition import SourceDefinition
from belvedere.catalog.state import CatalogState
from belvedere.errors import SqlError
from belvedere.result import Message, Result, Rows
from belvedere.sql.dialect import Token
from belvedere.sql.foreign import literal, options_text
from belvedere.sql.names import key_option, name_in, plain_name, quoted
from belvedere.sql.parameters import Parameters
from belvedere.sql.refusal import only
from belvedere.types import Schema

if TYPE_CHECKING:
    from belvedere.database import Database


def show(
    db: Database, text: str, words: Sequence[Token], params: Parameters | None = None
) -> Result:
    if params:
        raise SqlError("SHOW takes no parameters: leave out the values")
    said = [word.text.upper() for word in words[1:]]
    if said == ["TABLES"]:
        return Rows(_tables(db.state()))
    if said in (["MATERIALIZED", "VIEWS"], ["VIEWS"]):
        state = db.state()
        return Rows(
            _names([(v.name, state.status[v.id].state) for v in state.views.values()], "state")
        )
    if (about_source := _show_source(db, said, words)) is not None:
        return about_source
    for kind in (["TABLE"], ["VIEW"], ["MATERIALIZED", "VIEW"]):
        name = (
            name_in(words[len(kind) + 2 :]) if said[: len(kind) + 1] == ["CREATE", *kind] else None
        )
        if name is not None:
            return Message(_create_text(db.state(), name))
    raise SqlError(
        "this form of SHOW is not understood: write SHOW TABLES, SHOW MATERIALIZED VIEWS, SHOW"
        " SOURCES or SHOW CREATE TABLE and a name"
    )


def _show_source(db: Database, said: Sequence[str], words: Sequence[Token]) -> Result | None:
    if list(said) == ["SOURCES"]:
        return Rows(_sources(db.state()))
    name = name_in(words[3:])
    if name is not None and list(said[:2]) == ["TABLES", "IN"]:
        return Rows(_relations(db, name))
    if name is not None and list(said[:2]) == ["CREATE", "SOURCE"]:
        return Message(source_text(db.state().source(name)))
    return None


def _tables(state: CatalogState) -> pa.Table:
    dropping = {True: ", being dropped", False: ""}
    tables = state.tables.values()
    return _names([(t.name, _kind(state, t) + dropping[t.id in state.dropping]) for t in tables])


def _sources(state: CatalogState) -> pa.Table:
    """Never a secret: where it is found."""
    rows = [
        {
            "name": source.name,
            "type": source.kind,
            "options": _options_of(source),
            "relations": len(state.relations_of(source.name)),
        }
        for source in state.sources.values()
    ]
    texts = [(name, pa.string()) for name in ("name", "type", "options")]
    return pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("relations", pa.int64())]))


def _relations(db: Database, name: str) -> pa.Table:
    """What the source has, and what of it is followed."""
    state = db.state()
    source = state.source(name)
    tables = state.relations_of(name)
    said = {
        t.followed.relation.lower(): "followed, kept" if state.is_kept(t) else "followed"
        for t in tables
        if t.followed is not None
    }
    offered = db.connections.of(source).relations()
    return _names([(r, said.get(r.lower(), "")) for r in offered], "state")


def source_text(source: SourceDefinition) -> str:
    """The statement that would create it again."""
    options = _options_of(source)
    given = f" OPTIONS ({options})" if options else ""
    return f"CREATE SOURCE {quoted(source.name)} TYPE {source.kind}{given}"


def _options_of(source: SourceDefinition) -> str:
    said = [f"{option} = {literal(value)}" for option, value in source.options.items()]
    for option, place in source.secrets.items():
        name = literal(place.name)
        said.append(f"{option} = env({name})" if place.kind == "env" else f"{option}_file = {name}")
    return ", ".join(said)


def _kind(state: CatalogState, table: TableDefinition) -> str:
    if table.joined is not None:
        return f"joined rows of view {table.joined.view}"
    if table.followed is None:
        return "table"
    return f"relation of {table.followed.source}" + ("" if state.is_kept(table) else ", not kept")


def _names(rows: list[tuple[str, str]], second: str = "kind") -> pa.Table:
    return pa.table(
        {
            "name": pa.array([r[0] for r in rows], pa.string()),
            second: pa.array([r[1] for r in rows], pa.string()),
        }
    )


def describe(db: Database, statement: exp.Describe) -> Result:
    if str(statement.args.get("kind") or "TABLE") != "TABLE":
        raise SqlError(
            f"DESCRIBE {statement.args['kind']} is not understood here: write DESCRIBE and the name"
            " of a table or view"
        )
    only(statement, "DESCRIBE")
    schema = _schema_of(db, plain_name(statement.this, "DESCRIBE"))
    rows = [
        {
            "column": c.name,
            "type": str(c.type),
            "key": schema.key.index(c.name) + 1 if c.name in schema.key else None,
        }
        for c in schema.columns
    ]
    return Rows(
        pa.Table.from_pylist(
            rows,
            schema=pa.schema([("column", pa.string()), ("type", pa.string()), ("key", pa.int32())]),
        )
    )


def _schema_of(db: Database, name: str) -> Schema:
    """Of what is here; or of a relation that nobody follows yet, as its source says."""
    state = db.state()
    source, dot, relation = name.partition(".")
    known = state.sources.get(source.lower())
    if dot and known is not None and name.lower() not in state.tables:
        return db.connections.of(known).describe(relation).schema
    return state.relation(name).schema


def _create_text(state: CatalogState, name: str) -> str:
    """Of a view that an algorithm keeps, the statement that the user wrote."""
    found, table = state.relation(name), state.tables.get(joined_name(name).lower())
    if isinstance(found, ViewDefinition) and table is not None and table.joined is not None:
        return create_text(replace(found, select=table.joined.select), table.joined)
    if isinstance(found, TableDefinition) and not state.is_kept(found):
        return "-- followed for the views that read it; its rows are not kept"
    return create_text(found)


def create_text(found: TableDefinition | ViewDefinition, joined: Joined | None = None) -> str:
    """The statement that would create it again."""
    name = quoted(found.name)
    if isinstance(found, ViewDefinition):
        return _view_text(found, joined)
    if found.joined is not None:
        return f"-- made by the statement of view {found.joined.view}"
    if found.followed is not None:
        relation = found.name.partition(".")[2]
        parts = ".".join(map(quoted, relation.split(".")))
        return f"ALTER SOURCE {quoted(found.followed.source)} COPY {parts}"
    lines = [
        f"{quoted(c.name)} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}"
        for c in found.schema.columns
    ]
    body = ", ".join([*lines, f"PRIMARY KEY ({', '.join(map(quoted, found.schema.key))})"])
    return f"CREATE TABLE {name} ({body})" + _options(found)


def _view_text(found: ViewDefinition, joined: Joined | None) -> str:
    options = [f"key = {key_option(found.key)}"] if found.key else []
    is_given_anyhow = joined is not None and joined.reaches == found.consistency != COMPLETE
    if found.consistency != STRONG and not is_given_anyhow:
        options.append(f"consistency = '{found.consistency}'")
    if joined is not None:
        options.append(f"algorithm = '{joined.algorithm}'")
        batches = batches_text(joined.every, joined.period)
        options += [f"every = '{batches}'"] if batches else []
    given = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE MATERIALIZED VIEW {quoted(found.name)}{given} AS {found.select}"


def _options(table: TableDefinition) -> str:
    if table.mapping is not None:
        return options_text(table.schema, table.mapping)
    return "" if table.before_images else " WITH (before_images = false)"
