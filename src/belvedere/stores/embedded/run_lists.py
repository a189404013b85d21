"""Which runs make up the tables of a slot as of each epoch, and how far epochs are closed
(rules R1 to R3).

    00000000 'm' "floors"              write floor, history floor, number of the catalog that the
                                       writer saw (`parts.py`; u64 each)
    00000000 'm' "lists"               the transaction that last changed a run list (u64)
    00000000 'm' "count" owner         records, bytes (u64 each)
    00000000 'r' owner epoch u64       a run list: the runs of the owner after this epoch

The owner is a state table (u32). As of epoch c a table is what its newest run list at or below c
says. The run list (table, e) also says that an attempt of e has written the table. A run list may
be replaced by one that names other runs with the same records: merging is no change.

Base rows are kept the same way (`settling.py`): there the owner is a base table and a slot (u32,
u16), and what is called an epoch here is a position of the log.

    00000000 's' name                  a section that is small: it needs no file

    run list   runs u16; each run: sections u32; each section: offset u64, size u64, rows u32, bytes
               of the file's name u16, of `Ref.first` u32, then both

All but sections are sealed (`checked.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from struct import error as StructError

from belvedere.errors import Damaged, Stale
from belvedere.stores.base import Slot, TableId
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Transaction
from belvedere.stores.embedded.records import prefix
from belvedere.stores.embedded.runs import Ref, RunRef, is_small
from belvedere.types import Epoch

LIST = b"\0\0\0\0r"
FLOORS = b"\0\0\0\0mfloors"
COUNT = b"\0\0\0\0mcount"
_CHANGED = b"\0\0\0\0mlists"
_NUMBER = Struct(">Q")
Owner = bytes
_PAIR, _PAIR_AND_SEEN = Struct(">QQ"), Struct(">QQQ")
_RUNS, _SECTIONS, _SECTION = Struct("<H"), Struct("<I"), Struct("<QQIHI")
_unpack = _PAIR.unpack_from
SECTION = b"\0\0\0\0s"


# ---------------------------------------------------------------- floors and counts


def floors(transaction: Transaction) -> tuple[Epoch, Epoch]:
    """Write floor and history floor."""
    stored = transaction.get(FLOORS)
    return _unpack(opened(FLOORS, stored)) if stored else (0, 0)


def set_floors(transaction: Transaction, write: Epoch, history: Epoch, catalog: int) -> None:
    """With the number of the catalog's last transaction that the writer has seen."""
    transaction.put(FLOORS, seal(FLOORS, _PAIR_AND_SEEN.pack(write, history, catalog)))


def seen(transaction: Transaction) -> int:
    stored = transaction.get(FLOORS)
    known = opened(FLOORS, stored) if stored else b""
    return int(_PAIR_AND_SEEN.unpack(known)[2]) if len(known) == _PAIR_AND_SEEN.size else 0


def count(transaction: Transaction, owner: Owner) -> tuple[int, int]:
    key = COUNT + owner
    stored = transaction.get(key)
    return _unpack(opened(key, stored)) if stored else (0, 0)


def add_to_count(transaction: Transaction, owner: Owner, records: int, size: int) -> None:
    old_records, old_size = count(transaction, owner)
    key = COUNT + owner
    new = _PAIR.pack(max(old_records + records, 0), max(old_size + size, 0))
    transaction.put(key, seal(key, new))


def too_old(slot: Slot, epoch: Epoch, history: Epoch) -> Stale:
    return Stale(f"slot {slot} keeps epochs from {history} on: epoch {epoch} is too old")


# ---------------------------------------------------------------- run_lists


def owner_of(table: TableId, slot: Slot | None = None) -> Owner:
    """A state table, or the rows of a base table in a slot."""
    return prefix(table) + (b"" if slot is None else slot.to_bytes(2, "big"))


def table_of(owner: Owner) -> TableId:
    return int.from_bytes(owner[:4], "big")


def slot_of(owner: Owner) -> Slot:
    """Of an owner that has one."""
    return int.from_bytes(owner[4:], "big")


def put(transaction: Transaction, owner: Owner, epoch: Epoch, runs: Sequence[RunRef]) -> None:
    key = key_of(owner, epoch)
    transaction.put(key, seal(key, encode(runs)))
    note_change(transaction)


def remove(transaction: Transaction, owner: Owner, epoch: Epoch) -> None:
    transaction.delete(key_of(owner, epoch))
    note_change(transaction)


def note_change(transaction: Transaction) -> None:
    transaction.put(_CHANGED, seal(_CHANGED, _NUMBER.pack(transaction.id())))


def changed(transaction: Transaction) -> int:
    """A number that is another one whenever a run list was changed."""
    stored = transaction.get(_CHANGED)
    return int(_NUMBER.unpack(opened(_CHANGED, stored))[0]) if stored else 0


def key_of(owner: Owner, epoch: Epoch) -> bytes:
    return LIST + owner + epoch.to_bytes(8, "big")


def is_written(transaction: Transaction, owner: Owner, epoch: Epoch) -> bool:
    """Whether an attempt of this epoch has written the table."""
    return transaction.get(key_of(owner, epoch)) is not None


def as_of(transaction: Transaction, owner: Owner, epoch: Epoch) -> bytes:
    """The newest run list at or below an epoch; nothing if the table was empty."""
    with transaction.cursor() as cursor:
        behind = cursor.set_range(key_of(owner, epoch + 1))
        found = cursor.prev() if behind else cursor.last()
        key = cursor.key()
        is_own = found and key[:-8] == LIST + owner
        return opened(key, cursor.value()) if is_own else b""


def every(transaction: Transaction) -> Iterator[tuple[Owner, Epoch, bytes]]:
    """All run_lists, by owner and rising epochs."""
    with transaction.cursor() as cursor:
        if not cursor.set_range(LIST):
            return
        for key, value in cursor.iternext():
            if not key.startswith(LIST):
                return
            owner, epoch = owner_and_epoch(key)
            yield owner, epoch, opened(key, value)


def owner_and_epoch(key: bytes) -> tuple[Owner, Epoch]:
    return key[len(LIST) : -8], int.from_bytes(key[-8:], "big")


def of_owner(transaction: Transaction, owner: Owner) -> list[tuple[Epoch, bytes]]:
    start = LIST + owner
    found = []
    with transaction.cursor() as cursor:
        if cursor.set_range(start):
            for key, value in cursor.iternext():
                if key[:-8] != start:
                    break
                found.append((owner_and_epoch(key)[1], opened(key, value)))
    return found


def forget(transaction: Transaction, owner: Owner) -> None:
    """Lists are not read: what is damaged can be removed."""
    start = LIST + owner
    with transaction.cursor() as cursor:
        found = cursor.set_range(start)
        while found and cursor.key()[:-8] == start:
            found = cursor.delete()
    transaction.delete(COUNT + owner)
    note_change(transaction)


def has_any(transaction: Transaction, owner: Owner) -> bool:
    """Whether anything is kept of a table."""
    start = LIST + owner
    with transaction.cursor() as cursor:
        listed = cursor.set_range(start) and cursor.key()[:-8] == start
    return bool(listed or transaction.get(COUNT + owner) is not None)


def named_files(transaction: Transaction, where: str) -> set[str]:
    """The files and small sections that run lists name."""
    return {
        ref.file
        for owner, _, data in every(transaction)
        for run in decode(data, f"table {table_of(owner)} in {where}")
        for ref in run
    }


# ---------------------------------------------------------------- small sections


def put_section(transaction: Transaction, name: str, data: bytes) -> None:
    transaction.put(SECTION + name.encode(), data)


def sections_of(transaction: Transaction, runs: Sequence[RunRef]) -> dict[str, bytes]:
    """The small sections of some runs, by name; one that is gone is not there."""
    names = {ref.file for run in runs for ref in run if is_small(ref.file)}
    found = {name: transaction.get(SECTION + name.encode()) for name in names}
    return {name: bytes(data) for name, data in found.items() if data is not None}


def remove_sections(transaction: Transaction, named: set[str]) -> None:
    """All that no run list names."""
    with transaction.cursor() as cursor:
        found = cursor.set_range(SECTION)
        while found and cursor.key().startswith(SECTION):
            name = cursor.key()[len(SECTION) :].decode()
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
    return b"".join(parts)


def decode(data: bytes, where: str) -> tuple[RunRef, ...]:
    if not data:
        return ()
    try:
        return tuple(_runs(data))
    except (StructError, UnicodeDecodeError) as error:
        raise Damaged(f"the list of runs of {where} cannot be read ({error})") from error


def _runs(data: bytes) -> Iterator[RunRef]:
    (count_of_runs,) = _RUNS.unpack_from(data)
    at = _RUNS.size
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
