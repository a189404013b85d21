"""Dropped base tables: a mark that every write and read looks at, and rows that are nobody's until
they are removed.

    00000000 'm' "table" u32   all ones: the table was dropped (else see `log.py`)
    00000000 'm' "gone" u32    a table of which there may be files that nobody needs

The first mark stays for ever: a writer of any process may hold the table for as long as it likes.
"""

from __future__ import annotations

from belvedere.errors import Dropped
from belvedere.stores.base import TableId
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Transaction

TABLE = b"\0\0\0\0mtable"
_DEAD = b"\xff" * 8
_GONE = b"\0\0\0\0mgone"


def table_entry(transaction: Transaction, table: TableId) -> bytes:
    """What is noted of a table; nothing if it was never written."""
    key = TABLE + table.to_bytes(4, "big")
    stored = transaction.get(key)
    return opened(key, bytes(stored)) if stored else b""


def put_table_entry(transaction: Transaction, table: TableId, value: bytes) -> None:
    key = TABLE + table.to_bytes(4, "big")
    transaction.put(key, seal(key, value))


def is_dead(transaction: Transaction, table: TableId) -> bool:
    return table_entry(transaction, table) == _DEAD


def check_alive(transaction: Transaction, table: TableId) -> None:
    if is_dead(transaction, table):
        raise Dropped(table)


def dead_tables(transaction: Transaction) -> frozenset[TableId]:
    found = set()
    with transaction.cursor() as cursor:
        if cursor.set_range(TABLE):
            for key, value in cursor.iternext():
                if not key.startswith(TABLE):
                    break
                if opened(key, value) == _DEAD:
                    found.add(int.from_bytes(key[len(TABLE) :], "big"))
    return frozenset(found)


def mark_dead(transaction: Transaction, table: TableId) -> None:
    if not is_dead(transaction, table):
        put_table_entry(transaction, table, _DEAD)
        leave(transaction, table)


def leave(transaction: Transaction, table: TableId) -> None:
    """What is here of a table is nobody's."""
    key = _GONE + table.to_bytes(4, "big")
    transaction.put(key, seal(key, b""))


def pending(transaction: Transaction) -> TableId | None:
    """A table of which something may be left."""
    with transaction.cursor() as cursor:
        if cursor.set_range(_GONE) and cursor.key().startswith(_GONE):
            return int.from_bytes(cursor.key()[len(_GONE) :], "big")
    return None


def forget(transaction: Transaction) -> None:
    """That something of such tables may be left."""
    while (table := pending(transaction)) is not None:
        transaction.delete(_GONE + table.to_bytes(4, "big"))
