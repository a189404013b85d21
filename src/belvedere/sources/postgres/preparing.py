"""What has the server keep its log for us: a publication, whole rows before, a slot.

    1  replica identity FULL     from then on rows before are whole
    2  publication               from then on the log tells of these tables
    3  slot                      from then on the log is kept
    4  wait for transactions that began before 1 and 2 were done: of what they wrote earlier the
       log would tell only a part. To make a slot waits in the same way.

The owner of tables may do all of it. Otherwise what is missing is refused, with the statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from belvedere.errors import SourceError
from belvedere.sources.base import Relation
from belvedere.sources.postgres.describing import Table, check_table, existing, find, quote
from belvedere.sources.postgres.settings import Settings, library
from belvedere.waiting import wait_until

if TYPE_CHECKING:
    from belvedere.sources.postgres.settings import Connection

# Where applications say that a transaction is a part of a global one.
PARTS = "belvedere_transactions"
_PARTS_COLUMNS = ["gid", "sources"]
_LOCK_SECONDS, _WAIT_SECONDS, _RELEASE_SECONDS = 10, 60, 30
_ALL = ("pubinsert", "pubupdate", "pubdelete", "pubtruncate")


def prepare(connection: Connection, settings: Settings, relations: Sequence[Relation]) -> None:
    _check_server(connection)
    tables = [existing(connection, relation.name) for relation in relations]
    for table, relation in zip(tables, relations, strict=True):
        check_table(table, relation.name)
    _set_identity(connection, tables)
    parts = find_parts(connection)
    wanted = {t.number: t for t in ([*tables, parts] if parts else tables)}
    _publish(connection, settings, list(wanted.values()))
    if not _make_slot(connection, settings) and not _is_noted(connection, settings):
        _await_older(connection)
    _note(connection, settings)


def find_parts(connection: Connection) -> Table | None:
    table = find(connection, PARTS)
    if table is None or table.kind != "r":
        return None
    names = [name for name, *_ in table.columns]
    if names[:2] != _PARTS_COLUMNS:
        raise SourceError(
            f"{PARTS} has the columns {', '.join(names)}: its first two must be gid TEXT and"
            " sources TEXT"
        )
    return table


def _check_server(connection: Connection) -> None:
    query = "SELECT current_setting('wal_level'), pg_is_in_recovery()"
    ((level, standby),) = connection.execute(query).fetchall()
    if standby:
        raise SourceError("this PostgreSQL is a standby: follow its primary")
    if level != "logical":
        raise SourceError(
            f"wal_level is {level}: run ALTER SYSTEM SET wal_level = logical, and restart the"
            " server"
        )


def _set_identity(connection: Connection, tables: Sequence[Table]) -> None:
    """The statement waits for transactions that write the table, and others wait behind it."""
    for table in tables:
        if table.identity != "f":
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'".encode())
                statement = f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL"
                try:
                    connection.execute(statement.encode())
                except library().errors.LockNotAvailable as error:
                    raise SourceError(
                        f"{table.name} was locked for {_LOCK_SECONDS} s: try again, or run"
                        f" {statement}"
                    ) from error


# ---------------------------------------------------------------- publication


def _publish(connection: Connection, settings: Settings, tables: Sequence[Table]) -> None:
    name = quote(settings.publication)
    listed = ", ".join(f"ONLY {table.quoted}" for table in tables)
    owns = _owns_publication(connection, settings)
    wanted = {table.number for table in tables}
    if owns is None:
        _run_or_advise(connection, f"CREATE PUBLICATION {name} FOR TABLE {listed}")
        _check_publication(connection, settings)
        return
    there = published(connection, settings)
    if not there >= wanted or (owns and there != wanted):  # others' may tell of more
        _run_or_advise(connection, f"ALTER PUBLICATION {name} SET TABLE {listed}")
    _check_publication(connection, settings)


def published(connection: Connection, settings: Settings) -> set[int]:
    """The numbers of the tables whose changes the log tells, all rows and columns of them."""
    query = """
        SELECT r.oid FROM pg_publication_tables p
        JOIN pg_namespace n ON n.nspname = p.schemaname
        JOIN pg_class r ON r.relnamespace = n.oid AND r.relname = p.tablename
        WHERE p.pubname = %s"""
    return {number for (number,) in connection.execute(query, (settings.publication,))}


def _check_publication(connection: Connection, settings: Settings) -> None:
    name = quote(settings.publication)
    query = f"SELECT {' AND '.join(_ALL)} FROM pg_publication WHERE pubname = %s"
    if connection.execute(query.encode(), (settings.publication,)).fetchone() != (True,):
        raise SourceError(
            f"the publication {settings.publication} leaves out some operations: ALTER PUBLICATION"
            f" {name} SET (publish = 'insert, update, delete, truncate')"
        )
    partly = """
        SELECT p.prrelid::regclass::text FROM pg_publication_rel p
        JOIN pg_publication b ON b.oid = p.prpubid
        WHERE b.pubname = %s AND (to_jsonb(p)->>'prqual' IS NOT NULL
                               OR to_jsonb(p)->>'prattrs' IS NOT NULL)"""
    found = [table for (table,) in connection.execute(partly, (settings.publication,))]
    if found:
        raise SourceError(
            f"the publication {settings.publication} leaves out some rows or columns of"
            f" {', '.join(found)}: take the table out of it, and put it in whole"
        )


def _is_noted(connection: Connection, settings: Settings) -> bool:
    """Whether all transactions have ended that began before the tables were published."""
    return connection.execute(
        "SELECT obj_description(oid, 'pg_publication') FROM pg_publication WHERE pubname = %s",
        (settings.publication,),
    ).fetchone() == (_signature(connection, settings),)


def _note(connection: Connection, settings: Settings) -> None:
    """Else every new start would wait for whatever is open then. Only the owner may note it."""
    if _owns_publication(connection, settings) and not _is_noted(connection, settings):
        signature = _signature(connection, settings)
        name = quote(settings.publication)
        connection.execute(f"COMMENT ON PUBLICATION {name} IS '{signature}'".encode())


def _signature(connection: Connection, settings: Settings) -> str:
    """Of which tables are in the publication; one that is taken out and put in again is another."""
    query = """
        SELECT 'followed by Belvedere: '
               || md5(coalesce(string_agg(r.oid::text, ',' ORDER BY r.oid), ''))
        FROM pg_publication p LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid
        WHERE p.pubname = %s AND NOT p.puballtables"""
    row = connection.execute(query, (settings.publication,)).fetchone()
    return "" if row is None or row[0] is None else str(row[0])


def _owns_publication(connection: Connection, settings: Settings) -> bool | None:
    """None if there is no publication."""
    query = "SELECT pg_has_role(pubowner, 'USAGE') FROM pg_publication WHERE pubname = %s"
    row = connection.execute(query, (settings.publication,)).fetchone()
    return None if row is None else bool(row[0])


def _run_or_advise(connection: Connection, statement: str) -> None:
    try:
        connection.execute(statement.encode())
    except library().errors.InsufficientPrivilege as error:
        raise SourceError(
            f"this user may not do it ({str(error).splitlines()[0]}): the owner of the tables must"
            f" run {statement}"
        ) from error


# ---------------------------------------------------------------- slot


def _make_slot(connection: Connection, settings: Settings) -> bool:
    """Whether a slot was made, which waits for transactions that began before."""
    slot = find_slot(connection, settings)
    if slot == "lost":
        drop_slot(connection, settings)
    elif slot is not None:
        return False
    try:
        connection.execute(
            "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (settings.slot,)
        )
    except library().errors.InsufficientPrivilege as error:
        raise SourceError(
            f"this user may not make a slot: run ALTER ROLE {quote(settings.user)} REPLICATION"
        ) from error
    except library().errors.ConfigurationLimitExceeded as error:
        raise SourceError(
            "all slots of this PostgreSQL are in use: drop one that is not needed"
            " (pg_drop_replication_slot), or raise max_replication_slots"
        ) from error
    return True


def find_slot(connection: Connection, settings: Settings) -> str | None:
    """What the server keeps of the log: `lost` if not all of it, None if there is no slot."""
    query = """
        SELECT plugin, database = current_database(), wal_status FROM pg_replication_slots
        WHERE slot_name = %s"""
    row = connection.execute(query, (settings.slot,)).fetchone()
    if row is None:
        return None
    plugin, here, status = row
    if plugin != "pgoutput" or not here:
        raise SourceError(
            f"the slot {settings.slot} is somebody else's: use the option slot to give another name"
        )
    return status or "lost"


def drop_slot(connection: Connection, settings: Settings) -> None:
    """A slot is in use until the server has noticed that its follower is gone."""

    def dropped() -> bool | None:
        try:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE slot_name = %s",
                (settings.slot,),
            )
        except library().errors.ObjectInUse:
            return None
        except library().errors.UndefinedObject:  # somebody else was faster
            return True
        return True

    if wait_until(dropped, _RELEASE_SECONDS) is None:
        raise SourceError(
            f"the slot {settings.slot} is in use by another connection: stop what follows it, and"
            " try again"
        )


def _await_older(connection: Connection) -> None:
    query = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    ((newest,),) = connection.execute(query).fetchall()

    def ended() -> bool | None:
        query = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        ((oldest,),) = connection.execute(query).fetchall()
        return True if oldest >= newest else None

    if wait_until(ended, _WAIT_SECONDS) is None:
        query = "SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start"
        pids = ", ".join(str(pid) for (pid,) in connection.execute(query))
        raise SourceError(
            f"transactions that began before are open since {_WAIT_SECONDS} s (processes {pids}; or"
            " prepared ones, see pg_prepared_xacts): end them, and try again"
        )


def remove(connection: Connection, settings: Settings) -> None:
    drop_slot(connection, settings)
    if _owns_publication(connection, settings):
        connection.execute(f"DROP PUBLICATION IF EXISTS {quote(settings.publication)}".encode())
