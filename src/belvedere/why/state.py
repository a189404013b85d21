"""One slot as of a committed epoch, for operators that read it and write nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from belvedere.encoding import prefix_range
from belvedere.libraries import np, npt, pa
from belvedere.stores.base import Slot, StateReader, TableId, Write
from belvedere.types import Epoch


class PastSlot:
    """A shard of which only reads are asked: they are as of `epoch`, not of the one before."""

    def __init__(self, reader: StateReader, slot: Slot, epoch: Epoch) -> None:
        self._reader, self.slot, self.epoch = reader, slot, epoch

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return self._reader.get_many(table, keys)

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        assert not reverse, "only steps look for a last record"
        for keys, values in self._reader.scan(table, low, high, 1):
            yield from zip(keys.to_pylist(), values.to_pylist(), strict=True)

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        return self._reader.scan(table, low, high, batch)

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        for number, prefix in enumerate(prefixes.to_pylist()):
            left = limit
            size = batch if limit is None else max(1, min(limit, batch))
            for keys, values in self._reader.scan(table, *prefix_range(prefix), size):
                some = len(keys) if left is None else min(left, len(keys))
                yield np.full(some, number, np.int64), keys.slice(0, some), values.slice(0, some)
                left = None if left is None else left - some
                if left == 0:
                    break

    def write(self, write: Write) -> NoReturn:
        raise AssertionError("an explanation writes nothing")

    def commit(self) -> NoReturn:
        raise AssertionError("an explanation writes nothing")

    def close(self) -> None:
        self._reader.close()
