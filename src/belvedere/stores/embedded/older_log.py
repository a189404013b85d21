"""The change log as formats up to 5 kept it, in LMDB, and how it becomes files.

    00000000 'm' "end"         end of the log, trim point, number of the catalog (u64 each), bytes
    00000000 'l' position u64  a block: what is the value of a record now

All files are written beside, on disk, and then get the name of the log; then one transaction notes
that, and blocks are removed. Who is killed before the transaction does all of it again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb

from belvedere.stores.embedded import blocks, disk, log, log_segments
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.environment import Transaction, translated
from belvedere.stores.embedded.files import DATA
from belvedere.stores.embedded.log_file import FULL
from belvedere.stores.embedded.log_segments import FOLDER, Segment

_DONE = b"\0\0\0\0mlog"
_ROOM = 64 << 20
_AT_ONCE = 1000  # blocks that are removed in one transaction


def begin(base: Path, store: str) -> None:
    """An empty log; once more is no harm."""
    if not (base / FOLDER).exists():
        _make_folder(base, store, iter(()), 0, 0)


def convert(base: Path, store: str) -> None:
    """Nothing if it is done already."""
    size = os.path.getsize(base / DATA)
    try:
        with lmdb.open(str(base), map_size=size + _ROOM) as environment:
            with environment.begin() as transaction:
                is_done = transaction.get(_DONE)
                if not is_done:
                    start, seen = log.trim_point(transaction), log.seen(transaction)
                    _make_folder(base, store, _blocks(transaction), start, seen)
            if not is_done:
                _note(environment)
            while _remove_some(environment):
                pass
    except lmdb.Error as error:
        raise translated(str(base), error) from error


def _blocks(transaction: Transaction) -> Iterator[tuple[int, bytes]]:
    cursor = transaction.cursor()
    if cursor.set_range(log.key_of(0)):
        for key, value in cursor.iternext():
            if not log.is_block(key):
                return
            yield int.from_bytes(key[-8:], "big"), opened(key, value)


def _make_folder(
    base: Path, store: str, found: Iterator[tuple[int, bytes]], start: int, catalog: int
) -> None:
    new = base / f"{FOLDER}.new"
    for old in (new, base / FOLDER):  # of one that was killed
        shutil.rmtree(old, ignore_errors=True)
    new.mkdir()
    log_segments.create(str(new), store, start)
    segment = Segment.open(str(new), start, writable=True)
    try:
        for position, value in found:
            if segment.offset >= FULL:
                segment = _next(segment, new, store)
            _add(segment, position, value, catalog)
        disk.sync(segment.descriptor)
    finally:
        segment.close()
    disk.sync_folder(str(new))
    disk.rename(str(new), str(base / FOLDER))
    disk.sync_folder(str(base))


def _next(segment: Segment, folder: Path, store: str) -> Segment:
    disk.sync(segment.descriptor)
    segment.close()
    log_segments.create(str(folder), store, segment.end, segment.total, segment.catalog)
    return Segment.open(str(folder), segment.end, writable=True)


def _add(segment: Segment, position: int, value: bytes, catalog: int) -> None:
    rows = sum(rows for _, _, rows in blocks.heads(value))
    if position != segment.end:
        raise segment.broken(segment.end)
    total = segment.total + len(value)
    record = log_segments.encode(value, rows, position, catalog, total)
    disk.write(segment.descriptor, record, segment.offset)
    segment.advance(rows, sum(map(len, record)), total, catalog)


def _note(environment: Any) -> None:
    with environment.begin(write=True) as transaction:
        end, trimmed = log.noted_end(transaction), log.trim_point(transaction)
        log.put_ends(transaction, end, trimmed, log.seen(transaction))
        transaction.put(_DONE, seal(_DONE, b"1"))


def _remove_some(environment: Any) -> bool:
    """Blocks; whether there may be more."""
    with environment.begin(write=True) as transaction, transaction.cursor() as cursor:
        for _ in range(_AT_ONCE):
            if not cursor.set_range(log.key_of(0)) or not log.is_block(cursor.key()):
                return False
            cursor.delete()
    return True
