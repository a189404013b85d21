"""INSERT: rows are put, so a row with the same key is overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from belvedere import evaluation
from belvedere.catalog.definitions import TableDefinition
from belvedere.errors import SqlError
from belvedere.expressions import cast_to, lower, with_room
from belvedere.libraries import duckdb, pa
from belvedere.result import Message, Query
from belvedere.sql.dialect import sql_of
from belvedere.sql.names import plain_name
from belvedere.sql.query.running import readable
from belvedere.sql.refusal import Refused, only
from belvedere.sql.relation import Scope
from belvedere.statements.refusal import in_words_of
from belvedere.types import Column

if TYPE_CHECKING:
    from belvedere.database import Database

_NOTHING = Scope(())
_UNREAD = "CAST_INVALID_INPUT"  # there is nothing more to say than which text and which type


@with_room
def insert(db: Database, statement: exp.Insert) -> Message:
    """INSERT ... VALUES or SELECT: rows are put, so a row with the same key is overwritten."""
    if statement.args.get("overwrite"):
        raise SqlError("INSERT OVERWRITE is not understood: DELETE first, then INSERT")
    only(statement, "INSERT")
    target = statement.this
    table = db.state().table(
        plain_name(target.this if isinstance(target, exp.Schema) else target, "INSERT INTO")
    )
    table.check_writable()
    wanted = (
        _listed(target, table) if isinstance(target, exp.Schema) else list(table.schema.columns)
    )
    source = statement.expression
    if isinstance(source, exp.Values):
        rows = _values(source, wanted)
    elif isinstance(source, exp.Query):
        rows = _selected(db, source, wanted)
    else:
        raise SqlError("INSERT takes VALUES (...) or a SELECT")
    db.table(table.name).put_many(rows)
    return Message(f"{rows.num_rows} row(s) put")


def _listed(target: exp.Schema, table: TableDefinition) -> list[Column]:
    """The columns that stand behind the table's name."""
    if not target.expressions:
        raise SqlError("INSERT lists no columns: name some, or leave out the parentheses")
    found: list[Column] = []
    for part in target.expressions:
        if not isinstance(part, exp.Identifier):
            raise SqlError(f"{sql_of(part)} is not the name of a column: write its name alone")
        column = table.schema.column(_spelled(table, part.name))
        if column in found:
            raise SqlError(f"column {column.name} is listed twice: list it once")
        found.append(column)
    return found


def _values(source: exp.Values, wanted: list[Column]) -> pa.Table:
    only(source, "VALUES")
    lines = []
    for row in source.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(cells) != len(wanted):
            raise SqlError(
                f"{sql_of(row)} has {len(cells)} value(s), {len(wanted)} are needed:"
                f" {', '.join(c.name for c in wanted)}"
            )
        lines.append(
            ", ".join(
                f"{_assigned(cell, c, _NOTHING)} AS c{i}"
                for i, (cell, c) in enumerate(zip(cells, wanted, strict=True))
            )
        )
    try:
        table = (
            evaluation.shared()
            .sql(" UNION ALL ".join(f"SELECT {line}" for line in lines))
            .to_arrow_table()
        )
    except duckdb.Error as error:
        raise _wrong_value(source, wanted, error) from error
    return pa.table(
        [col.cast(c.type.arrow) for col, c in zip(table.columns, wanted, strict=True)],
        names=[c.name for c in wanted],
    )


def _wrong_value(source: exp.Values, wanted: list[Column], error: duckdb.Error) -> SqlError:
    """Which of the values it was: each is computed once more, alone."""
    for row in source.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        for cell, column in zip(cells, wanted, strict=True):
            try:
                evaluation.shared().sql(f"SELECT {_assigned(cell, column, _NOTHING)}").fetchall()
            except duckdb.Error as found:
                why = readable(found)
                what = (
                    f"{sql_of(cell)} cannot be stored in column {column.name}, which is"
                    f" {str(column.type).upper()}"
                )
                return SqlError(
                    f"{what}: nothing was inserted"
                    if why.startswith(_UNREAD)
                    else f"{what} ({why}): nothing was inserted"
                )
    return SqlError(f"the values cannot be computed: {readable(error)}")


def _assigned(node: exp.Expression, column: Column, scope: Scope) -> str:
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        raise Refused(
            "DEFAULT", "INSERT", "give the value, or leave out the column: it becomes NULL"
        )
    with in_words_of("INSERT", node, "use INSERT INTO ... SELECT"):
        return str(cast_to(lower(node, scope.resolve), column.type).sql)


def _selected(db: Database, source: Any, wanted: list[Column]) -> pa.Table:
    table = Query(db, source).to_arrow()
    if table.num_columns != len(wanted):
        raise SqlError(f"the SELECT has {table.num_columns} column(s), {len(wanted)} are needed")
    return table.rename_columns([c.name for c in wanted])


def _spelled(table: TableDefinition, name: str) -> str:
    return next((c.name for c in table.schema.columns if c.name.lower() == name.lower()), name)
