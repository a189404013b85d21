"""How a slot keeps epochs apart: plain records, floors, and per table and epoch one undo block
(rules R1 to R3).

    00000000 'm' "floors"              write floor, history floor, number of the catalog that the
                                       writer saw (`parts.py`; u64 each)
    00000000 'm' "count" table u32     records, bytes (u64 each)
    00000000 'u' table u32 epoch u64   keys written in the epoch, sorted, and their values before
    table u32, key                     the newest value

As of epoch c a key has the value of the OLDEST undo block of an epoch above c that contains it,
else the newest value. The undo block (table, e) also says that an attempt of e has written the
table. A delete needs no tombstone in the table itself: its record is in the undo block, and late
attempts meet the floors.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from belvedere.errors import Stale
from belvedere.stores.base import Getter, Slot, TableId
from belvedere.stores.embedded import blocks
from belvedere.stores.embedded.environment import MAX_KEY, Environment, Transaction
from belvedere.stores.embedded.records import prefix
from belvedere.types import Epoch

UNDO = b"\0\0\0\0u"
_FLOORS = b"\0\0\0\0mfloors"
_COUNT = b"\0\0\0\0mcount"
_PAIR, _PAIR_AND_SEEN = Struct(">QQ"), Struct(">QQQ")
_unpack = _PAIR.unpack_from


def undo_key(table: TableId, epoch: Epoch) -> bytes:
    return UNDO + prefix(table) + epoch.to_bytes(8, "big")


def epoch_of(key: bytes) -> Epoch:
    return int.from_bytes(key[9:], "big")


def undo_epochs(transaction: Transaction, table: TableId, after: Epoch) -> list[Epoch]:
    """Epochs above `after` that wrote the table, ascending."""
    found = []
    start = UNDO + prefix(table)
    with transaction.cursor() as cursor:
        if cursor.set_range(undo_key(table, after + 1)):
            for view in cursor.iternext(True, False):
                key = bytes(view)
                if not key.startswith(start):
                    break
                found.append(epoch_of(key))
    return found


def floors(transaction: Transaction) -> tuple[Epoch, Epoch]:
    """Write floor and history floor."""
    stored = transaction.get(_FLOORS)
    return _unpack(stored) if stored else (0, 0)


def set_floors(transaction: Transaction, write: Epoch, history: Epoch, catalog: int) -> None:
    """With the number of the catalog's last transaction that the writer has seen."""
    transaction.put(_FLOORS, _PAIR_AND_SEEN.pack(write, history, catalog))


def seen(transaction: Transaction) -> int:
    stored = transaction.get(_FLOORS) or b""
    return int(_PAIR_AND_SEEN.unpack(stored)[2]) if len(stored) == _PAIR_AND_SEEN.size else 0


def count(transaction: Transaction, table: TableId) -> tuple[int, int]:
    stored = transaction.get(_COUNT + prefix(table))
    return _unpack(stored) if stored else (0, 0)


def add_to_count(transaction: Transaction, table: TableId, records: int, size: int) -> None:
    old_records, old_size = count(transaction, table)
    transaction.put(
        _COUNT + prefix(table), _PAIR.pack(max(old_records + records, 0), max(old_size + size, 0))
    )


def has_table(transaction: Transaction, table: TableId) -> bool:
    """Whether anything is kept of a table."""
    with transaction.cursor() as cursor:
        for start in (UNDO + prefix(table), _COUNT + prefix(table), prefix(table)):
            if cursor.set_range(start) and cursor.key().startswith(start):
                return True
    return False


def forget(transaction: Transaction, table: TableId, catalog: int) -> None:
    set_floors(transaction, *floors(transaction), catalog)
    for epoch in undo_epochs(transaction, table, -1):
        transaction.delete(undo_key(table, epoch))
    transaction.delete(_COUNT + prefix(table))


def too_old(slot: Slot, epoch: Epoch, history: Epoch) -> Stale:
    return Stale(f"slot {slot} keeps epochs from {history} on: epoch {epoch} is too old")


def getter(environments: Sequence[Environment], table: TableId) -> Getter:
    """Single values as of committed epochs, made for latency."""
    start = prefix(table)
    get_beside = [environment.get_beside for environment in environments]

    def get(slot: Slot, epoch: Epoch, key: bytes) -> bytes | None:
        if len(key) > MAX_KEY:
            return None
        (write, _), value = get_beside[slot](floors, start + key)
        if write <= epoch:  # nothing later has been written, so nothing that it needs is collected
            return value
        return _get_before(environments[slot], slot, epoch, table, key)

    return get


def _get_before(
    environment: Environment, slot: Slot, epoch: Epoch, table: TableId, key: bytes
) -> bytes | None:
    """The same while a later epoch is being written: search its undo blocks where they lie."""

    def body(transaction: Transaction) -> bytes | None:
        history = floors(transaction)[1]
        if history > epoch:
            raise too_old(slot, epoch, history)
        for later in undo_epochs(transaction, table, epoch):
            found, value = blocks.find(transaction.get(undo_key(table, later)), key)
            if found:
                return value
        newest = transaction.get(prefix(table) + key)
        return None if newest is None else bytes(newest)

    return environment.read(body, buffers=True)
