"""Real servers of the scenario on sources: those who write there, and bare clients that read what
we read.

A bare client is what the client library does by itself: libpq gives out messages, mysql-replication
rows as dictionaries; COPY and SELECT give rows. It keeps nothing.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from belvedere.errors import SourceError
from belvedere.sources.servers import MariaDBServer, PostgresServer, Server
from belvedere.sources.servers.mariadb import missing as missing_mariadb
from belvedere.sources.servers.postgres import find_programs
from belvedere.waiting import wait_until

SOURCE = "bench"
_CLIENTS = ("psycopg", "pymysql", "pymysqlreplication")
_TABLE = "CREATE TABLE {} (id BIGINT PRIMARY KEY, grp INT, val BIGINT)"
_FILL = "INSERT INTO {} SELECT seq, seq % 1000, seq FROM {}"
_ROWS = 10_000  # that the bare client takes at once
_SLOT = "bare"
_HEADER, _UPDATE = 25, ord("U")  # bytes before a message of the log, the kind of one


def missing() -> str:
    """What servers or their clients lack on this machine, and how to get it."""
    if not all(importlib.util.find_spec(name) for name in _CLIENTS):
        return 'clients of databases are not installed: pip install "belvedere[sources]"'
    try:
        find_programs()
    except SourceError as error:
        return str(error)
    return missing_mariadb()


class Users(ABC):
    """Those who write at a server, with one connection; each statement is a transaction."""

    kind = ""
    series = ""  # the numbers from 1 to some number, as a table with a column `seq`

    def __init__(self, server: Server) -> None:
        self.address = server.address
        self.connection = self._connect()

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def run(self, statement: str) -> None: ...

    @abstractmethod
    def rows(self, statement: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    def mark(self) -> None:
        """Where the bare client will read the log from."""

    @abstractmethod
    def read_log(self, changes: int) -> None:
        """By the bare client, from the mark on, until so many rows of `r` were changed."""

    @abstractmethod
    def forget(self) -> None:
        """The mark."""

    @abstractmethod
    def read_table(self, table: str) -> int:
        """By the bare client; the number of rows, or of bytes."""

    def create(self, table: str, rows: int) -> None:
        self.run(_TABLE.format(table))
        self.run(_FILL.format(table, self.series.format(rows)))

    def totals(self, table: str) -> tuple[int, int]:
        ((count, total),) = self.rows(f"SELECT count(*), sum(val) FROM {table}")
        return int(count), int(total)

    def close(self) -> None:
        self.connection.close()


class PostgresUsers(Users):
    kind = "postgres"
    series = "generate_series(1, {}) AS t (seq)"

    def _connect(self) -> Any:
        import psycopg

        address = self.address
        return psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.database,
            user=address.user,
            password=address.password,
            autocommit=True,
        )

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.connection.execute(statement).fetchall()
        return found

    def mark(self) -> None:
        self.run(f"SELECT pg_create_logical_replication_slot('{_SLOT}', 'pgoutput')")

    def read_log(self, changes: int) -> None:
        """Messages as they come."""
        from belvedere.sources.postgres.settings import read_options
        from belvedere.sources.postgres.stream import Stream

        address = self.address
        options = {
            "host": address.host,
            "port": str(address.port),
            "user": address.user,
            "password": address.password,
            "database": address.database,
            "slot": _SLOT,
        }
        stream, found = Stream(read_options(SOURCE, options), 0), 0
        while found < changes:
            size, message = stream.get()
            if size == 0:
                stream.wait(1.0)
            elif size < 0:
                raise stream.ended()
            else:
                found += size > _HEADER and message[_HEADER] == _UPDATE
        stream.close()

    def forget(self) -> None:
        """As soon as the server has noticed that the client is gone."""
        from psycopg.errors import ObjectInUse

        def forgotten() -> bool | None:
            try:
                self.run(f"SELECT pg_drop_replication_slot('{_SLOT}')")
            except ObjectInUse:
                return None
            return True

        wait_until(forgotten, None)

    def read_table(self, table: str) -> int:
        text = f"COPY {table} TO STDOUT (FORMAT binary)"
        with self.connection.cursor() as cursor, cursor.copy(text) as copy:
            return sum(len(part) for part in copy)


class MariaDBUsers(Users):
    kind = "mariadb"
    series = "seq_1_to_{}"

    def _connect(self) -> Any:
        import pymysql

        return pymysql.connect(**self._account(), database=self.address.database, autocommit=True)

    def _account(self) -> dict[str, Any]:
        address = self.address
        return {
            "host": address.host,
            "port": address.port,
            "user": address.user,
            "password": address.password,
        }

    def run(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def mark(self) -> None:
        self._file, self._offset = self.rows("SHOW MASTER STATUS")[0][:2]

    def read_log(self, changes: int) -> None:
        from pymysqlreplication import BinLogStreamReader, row_event

        stream = BinLogStreamReader(
            connection_settings=self._account(),
            server_id=1_234_567,
            blocking=True,
            resume_stream=True,  # without it the place is ignored
            log_file=self._file,
            log_pos=self._offset,
            only_events=[row_event.UpdateRowsEvent],
            only_tables=["r"],
            pymysql_wrapper=_connect_by_its_name,
            enable_logging=False,
        )
        found = 0
        while found < changes:
            found += len(stream.fetchone().rows)
        stream.close()

    def forget(self) -> None:
        """A mark is a place in a log that the server keeps anyhow."""

    def read_table(self, table: str) -> int:
        from pymysql.cursors import SSCursor

        found = 0
        with self.connection.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            while rows := cursor.fetchmany(_ROWS):
                found += len(rows)
        return found


def _connect_by_its_name(db: str | None = None, **arguments: Any) -> Any:
    """The library names a database in an old way, of which the client warns."""
    import pymysql

    return pymysql.connect(database=db, **arguments)


@contextmanager
def servers(work: Path) -> Iterator[tuple[Users, ...]]:
    """Both, up until the end, with data below a directory that goes with them."""
    with ExitStack() as stack:
        found = []
        for server, kind in (
            (PostgresServer(work / "postgres"), PostgresUsers),
            (MariaDBServer(work / "mariadb"), MariaDBUsers),
        ):
            stack.callback(server.down)
            server.up()
            users = kind(server)
            stack.callback(users.close)
            found.append(users)
        yield tuple(found)
