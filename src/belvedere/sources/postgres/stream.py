"""The replication connection: the log from a position on, message by message.

psycopg has no replication of its own; libpq below it passes messages in both directions.
"""

from __future__ import annotations

import select
import struct
import time
from typing import Any

from belvedere.errors import SourceError, SourceLost, SourceUnreachable
from belvedere.sources.postgres.places import write_position
from belvedere.sources.postgres.settings import Settings, connect, library
from belvedere.waiting import wait_until

_EPOCH_2000 = 946_684_800
_SLOT_SECONDS = 20
_IN_USE = "55006"
_LOST = ("55000", "58P01", "42704")  # invalidated, removed from the disk, no such slot


class Stream:
    def __init__(self, settings: Settings, position: int) -> None:
        self._settings = settings
        self._connection = connect(settings, replication="database")
        self._pg: Any = self._connection.pgconn
        self._reported = position
        try:
            self._start(position)
        except BaseException:  # nobody else would close it
            self._connection.close()
            raise

    def get(self) -> tuple[int, memoryview]:
        """The next message that is there, and its size: 0 if there is none, below at the end."""
        try:
            found: tuple[int, memoryview] = self._pg.get_copy_data(1)
            return found
        except library().Error as error:
            raise self._gone(str(error)) from error

    def wait(self, seconds: float) -> bool:
        """Take in what comes; False if nothing came in time."""
        try:
            readable, _, _ = select.select([self._pg.socket], [], [], seconds)
            if readable:
                self._pg.consume_input()
        except library().Error as error:
            raise self._gone(str(error)) from error
        return bool(readable)

    def ended(self) -> SourceError:
        """Why there is nothing more."""
        result = self._pg.get_result()
        return self._error(result) if result is not None else self._gone("it closed the connection")

    def report(self, position: int, ask: bool = False) -> None:
        """Tell the server what may be forgotten, and with `ask` have it tell where it is."""
        self._reported = max(self._reported, position)
        now = int((time.time() - _EPOCH_2000) * 1e6)
        places = (self._reported,) * 3
        try:
            self._pg.put_copy_data(struct.pack(">cQQQqB", b"r", *places, now, ask))
            self._pg.flush()
        except library().Error as error:
            raise self._gone(str(error)) from error

    def close(self) -> None:
        self._connection.close()

    def _start(self, position: int) -> None:
        publication = self._settings.publication.replace('"', '""').replace("'", "''")
        command = (
            f"START_REPLICATION SLOT {self._settings.slot} LOGICAL {write_position(position)}"
            f" (proto_version '1', publication_names '\"{publication}\"')"
        ).encode()

        def started() -> Any:
            result = self._pg.exec_(command)
            return None if _code(result) == _IN_USE else result

        result = wait_until(started, _SLOT_SECONDS)
        if result is None:
            raise SourceUnreachable(
                f"the slot {self._settings.slot} is in use by another connection for"
                f" {_SLOT_SECONDS} s: a source is followed once"
            )
        if result.status != library().pq.ExecStatus.COPY_BOTH:
            raise self._error(result)

    def _error(self, result: Any) -> SourceError:
        text = " ".join((result.error_message or b"").decode(errors="replace").split())
        code = _code(result)
        if code in _LOST:
            return lost(self._settings, text)
        if code is None or code.startswith(("08", "57P", "53", "XX")):
            return self._gone(text or "it closed the connection")
        if code == "42501":
            return SourceError(
                f"PostgreSQL at {self._settings.server} refuses: {text}. The user needs REPLICATION"
            )
        return SourceError(f"PostgreSQL at {self._settings.server}: error {code}: {text}")

    def _gone(self, why: str) -> SourceUnreachable:
        text = " ".join(why.split())
        return SourceUnreachable(f"PostgreSQL at {self._settings.server} is gone: {text}")


def _code(result: Any) -> str | None:
    found = result.error_field(library().pq.DiagnosticField.SQLSTATE)
    return None if found is None else found.decode()


def lost(settings: Settings, why: str) -> SourceLost:
    return SourceLost(
        f"PostgreSQL at {settings.server} has not kept the log that was not followed yet: {why}."
        " Load its relations again, and let it keep more (max_slot_wal_keep_size)"
    )
