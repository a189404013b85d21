"""SHOW and DESCRIBE: what there is, and the statements that would create it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.errors import SqlError
from belvedere.result import Message, Result, Rows
from belvedere.sql.dialect import Token
from belvedere.sql.foreign import options_text
from belvedere.sql.names import key_option, name_in, plain_name, quoted
from belvedere.sql.parameters import Parameters
from belvedere.sql.refusal import only

if TYPE_CHECKING:
    from belvedere.database import Database


def show(
    db: Database, text: str, words: Sequence[Token], params: Parameters | None = None
) -> Result:
    if params:
        raise SqlError("SHOW takes no parameters: leave out the values")
    said = [word.text.upper() for word in words[1:]]
    if said == ["TABLES"]:
        state = db.state()
        return Rows(
            _names(
                [
                    (t.name, "table, being dropped" if t.id in state.dropping else "table")
                    for t in state.tables.values()
                ]
            )
        )
    if said in (["MATERIALIZED", "VIEWS"], ["VIEWS"]):
        state = db.state()
        return Rows(
            _names([(v.name, state.status[v.id].state) for v in state.views.values()], "state")
        )
    for kind in (["TABLE"], ["VIEW"], ["MATERIALIZED", "VIEW"]):
        name = (
            name_in(words[len(kind) + 2 :]) if said[: len(kind) + 1] == ["CREATE", *kind] else None
        )
        if name is not None:
            return Message(create_text(db.state().relation(name)))
    raise SqlError(
        "this form of SHOW is not understood: write SHOW TABLES, SHOW MATERIALIZED VIEWS or SHOW"
        " CREATE TABLE and a name"
    )


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
    found = db.state().relation(plain_name(statement.this, "DESCRIBE"))
    rows = [
        {
            "column": c.name,
            "type": str(c.type),
            "key": found.schema.key.index(c.name) + 1 if c.name in found.schema.key else None,
        }
        for c in found.schema.columns
    ]
    return Rows(
        pa.Table.from_pylist(
            rows,
            schema=pa.schema([("column", pa.string()), ("type", pa.string()), ("key", pa.int32())]),
        )
    )


def create_text(found: TableDefinition | ViewDefinition) -> str:
    """The statement that would create it again."""
    name = quoted(found.name)
    if isinstance(found, ViewDefinition):
        options = [f"key = {key_option(found.key)}"] if found.key else []
        if found.consistency != "strong":
            options.append(f"consistency = '{found.consistency}'")
        given = f" WITH ({', '.join(options)})" if options else ""
        return f"CREATE MATERIALIZED VIEW {name}{given} AS {found.select}"
    lines = [
        f"{quoted(c.name)} {str(c.type).upper()}{'' if c.nullable else ' NOT NULL'}"
        for c in found.schema.columns
    ]
    body = ", ".join([*lines, f"PRIMARY KEY ({', '.join(map(quoted, found.schema.key))})"])
    return f"CREATE TABLE {name} ({body})" + _options(found)


def _options(table: TableDefinition) -> str:
    if table.mapping is not None:
        return options_text(table.schema, table.mapping)
    return "" if table.before_images else " WITH (before_images = false)"
