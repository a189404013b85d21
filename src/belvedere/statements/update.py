"""UPDATE and DELETE: both read the rows that match, then write, and start again if somebody wrote
the table meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from belvedere.catalog.definitions import TableDefinition
from belvedere.collected import LARGEST, LARGEST_BYTES
from belvedere.encoding.ranges import Ranges
from belvedere.errors import Conflict, Dropped, SqlError, TooLarge
from belvedere.expressions import cast_to, lower, with_room
from belvedere.libraries import np, pa
from belvedere.operators.base import ID, WEIGHT, columns
from belvedere.operators.select import Expression, Select
from belvedere.readers.base_rows import codecs, decode_rows, table_records
from belvedere.readers.keyed import keyed_of
from belvedere.result import Message
from belvedere.sql.dialect import sql_of
from belvedere.sql.names import plain_name
from belvedere.sql.planner import condition_of
from belvedere.sql.query.keyed import ranges_where
from belvedere.sql.refusal import only
from belvedere.sql.relation import Scope, scope_of
from belvedere.statements.refusal import in_words_of
from belvedere.types import Vector

if TYPE_CHECKING:
    from belvedere.database import Database

_TRIES = 100


@with_room
def update(db: Database, statement: exp.Update) -> Message:
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

    return Message(f"{_modify(db, statement, table, scope, outputs, operations)} row(s) updated")


@with_room
def delete(db: Database, statement: exp.Delete) -> Message:
    if statement.args.get("tables"):
        raise SqlError("DELETE without FROM is not understood: write DELETE FROM t [WHERE ...]")
    only(statement, "DELETE")
    table, scope = _target(db, statement, "DELETE FROM")

    def operations(rows: pa.Table) -> tuple[pa.Array, pa.Array]:
        return rows.column(ID).combine_chunks(), pa.nulls(rows.num_rows, pa.binary())

    return Message(f"{_modify(db, statement, table, scope, (), operations)} row(s) deleted")


def _target(db: Database, statement: Any, words: str) -> tuple[TableDefinition, Scope]:
    """The table that a statement changes, and its columns under the table's name or alias."""
    table = db.state().table(plain_name(statement.this, words, alias=True))
    table.check_writable()
    if not db.store.capabilities.conditional_writes:
        raise SqlError(
            f"{table.name} is a foreign table, where rows may change between reading and writing:"
            " put and delete rows by their keys, or use a client of its own store"
        )
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
        with in_words_of("UPDATE", part.expression):
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
    with in_words_of(statement.key.upper(), where):
        select = Select(condition_of(where, scope), outputs)
        ranges = ranges_where(where, statement.this.alias_or_name, keyed_of(table))
    for _ in range(_TRIES):
        try:
            position, keys, values = _matching(db, table, ranges, select, operations)
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
    ranges: Ranges,
    select: Select,
    operations: Callable[[pa.Table], tuple[pa.Array, pa.Array]],
) -> tuple[Vector, pa.Array, pa.Array]:
    """The operations on the rows that match, and the position as of which they do."""
    found = _Operations()
    with db.store.base.snapshot() as snapshot:
        for keys, values in table_records(snapshot, table, ranges):
            rows = _selected(table, select, keys, values)
            if rows.num_rows:
                # an epoch reads the rows that are replaced
                replaced = values.nbytes * rows.num_rows // len(keys)
                found.add(*operations(rows), replaced)
        return snapshot.vector, *found.all()


def _selected(
    table: TableDefinition, select: Select, keys: pa.BinaryArray, values: pa.BinaryArray
) -> pa.Table:
    """The rows of a batch that match, with the values that they shall have."""
    data = decode_rows(table.schema, keys, values)
    weights = pa.array(np.ones(len(keys), np.int64))
    names = [*columns(len(data)), WEIGHT, ID]
    rows, errors = select.apply(pa.table([*data, weights, keys], names=names))
    if errors is None:
        return rows
    first = codecs(table.schema)[0].decode_one(errors.column(ID)[0].as_py())
    what = select.describe(errors.column("expression")[0].as_py())
    raise SqlError(f"{what} cannot be computed for the row with key {first}: nothing was changed")


class _Operations:
    """Keys and values of one write, which must not become too large."""

    def __init__(self) -> None:
        self._keys: list[pa.Array] = []
        self._values: list[pa.Array] = []
        self._count = self._size = 0

    def add(self, keys: pa.Array, values: pa.Array, replaced: int) -> None:
        """`replaced` is about how many bytes the rows have now."""
        self._keys.append(keys)
        self._values.append(values)
        self._count += len(keys)
        self._size += keys.nbytes + max(values.nbytes, replaced)
        if self._count > LARGEST:
            raise _too_many(f"more than {LARGEST} rows match")
        if self._size > LARGEST_BYTES:
            raise _too_many(f"the rows that match have more than {LARGEST_BYTES >> 20} MiB")

    def all(self) -> tuple[pa.Array, pa.Array]:
        empty = pa.array([], pa.binary())
        return pa.concat_arrays([empty, *self._keys]), pa.concat_arrays([empty, *self._values])


def _too_many(what: str) -> SqlError:
    return SqlError(f"{what}: do it in parts, by ranges of the key. Nothing was changed")


def _check_nulls(table: TableDefinition, rows: pa.Table) -> None:
    for i, column in enumerate(table.schema.columns):
        if not column.nullable and rows.column(f"c{i}").null_count:
            raise SqlError(f"column {column.name} must not be NULL: nothing was changed")
