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

from belvedere.encoding import slot_of, slots_of
from belvedere.operators.aggregate import GLOBAL, Aggregate
from belvedere.operators.base import ID, KEY, Stateful
from belvedere.operators.errors import record_errors
from belvedere.operators.select import Select
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
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        return iter(())

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
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

    def apply(self, operator: Select, changes: Tables) -> list[pa.Table]:
        results = [operator.apply(batch) for batch in changes]
        failures = [errors for _, errors in results if errors is not None]
        if failures:
            for slot, rows in self._by_slot(pa.concat_tables(failures), ID):
                record_errors(self._shard(slot), operator.errors, rows)
        return [result for result, _ in results if result.num_rows]

    def step(self, operator: Stateful, ports: Sequence[Tables]) -> list[pa.Table]:
        inbox: dict[int, dict[int, list[pa.Table]]] = {}
        if isinstance(operator, Aggregate) and not operator.groups:
            inbox[slot_of(GLOBAL, self.slots)] = {0: [operator.start()]}
        for port, batches in enumerate(ports):
            for batch in batches:
                for part, table in enumerate(
                    operator.prepare(port, batch), port if len(ports) > 1 else 0
                ):
                    for slot, rows in self._by_slot(table, KEY):
                        inbox.setdefault(slot, {}).setdefault(part, []).append(rows)
        emitted = []
        for slot, parts in sorted(inbox.items()):
            all_parts = [parts.get(i, []) for i in range(max(len(ports), max(parts) + 1))]
            emitted += [
                batch for batch in operator.step(self._shard(slot), all_parts) if batch.num_rows
            ]
        return emitted

    def _shard(self, slot: int) -> Shard:
        return Blank(slot, self.written)

    def _by_slot(self, table: pa.Table, column: str) -> Iterator[tuple[int, pa.Table]]:
        place = slots_of(table.column(column).combine_chunks(), self.slots)
        for slot in np.unique(place).tolist():
            yield slot, table.filter(pa.array(place == slot))


def records(writes: Sequence[Write]) -> tuple[pa.BinaryArray, pa.BinaryArray]:
    """The records that writes leave behind."""
    empty = pa.array([], pa.binary())
    keys, values = (
        pa.concat_arrays([empty, *(w.keys for w in writes)]),
        pa.concat_arrays([empty, *(w.values for w in writes)]),
    )
    return keys.filter(values.is_valid()), values.drop_null()
