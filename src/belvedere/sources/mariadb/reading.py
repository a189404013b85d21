"""The client library's reader of the log, held so that it cannot lose or repeat anything.

By itself it connects again when a connection is lost, in the middle of a transaction too, and reads
some rows twice. Here a lost connection is an error of ours, which it does not catch. It waits
without end for the next event; here one asks first whether there is something to read.
"""

from __future__ import annotations

import secrets
import select
import ssl
from typing import Any

from belvedere.errors import SourceUnreachable
from belvedere.sources.mariadb import latin1
from belvedere.sources.mariadb.images import Wire
from belvedere.sources.mariadb.places import Place
from belvedere.sources.mariadb.settings import Settings, library, replication, translated

_HEARTBEAT = 5.0  # seconds; a connection without one for the time of a read is lost
_SILENCE = 30.0


class LogReader:
    """Events from a place on, one at a time."""

    def __init__(self, settings: Settings, place: Place, tables: set[str]) -> None:
        latin1.register()
        self._settings = settings
        self._connections: list[Any] = []
        self._stream = _stream(settings, place, tables, self._connect)
        self._silent = 0.0

    def _connect(self, **arguments: Any) -> Any:
        if "db" in arguments:  # an old name, of which the client warns
            arguments["database"] = arguments.pop("db")
        connection = _connection_class()(**arguments)
        self._connections.append(connection)
        return connection

    @property
    def place(self) -> Place:
        """Behind the last event, but inside of a transaction where it begins."""
        return Place.at(self._stream.log_file, self._stream.log_pos)

    def columns(self, table_id: int) -> list[Any]:
        """Those of a table as the log describes them, to be read and set right."""
        found: list[Any] = self._stream.table_map[table_id].columns
        return found

    def is_ready(self) -> bool:
        return bool(self._connections) and self._connections[0].has_bytes()

    def wait(self, seconds: float) -> bool:
        """Whether there is something to read within so many seconds."""
        if not self._connections:
            return True  # the first event connects
        with translated(self._settings):
            if self._connections[0].wait(seconds):
                self._silent = 0.0
                return True
        self._silent += seconds
        if self._silent > _SILENCE:
            raise SourceUnreachable(
                f"MariaDB at {self._settings.server} has said nothing for {self._silent:.0f} s"
            )
        return False

    def next(self) -> Any:
        with translated(self._settings):
            event = self._stream.fetchone()
        if event is None:
            raise SourceUnreachable(f"MariaDB at {self._settings.server} has ended the log")
        return event

    def close(self) -> None:
        for connection in self._connections:
            connection.drop()
        self._connections.clear()


def _stream(settings: Settings, place: Place, tables: set[str], connect: Any) -> Any:
    replication()
    from pymysqlreplication import BinLogStreamReader, event, row_event

    events = [
        event.MariadbGtidEvent,
        event.MariadbGtidListEvent,
        event.MariadbBinLogCheckPointEvent,
        event.FormatDescriptionEvent,
        event.RotateEvent,
        event.StopEvent,
        event.HeartbeatLogEvent,
        event.QueryEvent,
        event.XAPrepareEvent,
        event.XidEvent,
        event.NotImplementedEvent,  # some of these would be a gap
        row_event.TableMapEvent,
        row_event.WriteRowsEvent,
        row_event.UpdateRowsEvent,
        row_event.DeleteRowsEvent,
    ]
    return BinLogStreamReader(
        connection_settings=settings.arguments(),
        server_id=secrets.randbelow(1 << 31)
        + (1 << 31)
        - 1,  # a second one of a number ends the first
        blocking=True,
        resume_stream=True,  # without it the place is ignored
        log_file=place.file,
        log_pos=place.offset,
        only_events=events,
        filter_non_implemented_events=False,
        only_schemas=[settings.database],
        only_tables=sorted(tables),
        slave_heartbeat=_HEARTBEAT,
        pymysql_wrapper=connect,
        enable_logging=False,
    )


def _connection_class() -> Any:
    pymysql = library()
    connection: Any = pymysql.connections.Connection

    class LogConnection(connection):  # type: ignore[misc]  # the library has no types
        def has_bytes(self) -> bool:
            """Whether at least a part of the next packet is here."""
            self._sock.setblocking(False)
            try:
                return bool(self._rfile.peek(1))
            except ssl.SSLWantReadError:
                return False
            finally:
                self._sock.settimeout(self._read_timeout)

        def wait(self, seconds: float) -> bool:
            if self.has_bytes():
                return True
            return bool(select.select([self._sock], [], [], seconds)[0])

        def _read_packet(self, *arguments: Any, **named: Any) -> Any:
            """Lost connections as an error that the reader does not catch."""
            try:
                return super()._read_packet(*arguments, **named)
            except pymysql.OperationalError as error:
                if error.args[0] in (2006, 2013):
                    raise SourceUnreachable(
                        f"MariaDB at {self.host}:{self.port} is gone"
                    ) from error
                raise

        def drop(self) -> None:
            """Without a word to the server, which may be gone."""
            self._force_close()

    return LogConnection


# ---------------------------------------------------------------- columns


def wires(columns: list[Any]) -> tuple[Wire, ...]:
    """How columns travel; strings of latin1 are set to be decoded as MariaDB does."""
    for column in columns:
        if (column.collation_name or "").startswith("latin1"):
            column.character_set_name = latin1.NAME
    return tuple(_wire(column) for column in columns)


def _wire(column: Any) -> Wire:
    from pymysqlreplication.constants import FIELD_TYPE

    if column.type == FIELD_TYPE.LONGLONG and column.unsigned:
        return Wire("unsigned bigint")
    if column.type == FIELD_TYPE.STRING and column.character_set_name == "binary":
        return Wire("binary", column.max_length)
    kinds = {
        FIELD_TYPE.BIT: "bit",
        FIELD_TYPE.YEAR: "year",
        FIELD_TYPE.TIMESTAMP: "timestamp",
        FIELD_TYPE.TIMESTAMP2: "timestamp",
        FIELD_TYPE.DATETIME: "datetime",
        FIELD_TYPE.DATETIME2: "datetime",
        FIELD_TYPE.DATE: "date",
    }
    return Wire(kinds.get(column.type, ""))
