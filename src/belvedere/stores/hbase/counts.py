"""How many records a table has in a slot: what each epoch adds, in the row of the floor.

A commit writes its own part, at its epoch and with its records, so all attempts write the same. A
sweep sums up what lies below its floor, where nothing changes any more. A count is the sum from the
newest total on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from belvedere.libraries import pa, pc
from belvedere.stores.base import Write
from belvedere.stores.hbase.client import Cell

FAMILY, QUALIFIER = "f", b"n"
_PACKED = struct.Struct(">Bqqq")


@dataclass(frozen=True, slots=True)
class Count:
    """Records and the size of keys and values; `written` are versions since the last sweep."""

    records: int = 0
    size: int = 0
    written: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.records + other.records, self.size + other.size, self.written + other.written
        )

    def pack(self, is_total: bool = False) -> bytes:
        return _PACKED.pack(is_total, self.records, self.size, self.written)


def of_write(write: Write) -> Count:
    """What a write adds."""
    now, before = _size(write.keys, write.values), _size(write.keys, write.before)
    return Count(now[0] - before[0], now[1] - before[1], len(write.keys))


def _size(keys: pa.BinaryArray, values: pa.BinaryArray) -> tuple[int, int]:
    if values.null_count == len(values):
        return 0, 0
    lengths = pc.add(pc.binary_length(keys), pc.binary_length(values))
    return len(values) - values.null_count, pc.sum(pc.cast(lengths, pa.int64())).as_py()


def total(versions: list[Cell], upto: int | None = None) -> Count:
    """The sum of versions, which come newest first, down to the newest total."""
    found = Count()
    for cell in versions:
        if upto is not None and cell.timestamp > upto:
            continue
        is_total, *numbers = _PACKED.unpack(cell.value)
        found += Count(*numbers)
        if is_total:
            break
    return found


def fold(row: bytes, versions: list[Cell], keep: int) -> list[Cell]:
    """Cells that replace all versions up to `keep` by their total; they are written as one."""
    sum_ = total(versions, keep)
    if not any(cell.timestamp <= keep for cell in versions):
        return []
    folded = Count(sum_.records, sum_.size).pack(is_total=True)
    return [
        Cell(row, FAMILY, QUALIFIER, keep - 1, kind="C"),
        Cell(row, FAMILY, QUALIFIER, keep, folded),
    ]
