"""A database of a real MariaDB for one test, its users' side, and a copy that is kept from what is
followed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pymysql

from belvedere.sources.base import Event, Question, Relation, SourceTransaction, Stopped
from belvedere.sources.mariadb import MariaDBSource, Settings
from belvedere.sources.servers import Server

PATIENCE = 120.0


class Users:
    """A connection of somebody who writes; statements are executed one by one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: Any = pymysql.connect(
            host=settings.host,
            port=settings.port,
            user=settings.user,
            password=settings.password,
            database=settings.database,
            charset="utf8mb4",
            autocommit=True,
            init_command="SET lock_wait_timeout = 10, innodb_lock_wait_timeout = 10",
        )

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last one."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall()) if statements else []

    def transaction(self, *statements: str) -> None:
        self.run("BEGIN", *statements, "COMMIT")

    def close(self) -> None:
        self._connection.close()


class Copy:
    """The rows of relations by key, kept from what is followed; each change must fit to it."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self.relations = {relation.name: relation for relation in relations}
        self.rows: dict[str, dict[Any, dict[str, Any]]] = {name: {} for name in self.relations}
        self.transactions: list[SourceTransaction] = []
        self.stopped: list[Stopped] = []
        self.position = ""

    def take(self, events: Sequence[Event]) -> None:
        for event in events:
            self.position = event.position
            if isinstance(event, Stopped):
                self.stopped.append(event)
            elif isinstance(event, SourceTransaction):
                self.transactions.append(event)
                self.apply(event)

    def apply(self, transaction: SourceTransaction) -> None:
        for change in transaction.changes:
            copy, relation = self.rows[change.relation], self.relations[change.relation]
            assert change.before.schema == change.after.schema == relation.schema.arrow
            for row in change.before.to_pylist():
                assert copy.pop(key_of(relation, row)) == row
            for row in change.after.to_pylist():
                assert key_of(relation, row) not in copy
                copy[key_of(relation, row)] = row


def key_of(relation: Relation, row: dict[str, Any]) -> Any:
    return tuple(row[name] for name in relation.schema.key)


def rows_of(relation: Relation, tables: Iterator[pa.Table]) -> dict[Any, dict[str, Any]]:
    found = [row for table in tables for row in table.to_pylist()]
    by_key = {key_of(relation, row): row for row in found}
    assert len(by_key) == len(found)
    return by_key


def all_rows(source: MariaDBSource, relation: Relation) -> dict[Any, dict[str, Any]]:
    answer = source.ask([Question(relation, relation.schema.names)])
    return rows_of(relation, answer.tables[0])


def follow_until(source: MariaDBSource, copy: Copy, position: str) -> None:
    """Follow until everything up to a position is in the copy."""
    relations = list(copy.relations.values())
    monitor = source.follow(relations, copy.position)
    deadline = time.monotonic() + PATIENCE
    try:
        while not source.covers(copy.position, position):
            copy.take(monitor.poll(1.0))
            monitor.confirm(copy.position)
            assert time.monotonic() < deadline, "the log did not come so far"
    finally:
        monitor.close()


@contextmanager
def database(server: Server) -> Iterator[Settings]:
    """A database of this name is the test's alone."""
    address = server.address
    name = f"test_{secrets.token_hex(6)}"
    whole = Settings(address.host, address.database, address.user, address.password, address.port)
    owner = Users(whole)
    owner.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield Settings(address.host, name, address.user, address.password, address.port)
    finally:
        owner.close()
        last = Users(whole)  # the server may have been killed meanwhile
        for *_, name in last.run("XA RECOVER"):  # they would keep the tables locked
            last.run(f"XA ROLLBACK '{name}'")
        last.run(f"DROP DATABASE {name}")
        last.close()
