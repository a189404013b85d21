"""A trial: the real operators over samples, as in the first epoch of a view.

Before the first epoch there is nothing, so all reads as of e-1 find nothing, and what is written is
the whole state. So a trial needs no store: a blank shard answers reads and takes notes of writes.
Slots are those of the real store, because a few records (the counters of error tables) stand once
in every slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.encoding.arrays import BATCH
from belvedere.operators.base import ID, Stateful, Stateless
from belvedere.operators.delivery import Inbox, by_slot, prepare_parts
from belvedere.operators.errors import record_errors
from belvedere.stores.base import Shard, TableId, Write

Tables = Sequence[pa.Table]


@dataclass(slots=True)
class Blank:
    """A shard without any record; `written` keeps what is written, by table."""

    slot: int
    written: dict[TableId, list[Write]]
    epoch: int = 1

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        return pa.nulls(len(keys), pa.binary())

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return iter(())

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = BATCH
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        return iter(())

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = BATCH,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        return iter(())

    def write(self, write: Write) -> None:
        self.written.setdefault(write.table, []).append(write)

    def commit(self) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Trial:
    """Runs one operator after the other."""

    slots: int
    written: dict[TableId, list[Write]] = field(default_factory=dict)

    def apply(self, operator: Stateless, changes: Tables) -> list[pa.Table]:
        results = [operator.apply(batch) for batch in changes]
        failures = [errors for _, errors in results if errors is not None]
        if failures:
            for slot, rows in by_slot(pa.concat_tables(failures), self.slots, key=ID):
                record_errors(self._shard(slot), operator.error_table(), rows)
        return [result for result, _ in results if result.num_rows]

    def step(self, operator: Stateful, ports: Sequence[Tables]) -> list[pa.Table]:
        inbox = Inbox()
        first = operator.first_part()
        if first is not None:
            self._deliver(inbox, 0, first)
        for port, batches in enumerate(ports):
            for batch in batches:
                for part, table in prepare_parts(operator, port, len(ports), batch):
                    self._deliver(inbox, part, table)
        return [
            batch
            for slot, parts in inbox.arrived(len(ports))
            for batch in operator.step(self._shard(slot), parts)
            if batch.num_rows
        ]

    def _deliver(self, inbox: Inbox, part: int, table: pa.Table) -> None:
        for slot, rows in by_slot(table, self.slots):
            inbox.add(slot, part, rows)

    def _shard(self, slot: int) -> Shard:
        return Blank(slot, self.written)


def records(writes: Sequence[Write]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """The records that writes leave behind."""
    empty = pa.array([], pa.binary())
    keys, values = (
        pa.concat_arrays([empty, *(w.keys for w in writes)]),
        pa.concat_arrays([empty, *(w.values for w in writes)]),
    )
    return keys.filter(values.is_valid()), values.drop_null()
