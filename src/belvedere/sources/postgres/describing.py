"""Tables of PostgreSQL as relations: which columns are held exactly, which tables the log tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.errors import SourceError
from belvedere.sources.base import Relation
from belvedere.sources.postgres.columns import ENUM, Wire
from belvedere.sources.postgres.images import Wired
from belvedere.types import Column, Schema

if TYPE_CHECKING:
    from belvedere.sources.postgres.settings import Connection

_NO_ROWS = {
    "v": "is a view: follow the tables that it reads",
    "m": "is a materialized view, which the log does not tell: follow the tables that it reads",
    "f": "is a foreign table, whose changes are in the log of another server: follow it there",
    "p": "is partitioned: partitions that are attached or detached change its rows without a word"
    " in the log. Follow the partitions, which are tables of their own",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the server's catalog has it now."""

    number: int
    schema: str
    name: str
    kind: str
    persistence: str
    identity: str
    is_ours: bool
    is_readable: bool
    hides_rows: bool
    has_children: bool
    columns: tuple[tuple[str, Wire, str, bool, str], ...]  # name, type, its name, nullable, made
    key: tuple[str, ...]
    key_is_checked_late: bool

    @property
    def quoted(self) -> str:
        return f"{quote(self.schema)}.{quote(self.name)}"

    @property
    def wires(self) -> dict[str, Wire]:
        return {name: wire for name, wire, *_ in self.columns}


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def relations(connection: Connection) -> list[str]:
    query = """
        SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname
                    ELSE n.nspname || '.' || c.relname END
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname <> 'information_schema'
          AND n.nspname !~ '^pg_' ORDER BY 1"""
    return [name for (name,) in connection.execute(query)]


def find(connection: Connection, name: str) -> Table | None:
    """The table of a name: `orders` on the search path, or `sales.orders`; as it is written, or
    else in small letters.
    """
    for written in (name, name.lower()):
        regclass = ".".join(map(quote, written.split(".")))
        query = """
            SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
                   pg_has_role(c.relowner, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
                   row_security_active(c.oid),
                   EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = to_regclass(%s)"""
        row = connection.execute(query, (regclass,)).fetchone()
        if row is not None:
            schema, table, *letters = (_text(value) for value in row[1:6])
            ours, readable, hides, children = row[6:]
            columns, (key, late) = _columns(connection, row[0]), _key(connection, row[0])
            return Table(
                row[0],
                schema,
                table,
                letters[0],
                letters[1],
                letters[2],
                bool(ours),
                bool(readable),
                bool(hides),
                bool(children),
                columns,
                key,
                late,
            )
    return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value  # of the one-byte type


def _columns(connection: Connection, number: int) -> tuple[tuple[str, Wire, str, bool, str], ...]:
    query = """
        SELECT attname, atttypid, atttypmod, format_type(atttypid, atttypmod), NOT attnotnull,
               attgenerated
        FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
    rows = connection.execute(query, (number,)).fetchall()
    types = Types(connection)
    return tuple(
        (name, types.resolve(kind, modifier), shown, nullable, _text(made))
        for name, kind, modifier, shown, nullable, made in rows
    )


def _key(connection: Connection, number: int) -> tuple[tuple[str, ...], bool]:
    query = """
        SELECT a.attname, NOT i.indimmediate
        FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = %s AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place"""
    rows = connection.execute(query, (number,)).fetchall()
    return tuple(name for name, _ in rows), any(late for _, late in rows)


class Types:
    """The types of a database, by number."""

    def __init__(self, connection: Connection) -> None:
        query = """
            SELECT t.oid, CASE WHEN n.nspname = 'pg_catalog' THEN t.typname
                               ELSE n.nspname || '.' || t.typname END,
                   t.typtype, t.typbasetype, t.typtypmod
            FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
            WHERE t.typtype IN ('b', 'd', 'e') AND t.typelem = 0"""
        self._rows = {
            number: (name, _text(sort), base, modifier)
            for number, name, sort, base, modifier in connection.execute(query)
        }

    def resolve(self, number: int, modifier: int) -> Wire:
        """The type below domains; one that is not known is no type that we have."""
        name, sort, base, own = self._rows.get(number, ("", "", 0, -1))
        if sort == "d":
            return self.resolve(base, own)
        return Wire(ENUM if sort == "e" else name, modifier)


def existing(connection: Connection, name: str) -> Table:
    table = find(connection, name)
    if table is None:
        raise SourceError(
            f"there is no table {name!r} on the search path of this user: write its schema too, as"
            " in sales.orders, and grant USAGE on the schema"
        )
    return table


def describe(connection: Connection, name: str) -> Relation:
    """A table with its columns and key; refused if the log would not tell all about it."""
    table = existing(connection, name)
    check_table(table, name)
    columns = tuple(_column(name, *column) for column in table.columns)
    fixed = [Column(c.name, c.type, c.nullable and c.name not in table.key) for c in columns]
    return Relation(name, Schema(tuple(fixed), table.key))


def wired(connection: Connection, relation: Relation) -> Wired | None:
    """A relation with the types that it has at the server now; None if it was altered."""
    table = find(connection, relation.name)
    if table is None:
        return None
    wires = table.wires
    found = tuple(wires.get(name) for name in relation.schema.names)
    types = [None if wire is None else wire.type for wire in found]
    if types != [column.type for column in relation.schema.columns]:
        return None
    return Wired(relation, tuple(wire for wire in found if wire is not None))


def check_table(table: Table, name: str) -> None:
    if table.kind in _NO_ROWS:
        raise SourceError(f"{name} {_NO_ROWS[table.kind]}")
    if table.kind != "r":
        raise SourceError(f"{name} is no table: follow an ordinary table")
    if table.persistence != "p":
        raise SourceError(
            f"{name} is unlogged or temporary, so the log does not tell its changes: ALTER TABLE"
            f" {table.quoted} SET LOGGED"
        )
    if table.has_children:
        raise SourceError(f"other tables inherit from {name}: follow each of them by its name")
    if not table.is_readable:
        raise SourceError(f"this user may not read {name}: GRANT SELECT ON {table.quoted} TO it")
    if table.hides_rows:
        raise SourceError(
            f"row security hides rows of {name} from this user, and the log does not: ALTER ROLE"
            " it BYPASSRLS, or use another user"
        )
    if not table.key:
        raise SourceError(
            f"{name} has no primary key, so its rows cannot be told apart: ALTER TABLE"
            f" {table.quoted} ADD PRIMARY KEY (...)"
        )
    if table.key_is_checked_late:
        raise SourceError(
            f"the primary key of {name} is deferrable, so two rows may have the same key inside a"
            " transaction: make it NOT DEFERRABLE"
        )
    if table.identity != "f" and not table.is_ours:
        raise SourceError(
            f"the log does not tell whole rows before of {name}, and this user does not own it:"
            f" its owner must run ALTER TABLE {table.quoted} REPLICA IDENTITY FULL"
        )


def _column(table: str, name: str, wire: Wire, shown: str, nullable: bool, made: str) -> Column:
    if made:
        raise SourceError(
            f"column {name} of {table} is generated, and the log does not tell it: compute it in"
            " the view, and make it an ordinary column or drop it"
        )
    kind = wire.type
    if kind is None:
        raise SourceError(
            f"column {name} of {table} is of type {shown}, whose values cannot be held exactly:"
            f" {wire.advice}"
        )
    return Column(name, kind, nullable)
