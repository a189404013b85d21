"""State tables: auxiliary and view tables, cut into slots, versioned by epoch
(rules R1, R2, R3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from belvedere.libraries import np, npt, pa
from belvedere.stores.base.base_tables import TableId
from belvedere.stores.base.differences import Difference
from belvedere.types import Column, Epoch

Slot = int
# The catalog's entry with the epoch below which history may be removed, as decimal digits. The
# engine raises it in the transaction that commits an epoch, where it sees all pins.
FLOOR = "floor"
Getter = Callable[[Slot, Epoch, bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a state table holds, for stores whose tables other clients read.

    `name` is that of a view, "" for an auxiliary table. `key` and `values` are the columns of its
    records, both empty if they are bytes for us alone. With `counts` the value of a record is not a
    row: it says how often the key is there, in eight bytes, little endian.
    """

    table: TableId
    name: str = ""
    key: tuple[Column, ...] = ()
    values: tuple[Column, ...] = ()
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """New values of some keys of one state table; `keys` are sorted and unique, a NULL value
    deletes.

    `before` is what the writer read as of the epoch before (NULL = absent). Stores that keep the
    value before take it from here instead of reading again.
    """

    table: TableId
    keys: pa.BinaryArray
    values: pa.BinaryArray
    before: pa.BinaryArray


class Shard(Protocol):
    """One slot's state tables for one attempt of epoch e: reads are as of e-1, writes as of e.

    With slot transactions every read and the commit raise Stale if the slot has moved beyond e
    (rule R1), and a table is written all or nothing.

    Without them a read is right as of e-1, or the commit raises Stale before it writes anything: it
    looks at the floor after the last read (e-1 must still be kept). What is written is the same for
    all attempts, so a commit is all writes or any part of them, and may be repeated. A write that
    comes after the floor has reached e must change nothing.

    Either way the attempt aborts as a whole, and reads give the same answers before, during and
    after another attempt of the same epoch (rule R2).
    """

    slot: Slot
    epoch: Epoch

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Values as of e-1, aligned with `keys` (which should be sorted for speed), NULL where
        absent.
        """

    def scan(
        self, table: TableId, low: bytes, high: bytes | None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Records as of e-1 with low <= key < high, lazily, in key order or in reverse: for seeks
        to a first or last record.
        """

    def scan_batches(
        self, table: TableId, low: bytes, high: bytes | None, batch: int = 100_000
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]: ...

    def scan_prefixes(
        self,
        table: TableId,
        prefixes: pa.BinaryArray,
        limit: int | None = None,
        batch: int = 100_000,
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.BinaryArray, pa.BinaryArray]]:
        """Records as of e-1 whose key begins with one of the prefixes, in key order, at most
        `limit` per prefix.

        Prefix p covers [p, p + FF), as `encoding.keys` says; prefixes are sorted and cover no key
        twice. Each batch says for every record the number of its prefix, its key and its value; it
        has 1 to `batch` records, and a prefix may span batches. One seek per prefix, never a scan
        of the table. No transaction is open while the consumer has a batch.
        """

    def write(self, write: Write) -> None:
        """Buffer a write. A table is written at most once per shard (one operator owns it)."""

    def commit(self) -> None:
        """Apply all buffered writes; compute first, transactions are short (rule R10).

        With slot transactions, in each: refuse with Stale if the slot's write floor is beyond e;
        skip tables that another attempt of this epoch has already written (the content is the same
        by rule R5); keep the value before each key (rule R2). An attempt that ends between two of
        them is repeated like any other, because the epoch is not committed. Need not be durable
        before `StateTables.sync`.
        """

    def close(self) -> None: ...


class StateReader(Protocol):
    """State tables of one slot as of a committed epoch.

    Raises Stale instead of giving what may be wrong because the floor is above it (rule R3).
    """

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray: ...
    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SlotStatus:
    slot: Slot
    # epochs below are closed: the last epoch that wrote here, or was closed by collection
    write_floor: Epoch
    history_floor: Epoch  # epochs below cannot be read any more
    bytes: int


class StateTables(Protocol):
    slots: int

    def shard(self, slot: Slot, epoch: Epoch) -> Shard: ...

    def reader(self, slot: Slot, epoch: Epoch) -> StateReader: ...

    def differences(
        self, slot: Slot, table: TableId, low: Epoch, high: Epoch
    ) -> Iterator[Difference]:
        """Records of a table that are others as of `high` than as of `low`, both committed, in
        batches: keys with the value as of either, NULL where there is none; every key once, sorted
        within a batch.

        Raises Stale if the floor is above `low`. A store that knows what an epoch wrote reads that;
        others may use `scan_differences`.
        """

    def getter(self, table: TableId) -> Getter:
        """A function for what a reader of a slot as of a committed epoch would get from a table;
        made once, called often.
        """

    def sync(self, slot: Slot) -> None:
        """Make everything committed in this slot durable.

        Called for every touched slot before the commit manifest (R10).
        """

    def create(self, tables: Sequence[TableShape]) -> None:
        """Make tables that are not there yet; called before an epoch first writes them.

        Idempotent, also after a crash.
        """

    def collect(self, keep: Epoch) -> None:
        """Drop what only readers as of an epoch below `keep` need; the catalog's floor is there.

        Also closes epochs up to `keep`: a late attempt of one of them changes nothing from then on
        (rule R3). May leave some of it for the next call.
        """

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        """Forget a state table, in short transactions, for about so long; whether all of it is
        gone. Idempotent.

        The id is never used again, and nobody reads the table while it is half removed.
        """

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        """Records and bytes of a table, exact or estimated, for status and metrics."""

    def status(self, slot: Slot) -> SlotStatus: ...
