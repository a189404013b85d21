"""What differs between two states of a table of a slot, for stores that cannot tell it in a cheaper
way: both are scanned side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from belvedere.libraries import pa, pc

Batch: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray]"
# sorted keys, with the value before and after; NULL: no record
Difference: TypeAlias = "tuple[pa.BinaryArray, pa.BinaryArray, pa.BinaryArray]"


def differing(
    keys: pa.BinaryArray, before: pa.BinaryArray, after: pa.BinaryArray
) -> Difference | None:
    """Of aligned values those that differ; None if none does."""
    same = pc.fill_null(pc.equal(before, after), False)
    neither = pc.and_(pc.is_null(before), pc.is_null(after))
    wanted = pc.invert(pc.or_(same, neither))
    if not pc.any(wanted).as_py():
        return None
    return keys.filter(wanted), before.filter(wanted), after.filter(wanted)


def scan_differences(old: Iterator[Batch], new: Iterator[Batch]) -> Iterator[Difference]:
    """Of two scans in key order, each read once."""
    left, right = next(old, None), next(new, None)
    while left is not None or right is not None:
        bound = _bound(left, right)
        first, left = _split(left, bound)
        second, right = _split(right, bound)
        found = _compare(first, second)
        if found is not None:
            yield found
        left = next(old, None) if left is None else left
        right = next(new, None) if right is None else right


def _bound(left: Batch | None, right: Batch | None) -> bytes:
    """Up to here both sides are known."""
    ends: list[bytes] = [side[0][-1].as_py() for side in (left, right) if side is not None]
    return min(ends)


def _split(batch: Batch | None, bound: bytes) -> tuple[Batch, Batch | None]:
    """Records up to the bound, and the rest if there is one."""
    if batch is None:
        empty = pa.array([], pa.binary())
        return (empty, empty), None
    keys, values = batch
    count = pc.sum(pc.less_equal(keys, bound)).as_py()
    rest = None if count == len(keys) else (keys.slice(count), values.slice(count))
    return (keys.slice(0, count), values.slice(0, count)), rest


def _compare(old: Batch, new: Batch) -> Difference | None:
    keys = pc.unique(pa.concat_arrays([old[0], new[0]]))
    keys = keys.take(pc.sort_indices(keys))
    before = old[1].take(pc.index_in(keys, old[0]))
    after = new[1].take(pc.index_in(keys, new[0]))
    return differing(keys, before, after)
