"""Samples of base tables: one pass over each, at most `limit` rows of all of them together.

    in the sample   <=>   rank(table, key) < 2**64 / one_in

The rank is a hash of the key, so a sample does not depend on the order of rows, and equal tables
give equal answers. When there are too many rows, the share of the table with the most is halved:
small tables stay whole, and every share is known exactly. The rank is salted with the table, so
samples of two tables with the same keys are independent, as the product rule for joins asks.

Cost: every row is read once; memory for `limit` rows and one batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.changes.net import NetChanges, combined
from belvedere.encoding.binaries import unpack
from belvedere.epochs.source import as_changes
from belvedere.stores.base import Store, TableId
from belvedere.types import Schema

LIMIT = 100_000  # rows of all tables together
LIMIT_BYTES = 256 << 20  # the same for wide rows
Words = npt.NDArray[np.uint64]
_SALT = 0x9E3779B97F4A7C15  # the golden ratio
_WORD, _LAST = np.uint64(_SALT), np.uint64(0xBF58476D1CE4E5B9)  # the multiplier of splitmix64
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # those of murmur3
_ONES, _HALF = (1 << 64) - 1, np.uint64(32)
_KEEP = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # the lowest n bytes of a word


@dataclass(frozen=True, slots=True)
class Sample:
    """`rows` are in the table, `keys` and `values` in the sample, in key order."""

    rows: int
    keys: pa.BinaryArray
    values: pa.BinaryArray
    one_in: int

    def changes(self, schema: Schema) -> pa.Table:
        return as_changes(
            schema, NetChanges(self.keys, pa.nulls(len(self.keys), pa.binary()), self.values)
        )


def ranks(keys: pa.BinaryArray, salt: int) -> Words:
    """Numbers that look random, spread over 64 bits: the keys' words one after the other, each well
    mixed into what was before.
    """
    packed = unpack(keys, reach=8)
    lengths = packed.ends - packed.starts
    h = lengths.astype(np.uint64)
    for done in range(0, int(lengths.max(initial=0)), 8):
        longer = np.flatnonzero(lengths > done)
        words = (
            packed.gather(packed.starts[longer] + done, "<u8")
            & _KEEP[np.minimum(lengths[longer] - done, 8)]
        )
        h[longer] = _mixed(h[longer] ^ words, _WORD)
    h = _mixed(h, _LAST) ^ np.uint64(salt * _SALT & _ONES)
    return _mixed(_mixed(h ^ (h >> _HALF), _FIRST), _SECOND)


def _mixed(h: Words, multiplier: np.uint64) -> Words:
    product = h * multiplier
    product ^= product >> _HALF
    return product


@dataclass(slots=True)
class _Growing:
    """A sample while its table is read."""

    table: TableId
    seen: int = 0
    halvings: int = 0
    kept: int = 0
    size: int = 0
    chunks: list[tuple[pa.BinaryArray, pa.BinaryArray, Words]] = field(default_factory=list)

    def add(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        self.seen += len(keys)
        self._keep(keys, values, ranks(keys, self.table))

    def halve(self) -> None:
        before, self.chunks, self.kept, self.size, self.halvings = (
            self.chunks,
            [],
            0,
            0,
            self.halvings + 1,
        )
        for chunk in before:
            self._keep(*chunk)

    def _keep(self, keys: pa.BinaryArray, values: pa.BinaryArray, rank: Words) -> None:
        below = rank <= np.uint64(_ONES >> self.halvings)
        mask = pa.array(below)  # filtering copies: what a store lends may not outlive its batch
        chunk = keys.filter(mask), values.filter(mask), rank[below]
        self.kept += len(chunk[0])
        self.size += chunk[0].nbytes + chunk[1].nbytes
        self.chunks.append(chunk)

    def done(self) -> Sample:
        keys, values = (combined([chunk[i] for chunk in self.chunks]) for i in (0, 1))
        return Sample(self.seen, keys, values, 1 << self.halvings)


def take_samples(
    store: Store, tables: Iterable[TableId], limit: int = LIMIT
) -> dict[TableId, Sample]:
    growing = [_Growing(table) for table in tables]
    with store.base.snapshot() as snapshot:
        for sample in growing:
            for keys, values in snapshot.scan(sample.table):
                sample.add(keys, values)
                while sum(s.kept for s in growing) > limit:
                    max(growing, key=lambda s: s.kept).halve()
                while sum(s.size for s in growing) > LIMIT_BYTES:
                    max(growing, key=lambda s: s.size).halve()
    return {sample.table: sample.done() for sample in growing}
