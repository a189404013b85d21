"""INSERT, UPDATE and DELETE. The last two read the base table, then write, and start again if
somebody wrote it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from belvedere import evaluation
from belvedere.catalog.definitions import TableDefinition
from belvedere.errors import Conflict, Dropped, SqlError, TooLarge, Unsupported
from belvedere.expressions import cast_to, is_volatile, lower, with_room
from belvedere.libraries import duckdb, np, pa
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.select import Expression, Select
from belvedere.readers.base_rows import codecs, decode_rows
from belvedere.result import Query
from belvedere.sql.dialect import sql_of
from belvedere.sql.names import plain_name
from belvedere.sql.planner import condition_of
from belvedere.sql.query.running import readable
from belvedere.sql.refusal import Refused, only
from belvedere.sql.relation import Scope, scope_of
from belvedere.types import Column, Vector

if TYPE_CHECKING:
    from belvedere.database import Database

_TRIES = 100
# rows that one statement may change: it is one transaction, and an epoch contains all of it
LARGEST = 1_000_000
LARGEST_BYTES = 128 << 20
_NOTHING = Scope(())
_UNREAD = "CAST_INVALID_INPUT"  # there is nothing more to say than which text and which type
_COMPUTED = "compute the value first, and write it as a literal"
_FIRST = "SELECT the values first, and write them as literals"


@with_room
def insert(db: Database, statement: exp.Insert) -> str:
    """INSERT ... VALUES or SELECT: rows are put, so a row with the same key is overwritten."""
    if statement.args.get("overwrite"):
        raise SqlError("INSERT OVERWRITE is not understood: DELETE first, then INSERT")
    only(statement, "INSERT")
    target = statement.this
    table = db.state().table(
        plain_name(target.this if isinstance(target, exp.Schema) else target, "INSERT INTO")
    )
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
    return f"{rows.num_rows} row(s) put"


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
    with _in_words_of("INSERT", node, "use INSERT INTO ... SELECT"):
        return str(cast_to(lower(node, scope.resolve), column.type).sql)


@contextmanager
def _in_words_of(statement: str, node: Any, instead: str = _FIRST) -> Iterator[None]:
    """What the rules of expressions refuse, said of a statement: they speak of views.

    `instead` is the way around subqueries.
    """
    if node is not None and node.find(exp.Query, exp.Exists):
        raise Refused("a subquery", statement, instead)
    try:
        yield
    except Unsupported as error:
        changing = node is not None and any(map(is_volatile, node.walk()))
        raise Refused(
            error.construct, statement, _COMPUTED if changing else error.instead
        ) from error


def _selected(db: Database, source: Any, wanted: list[Column]) -> pa.Table:
    table = Query(db, source).to_arrow()
    if table.num_columns != len(wanted):
        raise SqlError(f"the SELECT has {table.num_columns} column(s), {len(wanted)} are needed")
    return table.rename_columns([c.name for c in wanted])


@with_room
def update(db: Database, statement: exp.Update) -> str:
    only(statement, "UPDATE")
    table, scope = _target(db, statement, "UPDATE")
    sets = _assignments(statement, table, scope)
    outputs = tuple(
        sets.get(c.name, Expression(f'"c{i}"', c.type, c.name, column=i))
        for i, c in enumerate(table.schema.columns)
    )

    def operations(rows: pa.Table) -> tuple[pa.Array, pa.Array]:
        value_names = [c.name for c in table.schema.value_columns]
        places = [table.schema.names.index(name) for name in value_names]
        _check_nulls(table, rows)
        values = codecs(table.schema)[1].encode(
            [rows.column(f"c{i}") for i in places], rows=rows.num_rows
        )
        return rows.column(ID).combine_chunks(), values

    return f"{_modify(db, statement, table, scope, outputs, operations)} row(s) updated"


@with_room
def delete(db: Database, statement: exp.Delete) -> str:
    if statement.args.get("tables"):
        raise SqlError("DELETE without FROM is not understood: write DELETE FROM t [WHERE ...]")
    only(statement, "DELETE")
    table, scope = _target(db, statement, "DELETE FROM")

    def operations(rows: pa.Table) -> tuple[pa.Array, pa.Array]:
        return rows.column(ID).combine_chunks(), pa.nulls(rows.num_rows, pa.binary())

    return f"{_modify(db, statement, table, scope, (), operations)} row(s) deleted"


def _target(db: Database, statement: Any, words: str) -> tuple[TableDefinition, Scope]:
    """The table that a statement changes, and its columns under the table's name or alias."""
    table = db.state().table(plain_name(statement.this, words, alias=True))
    if statement.this.args.get("alias"):
        only(statement.this.args["alias"], words)
    return table, scope_of(statement.this.alias_or_name, table.schema.columns, lambda i: f'"c{i}"')


def _assignments(
    statement: exp.Update, table: TableDefinition, scope: Scope
) -> dict[str, Expression]:
    if not statement.expressions:
        raise SqlError("UPDATE sets nothing: write UPDATE t SET column = value [WHERE ...]")
    sets: dict[str, Expression] = {}
    for part in statement.expressions:
        if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
            raise SqlError(f"{sql_of(part)} is not an assignment: write column = value")
        column = table.schema.column(scope.find(part.this).name)
        if column.name in sets:
            raise SqlError(f"column {column.name} is set twice: set it once")
        if column.name in table.schema.key:
            raise SqlError(
                f"{column.name} is part of the key: DELETE the row and INSERT it under its new key"
            )
        with _in_words_of("UPDATE", part.expression):
            typed = cast_to(lower(part.expression, scope.resolve), column.type)
        sets[column.name] = Expression(typed.sql, column.type, sql_of(part), True)
    return sets


def _modify(
    db: Database,
    statement: Any,
    table: TableDefinition,
    scope: Scope,
    outputs: tuple[Expression, ...],
    operations: Callable[[pa.Table], tuple[pa.Array, pa.Array]],
) -> int:
    where = statement.args["where"].this if statement.args.get("where") else None
    with _in_words_of(statement.key.upper(), where):
        select = Select(condition_of(where, scope), outputs)
    for _ in range(_TRIES):
        try:
            position, keys, values = _matching(db, table, select, operations)
            if not len(keys):
                return 0
            db.wrote(
                db.store.base.write(
                    table.id, keys, values, table.before_images, unless_after=position
                )
            )
        except Conflict:
            continue
        except TooLarge:
            raise _too_many("together they are too large for one transaction") from None
        except Dropped:
            raise Dropped(table.name) from None
        return len(keys)
    raise SqlError(
        f"{table.name} is written so often that this statement found no quiet moment: narrow its"
        " WHERE, or try again"
    )


def _matching(
    db: Database,
    table: TableDefinition,
    select: Select,
    operations: Callable[[pa.Table], tuple[pa.Array, pa.Array]],
) -> tuple[Vector, pa.Array, pa.Array]:
    keys, values, count, size = [], [], 0, 0
    with db.store.base.snapshot() as snapshot:
        for k, v in snapshot.scan(table.id):
            data = decode_rows(table.schema, k, v)
            weights = pa.array(np.ones(len(k), np.int64))
            rows, errors = select.apply(
                pa.table([*data, weights, k], names=[*columns(len(data)), WEIGHT, ID])
            )
            if errors is not None:
                first = codecs(table.schema)[0].decode_one(errors.column(ID)[0].as_py())
                what = select.describe(errors.column("expression")[0].as_py())
                raise SqlError(
                    f"{what} cannot be computed for the row with key {first}: nothing was changed"
                )
            count += rows.num_rows
            if count > LARGEST:
                raise _too_many(f"more than {LARGEST} rows match")
            if rows.num_rows:
                found = operations(rows)
                size += found[0].nbytes + found[1].nbytes
                keys.append(found[0])
                values.append(found[1])
            if size > LARGEST_BYTES:
                raise _too_many(f"the rows that match have more than {LARGEST_BYTES >> 20} MiB")
        position = snapshot.vector
    empty = pa.array([], pa.binary())
    return position, pa.concat_arrays([empty, *keys]), pa.concat_arrays([empty, *values])


def _too_many(what: str) -> SqlError:
    return SqlError(f"{what}: do it in parts, by ranges of the key. Nothing was changed")


def _check_nulls(table: TableDefinition, rows: pa.Table) -> None:
    for i, column in enumerate(table.schema.columns):
        if not column.nullable and rows.column(f"c{i}").null_count:
            raise SqlError(f"column {column.name} must not be NULL: nothing was changed")


def _spelled(table: TableDefinition, name: str) -> str:
    return next((c.name for c in table.schema.columns if c.name.lower() == name.lower()), name)
