"""Base rows as formats up to 4 kept them, and how they are settled.

    table u32, key             a row: the newest value
    00000000 'l' position u64  a log block, of most tables with the rows before

The newest rows become one run for each slot. In front of it stands a run of what the log says the
rows were before: both together are the rows as of the first position of the log, and the log goes
on from there. A table whose log has no rows before is settled as it is now; what it was, its delta
view knows.

Files are written first, then one transaction names them, and then the old rows are removed. Who is
killed before the transaction leaves files that nobody names; who is killed after it goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import lmdb

from belvedere.encoding import slots_of
from belvedere.encoding.order import distinct
from belvedere.libraries import pa
from belvedere.stores.base import Slot, TableId
from belvedere.stores.embedded import blocks, dropping, log, older_slots, run_lists, settling
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Transaction, translated
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.records import prefix
from belvedere.stores.embedded.run_files import RunFiles, RunWriter
from belvedere.stores.embedded.run_lists import Owner
from belvedere.stores.embedded.runs import Batch, RunRef, joined

T = TypeVar("T")
_DONE = b"\0\0\0\0msettled"
_ROOM = 64 << 20  # for run lists
_ROWS_PER_STEP = 10_000


class _Settled(NamedTuple):
    owner: Owner
    runs: tuple[RunRef, ...]
    records: int
    size: int


def convert(path: str, slots: int) -> None:
    """Settle the rows of all base tables; nothing if that is done already."""
    size = os.path.getsize(os.path.join(path, DATA))
    try:
        with lmdb.open(path, map_size=size + _ROOM) as environment:
            if not _read(environment, lambda t: t.get(_DONE)):
                _settle_all(environment, path, slots)
            for table in _read(environment, older_slots.tables_of):
                while _write(environment, partial(_remove_some, table=table)):
                    pass
    except lmdb.Error as error:
        raise translated(path, error) from error


def _settle_all(environment: Any, path: str, slots: int) -> None:
    with environment.begin() as transaction:
        start = log.trim_point(transaction)
        writer = RunWriter(RunFiles(path), start)
        tables = older_slots.tables_of(transaction)
        made = [each for table in tables for each in _settle(transaction, writer, table, slots)]
    writer.finish()
    _write(environment, lambda transaction: _name(transaction, start, slots, made))


def _read(environment: Any, body: Callable[[Transaction], T]) -> T:
    with environment.begin() as transaction:
        return body(transaction)


def _write(environment: Any, body: Callable[[Transaction], T]) -> T:
    with environment.begin(write=True) as transaction:
        return body(transaction)


def _settle(
    transaction: Transaction, writer: RunWriter, table: TableId, slots: int
) -> Iterator[_Settled]:
    if dropping.is_dead(transaction, table):
        return
    images = _first_images(transaction, table)
    for slot in range(slots):
        newest = writer.add(
            table, _of_slot(older_slots.records_of(transaction, table), slot, slots)
        )
        before = _images_of_slot(images, slot, slots)
        older = writer.add(table, [before]) if len(before[0]) else ()
        owner = run_lists.owner_of(table, slot)
        rows = sum(ref.rows for ref in newest) + _grown(transaction, table, before)
        size = sum(ref.size for ref in newest)  # nearly: rows are as large as they were
        yield _Settled(owner, tuple(run for run in (older, newest) if run), rows, size)


def _of_slot(batches: Iterator[Batch], slot: Slot, slots: int) -> Iterator[Batch]:
    for batch in batches:
        yield _images_of_slot(batch, slot, slots)


def _images_of_slot(batch: Batch, slot: Slot, slots: int) -> Batch:
    mine = pa.array(slots_of(batch[0], slots) == slot)
    return batch[0].filter(mine), batch[1].filter(mine)


def _first_images(transaction: Transaction, table: TableId) -> Batch:
    """What each row that the log changes was at the beginning of the log."""
    parts: list[Batch] = []
    cursor = transaction.cursor()
    if cursor.set_range(log.key_of(0)):
        for key, value in cursor.iternext():
            if not log.is_block(key):
                break
            for block in blocks.decode_all(opened(key, value)):
                if block.table == table and len(block.columns) == 3:
                    parts.append((block.columns[0], block.columns[2]))
    keys, images = joined(parts)
    rows, first, _ = distinct(keys)
    return rows, images.take(pa.array(first))


def _grown(transaction: Transaction, table: TableId, before: Batch) -> int:
    """How many more rows there were before."""
    keys, images = before
    now = sum(transaction.get(prefix(table) + key) is not None for key in keys.to_pylist())
    there = len(images) - int(images.null_count)
    return there - now


def _name(transaction: Transaction, start: int, slots: int, made: list[_Settled]) -> None:
    for each in made:
        run_lists.put(transaction, each.owner, start, each.runs)
        run_lists.add_to_count(transaction, each.owner, each.records, each.size)
    for slot in range(slots):
        settling.put_mark(transaction, slot, start, 0)
    settling.put_floor(transaction, start)
    transaction.put(_DONE, seal(_DONE, b"1"))


def _remove_some(transaction: Transaction, table: TableId) -> bool:
    """Delete some records of a table; whether there may be more."""
    start = prefix(table)
    with transaction.cursor() as cursor:
        if not cursor.set_range(start):
            return False
        for _ in range(_ROWS_PER_STEP):
            if not cursor.key().startswith(start):
                return False
            cursor.delete()
    return True
