"""Where the server is, connections to it, and what errors of the client mean."""

from __future__ import annotations

import re
import select
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from belvedere.errors import SourceError, SourceUnreachable

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

_INSTALL = 'pip install "belvedere[sources]"'
_NEEDED = ("host", "database", "user")
_KNOWN = (
    *_NEEDED,
    "password",
    "port",
    "sslmode",
    "sslrootcert",
    "slot",
    "publication",
)
_CONNECT_SECONDS = 10
_LONGEST_NAME = 63
# Texts of values must not depend on what a database or a role prefers. A follower that is busy
# keeping what it has got may be silent for some minutes.
_SESSION = (
    "-c datestyle=ISO,YMD -c timezone=UTC -c extra_float_digits=3 -c bytea_output=hex"
    " -c wal_sender_timeout=300s -c standard_conforming_strings=on -c statement_timeout=0"
    " -c idle_in_transaction_session_timeout=0 -c synchronous_commit=local"
)
# Classes of errors when nobody is there, or not any more: connection, resources, shutdown.
_AWAY = ("08", "53", "57P", "58")
# Words of refusals while connecting, where the client gives no code.
_REFUSED = ("authentication failed", "no pg_hba.conf entry", "does not exist", "permission denied")


@dataclass(frozen=True, slots=True)
class Settings:
    """`database` is the one whose tables are relations; `slot` and `publication` are ours there."""

    host: str
    database: str
    user: str
    slot: str
    publication: str
    password: str = field(default="", repr=False)
    port: int = 5432
    ssl: Mapping[str, str] = field(default_factory=dict)

    @property
    def server(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"


def read_options(name: str, options: Mapping[str, str]) -> Settings:
    """Options of CREATE SOURCE; refuses missing, unknown and wrong ones."""
    unknown = sorted(set(options) - set(_KNOWN))
    if unknown:
        raise SourceError(
            f"a source of type postgres has no option {', '.join(unknown)}: use {', '.join(_KNOWN)}"
        )
    missing = [option for option in _NEEDED if not options.get(option)]
    if missing:
        raise SourceError(f"a source of type postgres needs the options {', '.join(missing)}")
    own = "belvedere_" + re.sub(r"[^a-z0-9_]", "_", name.lower())
    return Settings(
        host=options["host"],
        database=options["database"],
        user=options["user"],
        slot=_check_slot(options.get("slot", own)),
        publication=_check_length("publication", options.get("publication", own)),
        password=options.get("password", ""),
        port=_port(options.get("port", "5432")),
        ssl={key: options[key] for key in ("sslmode", "sslrootcert") if key in options},
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise SourceError(f"port = {text!r} is no port: use a number from 1 to 65535")
    return int(text)


def _check_slot(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise SourceError(
            f"slot = {name!r} is no name of a slot: use small letters, digits and underscores"
        )
    return _check_length("slot", name)


def _check_length(option: str, name: str) -> str:
    if not 0 < len(name.encode()) <= _LONGEST_NAME:
        raise SourceError(
            f"{option} = {name!r} has {len(name.encode())} bytes: use the option {option} to give"
            f" a name of 1 to {_LONGEST_NAME}"
        )
    return name


def library() -> Any:
    try:
        import psycopg
    except ImportError:
        raise SourceError(f"PostgreSQL needs a package that is not installed: {_INSTALL}") from None
    return psycopg


def connect(settings: Settings, **more: Any) -> Connection:
    arguments: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "user": settings.user,
        "dbname": settings.database,
        "password": settings.password,
        "autocommit": True,
        "client_encoding": "utf8",
        "connect_timeout": _CONNECT_SECONDS,
        "options": _SESSION,
        "application_name": settings.slot,
        **settings.ssl,
        **more,
    }
    with translated(settings):
        connection: Connection = library().connect(**arguments)
        connection.prepare_threshold = None
        return connection


@contextmanager
def translated(settings: Settings) -> Iterator[None]:
    """Errors of the client as ours."""
    try:
        yield
    except library().Error as error:
        raise meaning(settings, error) from error


def meaning(settings: Settings, error: Exception) -> SourceError:
    text = " ".join(str(error).split())
    code = getattr(error, "sqlstate", None)
    if code is None:
        if any(words in text for words in _REFUSED):
            return SourceError(f"PostgreSQL at {settings.server} refuses: {text}")
        return SourceUnreachable(f"PostgreSQL at {settings.server} does not answer: {text}")
    if code.startswith(_AWAY):
        return SourceUnreachable(f"PostgreSQL at {settings.server} does not answer: {text}")
    return SourceError(f"PostgreSQL at {settings.server} answers with error {code}: {text}")


class Connections:
    """Connections for queries: each is lent to one thread at a time, and kept for the next."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not _is_gone(connection):
                    return connection
                connection.close()
        return connect(self._settings)

    def give_back(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """A connection for some statements; after an error it is closed."""
        connection = self.take()
        try:
            with translated(self._settings):
                yield connection
        except BaseException:  # whatever it was: the state of the session is not known
            connection.close()
            raise
        self.give_back(connection)

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().close()


def _is_gone(connection: Connection) -> bool:
    """An idle connection that has something to say says goodbye."""
    if connection.closed:
        return True
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    return bool(readable)
