"""The store contract: what an engine may ask of a store, and what an implementer must promise.

A store keeps bytes. It knows no schemas: keys are order-preserving encodings, values are encoded
rows, both made by `belvedere.encoding`. It has three parts, each a small protocol:

    Catalog      one transaction domain for lease, intents, commits and definitions  (rule R4)
    BaseTables   the users' rows and the change log of operations on them  (rules R6, R10)
    StateTables  auxiliary and view tables, cut into slots, versioned by epoch  (rules R1, R2, R3)

It is written for three very different stores: one writer process at a time per environment (LMDB),
many clients with cell timestamps and check-and-mutate (HBase), client timestamps without order
(Cassandra). `stores.memory` is the specification, `tests/conformance/test_stores.py` holds every
store to it.

Batches are Arrow binary arrays. In `values`, NULL means "delete" on the way in and "absent" on the
way out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from belvedere.libraries import np, npt, pa
from belvedere.types import Epoch, Position

T = TypeVar("T")
TableId = int  # 1 .. 2**32-1, never reused (rule R7)
Slot = int
Getter = Callable[[Slot, Epoch, bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Operations on one base table, written by one transaction: an epoch contains all of a block or
    nothing.

    `position` is the position of the first operation, `position + len(keys)` that of the next
    block. Operations on one row stand in the order in which they happened. `values` is NULL for a
    delete. `before` is the row before the operation, NULL where there was none; it is None as a
    whole if the table is written without before-images.
    """

    stream: str
    position: Position
    table: TableId
    time: float
    keys: pa.BinaryArray
    values: pa.BinaryArray
    before: pa.BinaryArray | None

    @property
    def end(self) -> Position:
        return self.position + len(self.keys)


@dataclass(frozen=True, slots=True)
class Write:
    """New values of some keys of one state table; `keys` are sorted and unique, a NULL value
    deletes.

    `before` is what the writer read as of the epoch before (NULL = absent). Stores that keep the
    value before in an undo block take it from here instead of reading again.
    """

    table: TableId
    keys: pa.BinaryArray
    values: pa.BinaryArray
    before: pa.BinaryArray


class CatalogTransaction(Protocol):
    """Keys are short text such as `view/17`; values are small (below 1 MB)."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def delete(self, key: str) -> None: ...
    def scan(self, prefix: str) -> list[tuple[str, bytes]]: ...


class Catalog(Protocol):
    def transact(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Run `body` as one serializable transaction, durable when this returns.

        If `body` raises, nothing is written.

        `body` may run more than once (check-and-mutate stores retry on conflict), so it must have
        no other effects. A time-out whose outcome is unknown must be resolved by reading again
        before this returns or raises.
        """

    def read(self, body: Callable[[CatalogTransaction], T]) -> T:
        """Run `body` on one snapshot of the whole catalog. Writing in it raises StoreError."""

    def get_one(self, key: str) -> bytes | None:
        """One committed value."""

    def mark(self) -> Hashable:
        """Something that is different after every committed transaction, of any process; made for
        latency.

        Every point read of a view begins with it: while it is that of `read_marked`, what was read
        there is current. It may change a moment before readers see the transaction, never after.
        """

    def read_marked(self, body: Callable[[CatalogTransaction], T]) -> tuple[Hashable, T]:
        """The same as `read`, and the mark of the snapshot that was read."""


class BaseSnapshot(Protocol):
    """All base tables as they are after every operation before `position`.

    Close it soon: it may pin pages.

    Reading a table that had been dropped by then raises Dropped.
    """

    position: Position

    def get(self, table: TableId, key: bytes) -> bytes | None: ...
    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray: ...
    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[tuple[pa.BinaryArray, pa.BinaryArray]]:
        """Keys and values with low <= key < high (None: to the end), in key order, in batches of 1
        to `batch` rows.

        A batch ends early when it has some tens of megabytes: also rows of a megabyte each can be
        read. This holds for all scans.
        """


class BaseTables(Protocol):
    """Base rows and their change log.

    A store that does not own the base tables gives only the log's half.
    """

    streams: tuple[str, ...]

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Position | None = None,
    ) -> Position:
        """Apply operations in their order and log them, in ONE transaction, durable when this
        returns.

        A key may occur several times. Returns the position after the last operation: the token of a
        session. With `unless_after`, raises Conflict and writes nothing if any operation
        on this table has been logged at or after that position: read-then-write statements retry on
        it. Raises StoreFull if there is no room, and TooLarge if several operations have more
        bytes, before-images included, than an epoch should take at once; then nothing is written
        and the store stays usable. One operation is never too large. Raises Dropped, whichever
        process has dropped the table: a write that is acknowledged came before the drop.
        """

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Position:
        """The same for one operation, made for latency."""

    def snapshot(self) -> AbstractContextManager[BaseSnapshot]: ...

    def end(self) -> dict[str, Position]:
        """The position after the last logged operation, per stream."""

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        """All blocks with low <= position < high, in order. `low` and `high` are block boundaries.

        Reading below the trim point raises Stale, also when trimming overtakes a read under way
        (rule R6). Blocks may refer to memory that is only valid until the iterator advances: copy
        what you keep.
        """

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        """The largest block boundary at most `low + rows`, or the end of the first block after
        `low` if that is larger.

        With `size`, not beyond the block with which keys, values and before-images exceed so many
        bytes, unless it is the first. Returns `low` if nothing is logged after it. Must not read
        the blocks themselves.
        """

    def count(self, table: TableId) -> int | None:
        """The rows of a table, exactly or nearly; None if the store cannot tell without reading
        them. For status and estimates.
        """

    def room(self) -> tuple[int, int]:
        """Bytes that rows and log take, with what is free to be used again, and the most that they
        may take.

        The log is trimmed in large steps, because that takes room and time itself, and earlier if
        room gets short.
        """

    def trim(self, stream: str, position: Position) -> None:
        """Allow blocks that end at or before `position` to be dropped.

        May drop less; never more. Idempotent.
        """

    def drop(self, table: TableId) -> None:
        """From now on the table can be neither read nor written, by nobody, for ever.

        Idempotent; its log stays until trimmed.

        Returns at once, however many rows there are: they are left to `reclaim`.
        """

    def reclaim(self, seconds: float) -> bool:
        """Remove rows of dropped tables, in short transactions, for about so long; whether there
        are more. At least one step.
        """


class Shard(Protocol):
    """One slot's state tables for one attempt of epoch e: reads are as of e-1, writes as of e, each
    table all or nothing.

    Every read and the commit raise Stale if the slot has moved beyond e (rule R1): the attempt
    aborts as a whole. Reads give the same answers before, during and after another attempt of the
    same epoch (rule R2).
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
        """Apply all buffered writes, in one transaction or in several of whole tables; compute
        first, they are short (rule R10).

        In each transaction: refuse with Stale if the slot's write floor is beyond e; skip tables
        that another attempt of this epoch has already written (the content is the same by rule R5);
        keep the value before each key (rule R2). An attempt that ends between two of them is
        repeated like any other, because the epoch is not committed. Need not be durable before
        `StateTables.sync`.
        """

    def close(self) -> None: ...


class StateReader(Protocol):
    """State tables of one slot as of a committed epoch.

    Raises Stale if the slot's history floor is above it (rule R3).
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

    def getter(self, table: TableId) -> Getter:
        """A function for what a reader of a slot as of a committed epoch would get from a table;
        made once, called often.
        """

    def sync(self, slot: Slot) -> None:
        """Make everything committed in this slot durable.

        Called for every touched slot before the commit manifest (R10).
        """

    def collect(self, slot: Slot, keep: Epoch) -> None:
        """Drop what only readers as of an epoch below `keep` need; raises the history floor in the
        same transaction (R3).

        Also closes epochs below `keep`: late attempts of them must find the write floor at `keep`
        or above.
        """

    def drop(self, slot: Slot, table: TableId, seconds: float = math.inf) -> bool:
        """Forget a state table, in short transactions, for about so long; whether all of it is
        gone. Idempotent.

        The id is never used again, and nobody reads the table while it is half removed.
        """

    def count(self, slot: Slot, table: TableId) -> tuple[int, int]:
        """Records and bytes of a table, exact or estimated, for status and metrics."""

    def status(self, slot: Slot) -> SlotStatus: ...


class Store(Protocol):
    url: str
    # every write raises StoreError; readers cannot hold epochs, and begin again when theirs is gone
    read_only: bool
    catalog: Catalog
    base: BaseTables
    state: StateTables

    def rest(self) -> None:
        """A task has ended and the next one may be long in coming: give back memory that only it
        would use.
        """

    def close(self) -> None: ...
