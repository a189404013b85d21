"""Records in ranges of keys, batch by batch, as far as somebody asks for them.

Whole keys are looked up, many at once; other ranges are scanned. A scan begins with batches of the
size that is asked for and then takes larger ones, so that who needs a few rows reads a few, and who
needs all pays for no more batches than necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from belvedere.encoding import slot_of
from belvedere.encoding.ranges import KeyRange, Ranges
from belvedere.libraries import pa
from belvedere.stores.base import BaseSnapshot, StateReader, TableId

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"  # keys and values

LARGEST = 100_000  # records of a batch
_GROWTH = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where the records of one table are: base rows, or a slot."""

    scan: Callable[[bytes, bytes | None, int], Iterator[Batch]]
    get_many: Callable[[pa.BinaryArray], pa.BinaryArray]

    @classmethod
    def of_snapshot(cls, snapshot: BaseSnapshot, table: TableId) -> Place:
        return cls(
            lambda low, high, size: snapshot.scan(table, low, high, size),
            lambda keys: snapshot.get_many(table, keys),
        )

    @classmethod
    def of_state(cls, reader: StateReader, table: TableId) -> Place:
        return cls(
            lambda low, high, size: reader.scan(table, low, high, size),
            lambda keys: reader.get_many(table, keys),
        )


def read_ranges(
    ranges: Iterable[KeyRange], columns: int, place: Place, size: int = LARGEST
) -> Iterator[Batch]:
    """Records whose keys, of so many columns, are in the ranges."""
    for are_keys, some in groupby(ranges, lambda each: each.is_key(columns)):
        if are_keys:
            yield from _look_up([each.low for each in some], place)
        else:
            for each in some:
                yield from _scan(each, place, size)


def _look_up(keys: list[bytes], place: Place) -> Iterator[Batch]:
    array = pa.array(keys, pa.binary())
    values = place.get_many(array)
    if values.null_count == 0:
        yield array, values
    elif values.null_count < len(values):
        present = values.is_valid()
        yield array.filter(present), values.filter(present)


def _scan(each: KeyRange, place: Place, size: int) -> Iterator[Batch]:
    low = each.low
    while size < LARGEST:
        batch = next(place.scan(low, each.high, size), None)
        if batch is None:
            return
        yield batch
        low = batch[0][-1].as_py() + b"\0"
        size *= _GROWTH
    yield from place.scan(low, each.high, LARGEST)


def by_slot(ranges: Ranges, owner_columns: int, slots: int) -> Iterator[tuple[int, list[KeyRange]]]:
    """What to read in each slot in which there may be something.

    A range that fixes the columns that decide the slot is in one, any other in all of them.
    """
    found: dict[int, list[KeyRange]] = {}
    for each in ranges:
        is_fixed = 0 < owner_columns <= len(each.bound)
        owner = b"".join(each.bound[:owner_columns])
        for slot in (slot_of(owner, slots),) if is_fixed else range(slots):
            found.setdefault(slot, []).append(each)
    yield from sorted(found.items())
