"""A PostgreSQL database as a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belvedere.sources.base import Answer, Lag, Monitor, Question, Relation
from belvedere.sources.postgres import answers, describing, preparing
from belvedere.sources.postgres.columns import Wire
from belvedere.sources.postgres.describing import Types
from belvedere.sources.postgres.following import Followed, PostgresMonitor
from belvedere.sources.postgres.places import (
    end_of_records,
    is_shown,
    read_position,
    write_position,
)
from belvedere.sources.postgres.settings import Connections, Settings
from belvedere.sources.postgres.stream import Stream, lost

if TYPE_CHECKING:
    from belvedere.sources.postgres.settings import Connection


class PostgresSource:
    kind = "postgres"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connections = Connections(settings)

    def relations(self) -> list[str]:
        with self._connections.lent() as connection:
            return describing.relations(connection)

    def describe(self, name: str) -> Relation:
        with self._connections.lent() as connection:
            return describing.describe(connection, name)

    def prepare(self, relations: Sequence[Relation]) -> str:
        with self._connections.lent() as connection:
            preparing.prepare(connection, self._settings, relations)
            return self._log_end(connection)

    def follow(self, relations: Sequence[Relation], position: str) -> Monitor:
        with self._connections.lent() as connection:
            self._check_kept(connection, position)
            published = preparing.published(connection, self._settings)
            followed, stopped = [], {}
            for relation in relations:
                found = _followed(connection, relation, published)
                if isinstance(found, Followed):
                    followed.append(found)
                else:
                    stopped[relation.name] = found
            parts = preparing.find_parts(connection)
        stream = Stream(self._settings, read_position(position))
        number = None if parts is None else parts.number.to_bytes(4, "big")
        return PostgresMonitor(stream, position, followed, stopped, number, self._resolve)

    def position(self) -> str:
        with self._connections.lent() as connection:
            return self._log_end(connection)

    def covers(self, position: str, other: str) -> bool:
        return read_position(position) >= read_position(other)

    def ask(self, questions: Sequence[Question]) -> Answer:
        return answers.ask(self._settings, self._connections, questions, self._log_end)

    def shows(self, marker: str, transaction: str) -> bool:
        return is_shown(marker, transaction)

    def lag(self, position: str) -> Lag:
        query = """
            SELECT pg_current_wal_insert_lsn() - %s::pg_lsn,
                   pg_current_wal_insert_lsn() - restart_lsn, wal_status
            FROM pg_replication_slots WHERE slot_name = %s"""
        with self._connections.lent() as connection:
            row = connection.execute(query, (position, self._settings.slot)).fetchone()
        if row is None:
            return Lag(0, 0, f"the slot {self._settings.slot} is not there")
        behind, kept, status = row
        return Lag(max(0, int(behind)), max(0, int(kept or 0)), _NOTES.get(status or "lost", ""))

    def remove(self) -> None:
        with self._connections.lent() as connection:
            preparing.remove(connection, self._settings)

    def close(self) -> None:
        self._connections.close()

    def _log_end(self, connection: Connection) -> str:
        """Where the log ends. What is not on the disk yet is not told to followers, and on a quiet
        server it may stay so for long: a commit of a few bytes brings it there.
        """
        query = """
            SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text,
                   current_setting('wal_block_size')::int"""
        ((inserted, flushed, page),) = connection.execute(query).fetchall()
        end = end_of_records(read_position(inserted), page)
        if read_position(flushed) < end:
            with self._connections.lent() as other:  # the first may be in a transaction
                other.execute("SELECT pg_logical_emit_message(true, 'belvedere', '')")
        return write_position(end)

    def _check_kept(self, connection: Connection, position: str) -> None:
        """The server would begin later without a word if it has been told to forget."""
        status = preparing.find_slot(connection, self._settings)
        if status is None:
            raise lost(self._settings, f"there is no slot {self._settings.slot}")
        if status == "lost":
            raise lost(self._settings, f"the slot {self._settings.slot} is no longer valid")
        query = """
            SELECT confirmed_flush_lsn::text, confirmed_flush_lsn > %s::pg_lsn
            FROM pg_replication_slots WHERE slot_name = %s"""
        row = connection.execute(query, (position, self._settings.slot)).fetchone()
        if row is not None and row[1]:
            raise lost(self._settings, f"it was told that all before {row[0]} is kept here")

    def _resolve(self, number: int, modifier: int) -> Wire:
        """A type that the log names, by a look into the catalog: that is seldom."""
        with self._connections.lent() as connection:
            return Types(connection).resolve(number, modifier)


_NOTES = {
    "lost": "the server has not kept the log: load again",
    "unreserved": "the server will soon not keep the log (max_slot_wal_keep_size)",
}


def _followed(connection: Connection, relation: Relation, published: set[int]) -> Followed | str:
    """How a relation is followed, or why it cannot be."""
    table = describing.find(connection, relation.name)
    if table is None:
        return "it was dropped or renamed"
    wired = describing.wired(connection, relation)
    if wired is None:
        return "it was altered"
    if table.number not in published:
        return "it is not in the publication: it was made anew, or taken out of it"
    return Followed(table.number.to_bytes(4, "big"), wired)
