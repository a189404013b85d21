"""Which runs make up the tables of a slot as of each epoch, and how far epochs are closed
(rules R1 to R3).

    00000000 'm' "floors"              write floor, history floor, number of the catalog that the
                                       writer saw (`parts.py`; u64 each)
    00000000 'm' "count" table u32     records, bytes (u64 each)
    00000000 'r' table u32 epoch u64   a run list: the runs of the table after this epoch

As of epoch c a table is what its newest run list at or below c says. The run list (table, e) also
says that an attempt of e has written the table. A run list may be replaced by one that names other
runs with the same records: merging is no change.

    00000000 's' name                  a section that is small: it needs no file

    run list   checksum u32, runs u16; each run: sections u32; each section: offset u64, size u64,
               rows u32, bytes of the file's name u16, of `Ref.first` u32, then both
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError
from zlib import crc32

from belvedere.errors import Damaged, Stale
from belvedere.stores.base import Slot, TableId
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.records import prefix
from belvedere.stores.embedded.runs import Ref, RunRef, is_small
from belvedere.types import Epoch

_LIST = b"\0\0\0\0r"
_FLOORS = b"\0\0\0\0mfloors"
_COUNT = b"\0\0\0\0mcount"
_PAIR, _PAIR_AND_SEEN = Struct(">QQ"), Struct(">QQQ")
_CHECK, _RUNS, _SECTIONS, _SECTION = Struct("<I"), Struct("<H"), Struct("<I"), Struct("<QQIHI")
_unpack = _PAIR.unpack_from
_SECTION_KEY = b"\0\0\0\0s"


# ---------------------------------------------------------------- floors and counts


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


def too_old(slot: Slot, epoch: Epoch, history: Epoch) -> Stale:
    return Stale(f"slot {slot} keeps epochs from {history} on: epoch {epoch} is too old")


# ---------------------------------------------------------------- run_lists


def key_of(table: TableId, epoch: Epoch) -> bytes:
    return _LIST + prefix(table) + epoch.to_bytes(8, "big")


def is_written(transaction: Transaction, table: TableId, epoch: Epoch) -> bool:
    """Whether an attempt of this epoch has written the table."""
    return transaction.get(key_of(table, epoch)) is not None


def as_of(transaction: Transaction, table: TableId, epoch: Epoch) -> bytes:
    """The newest run list at or below an epoch; nothing if the table was empty."""
    start = _LIST + prefix(table)
    with transaction.cursor() as cursor:
        behind = cursor.set_range(key_of(table, epoch + 1))
        found = cursor.prev() if behind else cursor.last()
        return bytes(cursor.value()) if found and cursor.key().startswith(start) else b""


def every(transaction: Transaction) -> Iterator[tuple[TableId, Epoch, bytes]]:
    """All run_lists, by table and rising epochs."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(_LIST):
            return
        for key, value in cursor.iternext():
            if not key.startswith(_LIST):
                return
            yield int.from_bytes(key[5:9], "big"), int.from_bytes(key[9:], "big"), value


def of_table(transaction: Transaction, table: TableId) -> list[tuple[Epoch, bytes]]:
    start = _LIST + prefix(table)
    found = []
    with transaction.cursor() as cursor:
        if cursor.set_range(start):
            for key, value in cursor.iternext():
                if not key.startswith(start):
                    break
                found.append((int.from_bytes(key[9:], "big"), value))
    return found


def forget(transaction: Transaction, table: TableId, catalog: int) -> None:
    set_floors(transaction, *floors(transaction), catalog)
    for epoch, _ in of_table(transaction, table):
        transaction.delete(key_of(table, epoch))
    transaction.delete(_COUNT + prefix(table))


def has_table(transaction: Transaction, table: TableId) -> bool:
    """Whether anything is kept of a table."""
    counted = transaction.get(_COUNT + prefix(table)) is not None
    return counted or bool(of_table(transaction, table))


# ---------------------------------------------------------------- small sections


def put_section(transaction: Transaction, name: str, data: bytes) -> None:
    transaction.put(_SECTION_KEY + name.encode(), data)


def sections_of(transaction: Transaction, runs: Sequence[RunRef]) -> dict[str, bytes]:
    """The small sections of some runs, by name; one that is gone is not there."""
    names = {ref.file for run in runs for ref in run if is_small(ref.file)}
    found = {name: transaction.get(_SECTION_KEY + name.encode()) for name in names}
    return {name: bytes(data) for name, data in found.items() if data is not None}


def remove_sections(transaction: Transaction, named: set[str]) -> None:
    """All that no run list names."""
    with transaction.cursor() as cursor:
        found = cursor.set_range(_SECTION_KEY)
        while found and cursor.key().startswith(_SECTION_KEY):
            name = cursor.key()[len(_SECTION_KEY) :].decode()
            found = cursor.next() if name in named else cursor.delete()


# ---------------------------------------------------------------- bytes


def encode(runs: Sequence[RunRef]) -> bytes:
    parts = [_RUNS.pack(len(runs))]
    for run in runs:
        parts.append(_SECTIONS.pack(len(run)))
        for ref in run:
            name = ref.file.encode()
            sizes = ref.offset, ref.size, ref.rows, len(name), len(ref.first)
            parts += [_SECTION.pack(*sizes), name, ref.first]
    body = b"".join(parts)
    return _CHECK.pack(crc32(body)) + body


def decode(data: bytes, where: str) -> tuple[RunRef, ...]:
    if not data:
        return ()
    if _CHECK.unpack_from(data)[0] != crc32(data[_CHECK.size :]):
        raise Damaged(f"the list of runs of {where} is damaged: its checksum is wrong")
    try:
        return tuple(_runs(data))
    except (StructError, UnicodeDecodeError) as error:
        raise Damaged(f"the list of runs of {where} cannot be read ({error})") from error


def _runs(data: bytes) -> Iterator[RunRef]:
    at = _CHECK.size
    (count_of_runs,) = _RUNS.unpack_from(data, at)
    at += _RUNS.size
    for _ in range(count_of_runs):
        (sections,) = _SECTIONS.unpack_from(data, at)
        at += _SECTIONS.size
        run = []
        for _ in range(sections):
            offset, size, rows, name, first = _SECTION.unpack_from(data, at)
            at += _SECTION.size
            key = data[at + name : at + name + first]
            run.append(Ref(data[at : at + name].decode(), offset, size, rows, key))
            at += name + first
        yield tuple(run)
