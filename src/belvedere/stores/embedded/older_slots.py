"""Slots as formats 2 and 3 kept them, and how they become runs.

    00000000 'u' table u32 epoch u64   an undo block: keys written in the epoch, sorted, and their
                                       values before
    table u32, key                     a record: the newest value

As of epoch c a key has the value of the OLDEST undo block of an epoch above c that contains it,
else the newest value. So the newest records become one run of all epochs, and before it stands, in
the run list of an epoch, a run of what later undo blocks say.

Files are written first; then one transaction puts run_lists where records and undo blocks were. Who
is killed before it leaves files that nobody names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import lmdb

from belvedere.libraries import pa, pc
from belvedere.stores.base import TableId
from belvedere.stores.embedded import blocks, run_lists
from belvedere.stores.embedded.checked import seal
from belvedere.stores.embedded.environment import Transaction, translated
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.run_files import RunFiles, RunWriter
from belvedere.stores.embedded.runs import Batch, RunRef, joined, merge
from belvedere.types import Epoch

_UNDO = b"\0\0\0\0u"
_FIRST_RECORD = b"\0\0\0\1"
_ROOM = 64 << 20  # for run_lists
_BATCH = 100_000
_SLICE_END = (1 << 31) - 1  # None would be "to the end", but fails in pyarrow 26


def convert(path: str) -> None:
    """Make runs of the records of a slot; nothing if that is done already."""
    size = os.path.getsize(os.path.join(path, DATA))
    try:
        with lmdb.open(path, map_size=size + _ROOM) as environment:
            with environment.begin() as transaction:
                if not _is_old(transaction):
                    return
                writer = RunWriter(RunFiles(path), 0)
                made = dict(_lists(transaction, writer))
            writer.finish()
            with environment.begin(write=True) as transaction:
                _replace(transaction, environment, made)
    except lmdb.Error as error:
        raise translated(path, error) from error


def _is_old(transaction: Transaction) -> bool:
    cursor = transaction.cursor()
    has_undo = cursor.set_range(_UNDO) and cursor.key().startswith(_UNDO)
    return bool(has_undo or cursor.set_range(_FIRST_RECORD))


def _lists(transaction: Transaction, writer: RunWriter) -> Iterator[tuple[bytes, bytes]]:
    _, history = run_lists.floors(transaction)
    for table in tables_of(transaction):
        newest = writer.add(table, records_of(transaction, table))
        undo = _undo_blocks(transaction, table)
        for number, epoch in enumerate([history, *(epoch for epoch, _ in undo)]):
            later = [block for _, block in undo[number:]]
            runs = _with_before(writer, table, later, newest)
            key = run_lists.key_of(run_lists.owner_of(table), epoch)
            yield key, seal(key, run_lists.encode(runs))


def _with_before(
    writer: RunWriter, table: TableId, later: list[Batch], newest: RunRef
) -> list[RunRef]:
    """The runs as of an epoch that is followed by these undo blocks; the oldest is right."""
    before = writer.add(table, [merge(later, drop_deleted=not newest)]) if later else ()
    return [run for run in (before, newest) if run]


def tables_of(transaction: Transaction) -> list[TableId]:
    """All that have records or undo blocks."""
    found: set[TableId] = set()
    cursor = transaction.cursor()
    at = _FIRST_RECORD
    while cursor.set_range(at):
        table = int.from_bytes(cursor.key()[:4], "big")
        found.add(table)
        if table == 0xFFFFFFFF:
            break
        at = (table + 1).to_bytes(4, "big")
    at = _UNDO
    while cursor.set_range(at) and cursor.key().startswith(_UNDO):
        table = int.from_bytes(cursor.key()[5:9], "big")
        found.add(table)
        at = _UNDO + (table + 1).to_bytes(8, "big")[-4:]
        if table == 0xFFFFFFFF:
            break
    return sorted(found)


def _undo_blocks(transaction: Transaction, table: TableId) -> list[tuple[Epoch, Batch]]:
    start, found = _UNDO + table.to_bytes(4, "big"), []
    cursor = transaction.cursor()
    if cursor.set_range(start):
        for key, value in cursor.iternext():
            if not key.startswith(start):
                break
            keys, before = blocks.decode(value).columns
            found.append((int.from_bytes(key[9:], "big"), (keys, before)))
    return found


def records_of(transaction: Transaction, table: TableId) -> Iterator[Batch]:
    prefix = table.to_bytes(4, "big")
    cursor: Any = transaction.cursor()
    if not cursor.set_range(prefix):
        return
    items = cursor.iternext()
    while piece := list(islice(items, _BATCH)):
        mine = [pair for pair in piece if pair[0].startswith(prefix)]
        if mine:
            keys, values = (pa.array(column, pa.binary()) for column in zip(*mine, strict=True))
            yield joined([(pc.binary_slice(keys, 4, _SLICE_END), values)])
        if len(mine) < len(piece):
            return


def _replace(transaction: Transaction, environment: Any, made: dict[bytes, bytes]) -> None:
    """All that is no record and no undo block stays."""
    kept = []
    cursor = transaction.cursor()
    if cursor.first():
        for key, value in cursor.iternext():
            if key >= _FIRST_RECORD:
                break
            if not key.startswith(_UNDO):
                kept.append((key, value))
    transaction.drop(environment.open_db(txn=transaction), delete=False)
    for key, value in [*kept, *made.items()]:
        transaction.put(key, value)
