"""Where the server is, connections to it, and what errors of the client mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from belvedere.errors import SourceError, SourceLost, SourceUnreachable

_INSTALL = 'pip install "belvedere[sources]"'
_CONNECT_SECONDS, _READ_SECONDS = 10, 60

# Codes of the server and of the client (2000 and above) when nobody is there, or not any more:
# shutdown, killed connection, too many connections, cannot connect, gone away, lost.
_AWAY = {1053, 1040, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006, 2013, 2055}
_DENIED = {1044, 1045, 1142, 1143, 1227, 1370}
_LOG_ERROR = 1236  # the server cannot read its log for us; the text says why
_LOST = (
    "could not find",
    "not find first log",
    "impossible position",
    "purged",
    "client requested",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`database` is the one whose tables are relations. `ssl_ca`: a file; asks for TLS."""

    host: str
    database: str
    user: str
    password: str = field(default="", repr=False)
    port: int = 3306
    ssl_ca: str | None = None

    @property
    def server(self) -> str:
        return f"{self.host}:{self.port}"

    def arguments(self) -> dict[str, Any]:
        """Those of a connection, whatever it is for."""
        found: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _READ_SECONDS,
            "write_timeout": _READ_SECONDS,
        }
        if self.ssl_ca is not None:
            found["ssl_ca"] = self.ssl_ca
        return found


def library() -> Any:
    try:
        import pymysql
    except ImportError:
        raise SourceError(f"MariaDB needs a package that is not installed: {_INSTALL}") from None
    return pymysql


def replication() -> Any:
    library()
    try:
        import pymysqlreplication
    except ImportError:
        raise SourceError(f"MariaDB needs a package that is not installed: {_INSTALL}") from None
    return pymysqlreplication


def connect(settings: Settings) -> Any:
    """A connection for queries: values come as bytes, times are those of UTC, nothing of the
    server's defaults changes what a query says.
    """
    with translated(settings):
        return library().connect(
            **settings.arguments(),
            database=settings.database,
            autocommit=True,
            conv=library().converters.encoders,
            use_unicode=False,
            sql_mode="",
            init_command="SET time_zone = '+00:00'",
        )


@contextmanager
def translated(settings: Settings) -> Iterator[None]:
    """Errors of the client as ours."""
    try:
        yield
    except library().err.MySQLError as error:
        raise _meaning(settings, error) from error
    except OSError as error:
        raise SourceUnreachable(f"MariaDB at {settings.server} is gone: {error}") from error


def _meaning(settings: Settings, error: Exception) -> SourceError:
    code = error.args[0] if error.args else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    # The client's own errors have no code: packets that are out of order, when a connection ends.
    if code == _LOG_ERROR and any(words in text.lower() for words in _LOST):
        return lost(settings, text)
    if code in _AWAY or code == _LOG_ERROR or not isinstance(code, int):
        return SourceUnreachable(f"MariaDB at {settings.server} does not answer: {text}")
    if code in _DENIED:
        return SourceError(
            f"MariaDB at {settings.server} refuses: {text}. The user needs SELECT on"
            f" {settings.database}.*, REPLICATION SLAVE and BINLOG MONITOR"
        )
    if code == 1049:
        return SourceError(f"MariaDB at {settings.server} has no database {settings.database!r}")
    return SourceError(f"MariaDB at {settings.server} answers with error {code}: {text}")


def lost(settings: Settings, why: str) -> SourceLost:
    return SourceLost(
        f"the binary log of MariaDB at {settings.server} does not have what was not followed yet:"
        f" {why}. Load its relations again, and let the server keep its log for longer"
        " (binlog_expire_logs_seconds)"
    )


def rows(connection: Any, query: str, arguments: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """A small answer, as texts."""
    with connection.cursor() as cursor:
        cursor.execute(query, arguments or None)
        return [tuple(_text(value) for value in row) for row in cursor.fetchall()]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
