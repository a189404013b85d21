"""The messages of pgoutput, version 1, that are not rows.

    B  begin       C  commit       R  columns of a relation       T  truncate
    I  insert: relation, N, row    U  update: relation, O, row before, N, row
    D  delete: relation, O, row before

A row is the number of its columns, 2 bytes, and then the fields (see fields.py).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Before each message: 'w', two positions, a time.
HEADER = 25
INSERT, UPDATE, DELETE, BEGIN, COMMIT, RELATION, TRUNCATE = b"IUDBCRT"
WHOLE_BEFORE, ROW = b"ON"
TEXT = ord("t")
_EPOCH_2000 = 946_684_800  # the server's clock starts in the year 2000


@dataclass(frozen=True, slots=True)
class Begun:
    commit: int
    time: float
    number: int


@dataclass(frozen=True, slots=True)
class Told:
    """A relation as the log tells it: its columns by name, number of the type and modifier."""

    number: bytes
    schema: str
    name: str
    columns: tuple[tuple[str, int, int], ...]


def read_begin(message: bytes | memoryview) -> Begun:
    commit, time, number = struct.unpack_from(">QqI", message, HEADER + 1)
    return Begun(commit, time / 1e6 + _EPOCH_2000, number)


def read_commit(message: bytes | memoryview) -> int:
    """Where the transaction ends in the log."""
    end: int = struct.unpack_from(">BQQ", message, HEADER + 1)[2]
    return end


def read_truncate(message: bytes | memoryview) -> list[bytes]:
    (count,) = struct.unpack_from(">I", message, HEADER + 1)
    places = range(HEADER + 6, HEADER + 6 + 4 * count, 4)
    return [bytes(message[place : place + 4]) for place in places]


def read_texts(message: bytes, count: int) -> list[str]:
    """The first columns of an inserted row; NULL as an empty text."""
    place, texts = HEADER + 8, []
    for _ in range(count):
        if message[place] != TEXT:
            place += 1
            texts.append("")
            continue
        (size,) = struct.unpack_from(">I", message, place + 1)
        place += 5 + size
        texts.append(message[place - size : place].decode())
    return texts


def read_relation(message: bytes) -> Told:
    number = message[HEADER + 1 : HEADER + 5]
    schema, place = _text(message, HEADER + 5)
    name, place = _text(message, place)
    (count,) = struct.unpack_from(">xH", message, place)  # a byte says the replica identity
    place += 3
    columns = []
    for _ in range(count):
        column, place = _text(message, place + 1)  # a byte says whether it is in the key
        kind, modifier = struct.unpack_from(">Ii", message, place)
        columns.append((column, kind, modifier))
        place += 8
    return Told(number, schema or "pg_catalog", name, tuple(columns))


def _text(message: bytes, place: int) -> tuple[str, int]:
    end = message.index(0, place)
    return message[place:end].decode(), end + 1
