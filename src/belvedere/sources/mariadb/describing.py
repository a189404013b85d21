"""Tables of MariaDB as relations: which columns can be held exactly, which tables the log shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.errors import SourceError
from belvedere.sources.base import Relation
from belvedere.sources.mariadb.settings import rows
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    SqlType,
    decimal,
)

_INTEGERS = {"tinyint": INT, "smallint": INT, "mediumint": INT, "int": INT, "bigint": BIGINT}
_UNSIGNED = {"int": BIGINT, "bigint": decimal(20)}
_SIMPLE = {
    "year": INT,
    "float": DOUBLE,
    "double": DOUBLE,
    "date": DATE,
    "datetime": TIMESTAMP,
    "timestamp": TIMESTAMP,
    "binary": BINARY,
    "varbinary": BINARY,
    "tinyblob": BINARY,
    "blob": BINARY,
    "mediumblob": BINARY,
    "longblob": BINARY,
}
_TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum"}
_CHARSETS = {"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"}
_ADVICE = {
    "time": "store seconds as an INT, or the time with its date as a DATETIME",
    "set": "store each member as a column of its own, or the list as a VARCHAR",
    "bit": "use BIT(1), an integer or BINARY",
    "uuid": "store it as CHAR(36) or BINARY(16)",
    "inet4": "store it as VARCHAR(15)",
    "inet6": "store it as VARCHAR(39)",
}


def relations(connection: Any, database: str) -> list[str]:
    query = (
        "SELECT table_name FROM information_schema.tables"
        " WHERE table_schema = %s AND table_type = 'BASE TABLE' ORDER BY table_name"
    )
    return [name for (name,) in rows(connection, query, (database,))]


def describe(connection: Any, database: str, name: str) -> Relation:
    """A table with its columns and key; refused if the log would not tell all about it."""
    _check_table(connection, database, name)
    columns = [_column(name, found) for found in _columns(connection, database, name)]
    key = _key(connection, database, name)
    _check_cascades(connection, database, name)
    fixed = [Column(c.name, c.type, c.nullable and c.name not in key) for c in columns]
    return Relation(name, Schema(tuple(fixed), key))


def _check_table(connection: Any, database: str, name: str) -> None:
    query = (
        "SELECT table_type, engine FROM information_schema.tables"
        " WHERE table_schema = %s AND table_name = %s"
    )
    found = rows(connection, query, (database, name))
    if not found:
        raise SourceError(
            f"there is no table {name!r} in database {database}, or the user may not read it: see"
            " SHOW TABLES, and grant SELECT"
        )
    kind, engine = found[0]
    if kind != "BASE TABLE":
        raise SourceError(
            f"{name} is a {kind.lower()} table, which the log does not show as rows that come and"
            " go: follow an ordinary table"
            if kind != "VIEW"
            else f"{name} is a view: follow the tables that it reads"
        )
    if engine != "InnoDB":
        raise SourceError(
            f"{name} is a table of {engine}, which has no transactions and no snapshots: ALTER"
            f" TABLE {name} ENGINE = InnoDB"
        )


def _check_cascades(connection: Any, database: str, name: str) -> None:
    query = (
        "SELECT constraint_name, delete_rule, update_rule"
        " FROM information_schema.referential_constraints"
        " WHERE constraint_schema = %s AND table_name = %s"
    )
    for constraint, *rules in rows(connection, query, (database, name)):
        for rule in rules:
            if rule in ("CASCADE", "SET NULL", "SET DEFAULT"):
                raise SourceError(
                    f"the foreign key {constraint} of {name} changes its rows by {rule}, and the"
                    " log of MariaDB does not show that: use RESTRICT, and let the application or"
                    " a trigger change the rows"
                )


def _key(connection: Any, database: str, name: str) -> tuple[str, ...]:
    query = (
        "SELECT column_name, sub_part FROM information_schema.statistics"
        " WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY'"
        " ORDER BY seq_in_index"
    )
    found = rows(connection, query, (database, name))
    if not found:
        raise SourceError(
            f"{name} has no primary key, so its rows cannot be told apart: ALTER TABLE {name} ADD"
            " PRIMARY KEY (...)"
        )
    for column, part in found:
        if part is not None:
            raise SourceError(
                f"the primary key of {name} has only the first {part} characters of {column}: use"
                " whole columns"
            )
    return tuple(column for column, _ in found)


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    nullable: str
    kind: str
    full: str
    precision: str | None
    scale: str | None
    charset: str | None
    extra: str


def _columns(connection: Any, database: str, name: str) -> Sequence[_Found]:
    query = (
        "SELECT column_name, is_nullable, data_type, column_type, numeric_precision,"
        " numeric_scale, character_set_name, extra FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
    )
    return [_Found(*found) for found in rows(connection, query, (database, name))]


def _column(table: str, found: _Found) -> Column:
    full = found.full.lower()
    if "virtual" in found.extra.lower():
        raise _refused(table, found, "is computed when it is read: make it STORED, or drop it")
    if "compressed" in full:
        raise _refused(table, found, "is compressed in the log too: store it uncompressed")
    return Column(found.name, _type(table, found, full), found.nullable == "YES")


def _type(table: str, found: _Found, full: str) -> SqlType:
    kind = found.kind.lower()
    unsigned = "unsigned" in full
    if unsigned and kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if kind in _INTEGERS:
        return _INTEGERS[kind]
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == "bit" and found.precision == "1":
        return BOOLEAN
    if kind == "decimal":
        return _decimal(table, found)
    if kind in _TEXTS:
        _check_charset(table, found)
        return STRING
    raise _refused(table, found, f"has no type here: {_ADVICE.get(kind, 'convert it')}")


def _decimal(table: str, found: _Found) -> SqlType:
    precision, scale = int(found.precision or 10), int(found.scale or 0)
    if precision > 38:
        raise _refused(table, found, "has more than 38 digits: use DECIMAL(38, s) at most")
    return decimal(precision, scale)


def _check_charset(table: str, found: _Found) -> None:
    if found.charset not in _CHARSETS:
        raise _refused(
            table,
            found,
            f"has the character set {found.charset}, which cannot be read from the log for sure:"
            f" ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4",
        )
    # Names of an enumeration travel in the log's description of the table, as the client's UTF-8.
    if found.kind.lower() == "enum" and found.charset == "latin1" and not found.full.isascii():
        raise _refused(table, found, "has names that are not ASCII in latin1: use utf8mb4")


def _refused(table: str, found: _Found, why: str) -> SourceError:
    return SourceError(f"column {found.name} of {table}, {found.full.upper()}, {why}")
