"""From operations to net changes: what differs per row between two positions of the log.

    net(o1 .. on) on one row  =  (row before o1, row after on)

The operations in between cancel, so a hot row costs one change per epoch however often it was
written. With before-images both sides stand in the log; without them the delta view supplies the
first (`epochs.source`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.encoding.order import distinct
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock


@dataclass(frozen=True, slots=True)
class NetChanges:
    """Per touched row, in key order: its key, its value before and its value
    after (NULL = no row).
    """

    keys: pa.BinaryArray
    before: pa.BinaryArray | None
    after: pa.BinaryArray

    def __len__(self) -> int:
        return len(self.keys)

    def filter(self, mask: pa.BooleanArray) -> NetChanges:
        before = None if self.before is None else self.before.filter(mask)
        return NetChanges(self.keys.filter(mask), before, self.after.filter(mask))


def combined(arrays: Sequence[pa.Array]) -> pa.BinaryArray:
    if not arrays:
        return pa.array([], pa.binary())
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def net(blocks: Sequence[LogBlock]) -> NetChanges:
    """Net changes of blocks of one table, in log order."""
    keys = combined([b.keys for b in blocks])
    values = combined([b.values for b in blocks])
    images = [b.before for b in blocks]
    before = None if any(image is None for image in images) else combined(images)
    return net_operations(keys, values, before)


def net_operations(
    keys: pa.BinaryArray, values: pa.BinaryArray, before: pa.BinaryArray | None
) -> NetChanges:
    rows, first, last = distinct(keys)  # the last write of a row wins
    image = None if before is None else before.take(pa.array(first))
    return NetChanges(rows, image, values.take(pa.array(last)))


def net_reference(
    keys: Sequence[bytes], values: Sequence[bytes | None], before: Sequence[bytes | None]
) -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """The same, one operation at a time: the plain form that the fast one is held against."""
    result: dict[bytes, tuple[bytes | None, bytes | None]] = {}
    for key, value, old in zip(keys, values, before, strict=True):
        first = result[key][0] if key in result else old
        result[key] = (first, value)
    return {key: result[key] for key in sorted(result)}
