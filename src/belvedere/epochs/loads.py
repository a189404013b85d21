"""How far a loading step goes: the state key up to which an origin has about so many rows, or bytes
of them.

Only keys are looked at. A step ends with a whole state key, so that the rows of a join key or a
group are never divided.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from belvedere.encoding.one_key import prefix_length
from belvedere.graph import Node
from belvedere.operators.base import KeptTable
from belvedere.stores.base import Store, TableId
from belvedere.types import Epoch

_Batches = Iterable[tuple[pa.BinaryArray, pa.BinaryArray]]


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a step may have: rows, and bytes of their keys and values."""

    rows: int
    size: int

    def share(self, parts: int) -> Bound:
        return Bound(max(1, self.rows // parts), max(1, self.size // parts))

    def reached(self, batches: _Batches) -> tuple[bytes | None, int]:
        """The key with which so much is there, or None if there is less; and how many rows were
        counted.
        """
        rows = size = 0
        for keys, values in batches:
            ends = size + np.cumsum(_lengths(keys) + _lengths(values))
            # with the row that exceeds it
            within = min(int(np.searchsorted(ends, self.size)) + 1, self.rows - rows)
            if within <= len(keys):
                return bytes(keys[within - 1].as_py()), rows + within
            rows, size = rows + len(keys), int(ends[-1])
        return None, rows


def _lengths(values: pa.BinaryArray) -> npt.NDArray[np.int64]:
    return np.asarray(pc.binary_length(values).to_numpy(zero_copy_only=False), np.int64)


def next_step(
    store: Store,
    origin: Node,
    epoch: Epoch,
    low: bytes,
    most: Bound,
    delta: TableId = 0,
    table: TableId = 0,
) -> tuple[bytes | None, int]:
    """The state key at which a step that begins at `low` should end (None: at the end), and about
    how many rows it has. A base table with a delta view is loaded from that; the rows of one whose
    changes only pass are in another `table`.
    """
    if delta:
        return _delta_step(store, delta, epoch, low, most)
    if origin.source:
        with store.base.snapshot() as snapshot:
            base = table or origin.operator.base_table
            return snapshot.stretch(base, low, most.rows, most.size)
    each = most.share(store.state.slots)
    ends = [
        _end(store, slot, kept, epoch, low, each)
        for kept in origin.origin.kept()
        for slot in range(store.state.slots)
    ]
    return min((end for end, _ in ends if end is not None), default=None), sum(
        count for _, count in ends
    )


def _delta_step(
    store: Store, delta: TableId, epoch: Epoch, low: bytes, most: Bound
) -> tuple[bytes | None, int]:
    """The first of the keys up to which some slot has its share."""
    each = most.share(store.state.slots)
    ends, rows = [], 0
    for slot in range(store.state.slots):
        reader = store.state.reader(slot, epoch)
        try:
            end, count = each.reached(reader.scan(delta, low, None, each.rows))
        finally:
            reader.close()
        ends.append(end)
        rows += count
    return min((end for end in ends if end is not None), default=None), rows


def _end(
    store: Store, slot: int, kept: KeptTable, epoch: Epoch, low: bytes, most: Bound
) -> tuple[bytes | None, int]:
    """The state key of the last of so many records of one slot, or None if it has fewer; and how
    many were found.
    """
    reader = store.state.reader(slot, epoch)
    try:
        last, count = most.reached(reader.scan(kept.table, low, None, most.rows))
    finally:
        reader.close()
    return (None, count) if last is None else (last[: prefix_length(last, kept.key)], count)
