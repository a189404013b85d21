"""Values as formats up to 4 kept them, without the seals of `checked.py`.

    catalog      values as they are
    base         log blocks, ends and marks of tables as they are
    floors       16 or 24 bytes; counts: 16
    run lists    a checksum u32 of what follows, in front

Each part is changed in one transaction, and what is sealed already is left as it is: who is killed
in between does it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from struct import Struct
from zlib import crc32

import lmdb

from belvedere.errors import Damaged
from belvedere.stores.embedded import checked, parts, run_lists
from belvedere.stores.embedded.environment import Transaction, translated
from belvedere.stores.embedded.files import DATA

_CHECK = Struct("<I")
_FIRST_OF_CATALOG = b"\1"
_FIRST_ROW = b"\0\0\0\1"
_ROOM = 64 << 20  # for new pages
_OF_SLOT = (run_lists.LIST, run_lists.FLOORS, run_lists.COUNT)
_LENGTHS = (16, 24)  # of floors and counts without a seal


def convert(folder: str, slots: int) -> None:
    """Seal the values of all parts of the store in `folder`."""
    catalog, base, *state = parts.names(slots)
    _change(os.path.join(folder, catalog), _seal_catalog)
    _change(os.path.join(folder, base), _seal_base)
    for part in state:
        _change(os.path.join(folder, part), _seal_slot)


def _change(path: str, seal: Callable[[Transaction], None]) -> None:
    size = os.path.getsize(os.path.join(path, DATA))
    try:
        with (
            lmdb.open(path, map_size=2 * size + _ROOM) as environment,
            environment.begin(write=True) as transaction,
        ):
            seal(transaction)
    except lmdb.Error as error:
        raise translated(path, error) from error


def _seal_catalog(transaction: Transaction) -> None:
    """All of its values, or none: they were sealed in one transaction."""
    with transaction.cursor() as cursor:
        found = list(cursor.iternext()) if cursor.set_range(_FIRST_OF_CATALOG) else []
    noted = transaction.get(parts.PARTS)
    if noted is not None:
        found.append((parts.PARTS, noted))
    if not all(checked.is_whole(key, value) for key, value in found):
        _seal(transaction, found)


def _seal_base(transaction: Transaction) -> None:
    """All but rows; one by one, as the log may be long."""
    with transaction.cursor() as cursor:
        known = [key for key in cursor.iternext(keys=True, values=False) if key < _FIRST_ROW]
    for key in filter(checked.is_sealed, known):
        value = transaction.get(key)
        if not checked.is_whole(key, value):
            _seal(transaction, [(key, value)])


def _seal_slot(transaction: Transaction) -> None:
    with transaction.cursor() as cursor:
        entries = [(key, value) for key, value in cursor if key.startswith(_OF_SLOT)]
    for key, value in entries:
        if key.startswith(run_lists.LIST):
            if not checked.is_whole(key, value):
                _seal(transaction, [(key, _body(key, value))])
        elif len(value) in _LENGTHS:
            _seal(transaction, [(key, value)])


def _body(key: bytes, value: bytes) -> bytes:
    """A run list without the checksum that was in front of it."""
    body = value[_CHECK.size :]
    if value[: _CHECK.size] != _CHECK.pack(crc32(body)):
        raise Damaged(f"{checked.describe(key)} is not what was written")
    return body


def _seal(transaction: Transaction, entries: list[tuple[bytes, bytes]]) -> None:
    for key, value in entries:
        transaction.put(key, checked.seal(key, value))
