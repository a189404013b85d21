"""What the conformance suite needs of each kind of source: the source, and somebody who writes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

from belvedere.sources.base import Source
from belvedere.sources.mariadb.options import read_options
from belvedere.sources.registry import open_source
from belvedere.sources.servers import Address, Server
from tests.sources.mariadb import Users
from tests.sources.mariadb_types import TYPES
from tests.sources.postgres_types import DECLARED, EDGES

Edges = dict[str, list[tuple[str, Any]]]


class Writer(Protocol):
    def run(self, *statements: str) -> object:
        """Each is committed by itself, but between BEGIN and COMMIT."""

    def close(self) -> None: ...


class Backend(Protocol):
    """A database of its own.

    `has_transactions`: what is followed are the transactions of writers, and there may be several
    relations; else what comes is the difference of two moments, of the relation that was named.
    """

    has_transactions: bool

    def open(self, relation: str = ...) -> Source: ...

    def writer(self) -> Writer: ...


class ServerBackend(Backend, Protocol):
    """A database on a server: with types of its own, and a process that may be killed."""

    server: Server
    database: str
    declarations: tuple[str, ...]  # run before a table of all types is made

    def types(self) -> Edges:
        """Column types with literals at their edges, and what they are here."""


def _account(address: Address) -> dict[str, str]:
    return {
        "host": address.host,
        "port": str(address.port),
        "user": address.user,
        "password": address.password,
    }


@dataclass
class PostgresBackend:
    server: Server
    database: str
    has_transactions: bool = True
    declarations: tuple[str, ...] = DECLARED

    def options(self) -> dict[str, str]:
        return {**_account(self.server.address), "database": self.database}

    def open(self, relation: str = "") -> Source:
        return open_source("postgres", self.database, self.options())

    def writer(self) -> PostgresWriter:
        return PostgresWriter(self.options())

    def types(self) -> Edges:
        return EDGES


class PostgresWriter:
    def __init__(self, options: dict[str, str]) -> None:
        named = {**options, "dbname": options["database"]}
        del named["database"]
        self.connection = psycopg.connect(**named, autocommit=True)  # type: ignore[arg-type]  # texts all

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement.encode())

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement.encode()).fetchall()

    def close(self) -> None:
        self.connection.close()


def new_postgres(server: Server) -> PostgresBackend:
    name = f"t{secrets.token_hex(4)}"
    maker = PostgresBackend(server, server.address.database).writer()
    maker.run(f"CREATE DATABASE {name}")
    maker.close()
    return PostgresBackend(server, name)


@dataclass
class MariaDBBackend:
    server: Server
    database: str
    has_transactions: bool = True
    declarations: tuple[str, ...] = ()

    def options(self) -> dict[str, str]:
        return {**_account(self.server.address), "database": self.database}

    def open(self, relation: str = "") -> Source:
        return open_source("mariadb", self.database, self.options())

    def writer(self) -> Users:
        """Literals of standard SQL, where a backslash is one; nothing is cut to fit."""
        writer = Users(read_options(self.options()))
        writer.run("SET sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES', time_zone = '+00:00'")
        return writer

    def types(self) -> Edges:
        return {
            column: [edge for edge in edges if "\\" not in edge[0]]
            for column, (_, edges) in TYPES.items()
        }


def new_mariadb(server: Server) -> MariaDBBackend:
    name = f"t{secrets.token_hex(4)}"
    maker = MariaDBBackend(server, server.address.database).writer()
    maker.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    maker.close()
    return MariaDBBackend(server, name)
