"""MariaDB as a `Source`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from belvedere.errors import SourceError
from belvedere.sources.base import Answer, Lag, Monitor, Question, Relation
from belvedere.sources.mariadb import answers, describing
from belvedere.sources.mariadb.checks import check_server
from belvedere.sources.mariadb.following import LogMonitor
from belvedere.sources.mariadb.places import LogPosition, Place, place_of
from belvedere.sources.mariadb.settings import Settings, connect, lost, rows, translated

_PREPARED_TRIES = 200  # looks for a moment without prepared XA transactions, 50 ms apart


class MariaDBSource:
    """The tables of one database of a server; each call has a connection of its own."""

    kind = "mariadb"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = connect(self._settings)
        try:
            with translated(self._settings):
                yield connection
        finally:
            connection.close()

    # ------------------------------------------------------------ relations

    def relations(self) -> list[str]:
        with self._connected() as connection:
            return describing.relations(connection, self._settings.database)

    def describe(self, name: str) -> Relation:
        with self._connected() as connection:
            check_server(connection)
            return describing.describe(connection, self._settings.database, name)

    def prepare(self, relations: Sequence[Relation]) -> str:
        """Nothing is made in the server: its log is for all. Where an XA transaction is prepared,
        its rows are in the log already; the log is read from a place before any that is not ended.
        """
        with self._connected() as connection:
            check_server(connection)
            start = _end_of_log(connection)
            _wait_for_prepared(connection)
            done = _end_of_log(connection)
            for relation in relations:
                self._check_same(connection, relation)
            position = LogPosition(done, _gtids(connection, done) or "", start)
            return str(position)

    def _check_same(self, connection: Any, relation: Relation) -> None:
        """After the position was taken: the log behind it does not tell of older changes."""
        now = describing.describe(connection, self._settings.database, relation.name)
        if now.schema != relation.schema:
            raise SourceError(
                f"{relation.name} was altered since it was read: name it again, with its columns"
                " of now"
            )

    # ------------------------------------------------------------ the log

    def follow(self, relations: Sequence[Relation], position: str) -> Monitor:
        found = LogPosition.parse(position)
        with self._connected() as connection:
            check_server(connection)
            self._check_log(connection, found)
        return LogMonitor(self._settings, relations, found)

    def _check_log(self, connection: Any, position: LogPosition) -> None:
        """That the log has the position, and is the same log: RESET MASTER begins again with the
        names of files that were there before.
        """
        files = dict(rows(connection, "SHOW BINARY LOGS"))
        if position.start.file not in files:
            raise lost(self._settings, f"{position.start.file} was purged")
        now = _gtids(connection, position.done)
        if now is None or not set(position.gtids.split(",")) <= {*now.split(","), ""}:
            raise lost(self._settings, f"{position.done} is not where it was: the log was reset")

    def position(self) -> str:
        with self._connected() as connection:
            place = _end_of_log(connection)
            return str(LogPosition(place, _gtids(connection, place) or ""))

    def covers(self, position: str, other: str) -> bool:
        return LogPosition.parse(position).done >= LogPosition.parse(other).done

    def lag(self, position: str) -> Lag:
        done = LogPosition.parse(position).done
        with self._connected() as connection:
            files = rows(connection, "SHOW BINARY LOGS")
            keeps = rows(connection, "SELECT @@global.binlog_expire_logs_seconds")[0][0]
        sizes = {Place.at(name, 0).number: int(size) for name, size in files}
        behind = sum(size for number, size in sizes.items() if number >= done.number)
        behind -= done.offset if done.number in sizes else 0
        note = f"the server keeps its log for {keeps} s" if int(keeps) else ""
        return Lag(max(0, behind), 0, note)

    def remove(self) -> None:
        """`prepare` has made nothing."""

    # ------------------------------------------------------------ answers

    def ask(self, questions: Sequence[Question]) -> Answer:
        return answers.ask(self._settings, questions)

    def shows(self, marker: str, transaction: str) -> bool:
        return place_of(transaction) <= Place.parse(marker)

    def close(self) -> None:
        """Connections end with the calls that have opened them."""


def _end_of_log(connection: Any) -> Place:
    found = rows(connection, "SHOW MASTER STATUS")
    if not found:
        raise SourceError("the server writes no binary log: set log_bin = ON")
    file, offset, *_ = found[0]
    return Place.at(file, int(offset))


def _gtids(connection: Any, place: Place) -> str | None:
    """The last ones before a place in the log; None if the log has no such place."""
    found: str | None = rows(
        connection, "SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.offset)
    )[0][0]
    return found


def _wait_for_prepared(connection: Any) -> None:
    for _ in range(_PREPARED_TRIES):
        prepared = rows(connection, "XA RECOVER")
        if not prepared:
            return
        rows(connection, "SELECT SLEEP(0.05)")
    raise SourceError(
        f"there is always an XA transaction that is prepared and not ended, such as"
        f" {prepared[0][-1]!r}: commit or roll back what XA RECOVER lists"
    )
