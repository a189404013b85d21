"""Base tables: the users' rows, and the change log of operations on them (rules R6, R10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from belvedere.libraries import pa
from belvedere.types import Position, Vector

TableId = int  # 1 .. 2**32-1, never reused (rule R7)


@dataclass(frozen=True, slots=True)
class Operations:
    """What a transaction does to one base table, in this order; a NULL value deletes.

    A key may occur several times. With `before_images` the rows before are logged too.

    With `before`, the rows before as somebody else tells them, they only *pass*: they are logged
    with these, and the table has no rows of them. All operations on such a table pass.
    """

    table: TableId
    keys: pa.BinaryArray
    values: pa.BinaryArray
    before_images: bool
    before: pa.BinaryArray | None = None


@dataclass(frozen=True, slots=True)
class FewOperations:
    """The same as lists, for a few of them: to make arrays would take longer than to write them."""

    table: TableId
    keys: list[bytes]
    values: list[bytes | None]
    before_images: bool


AnyOperations = Operations | FewOperations


def in_arrays(operations: AnyOperations) -> Operations:
    if isinstance(operations, Operations):
        return operations
    keys, values = (pa.array(c, pa.binary()) for c in (operations.keys, operations.values))
    return Operations(operations.table, keys, values, operations.before_images)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a transaction has read under a key: the row's value, or None where there was no row."""

    table: TableId
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class LogBlock:
    """Operations on one base table, written by one transaction.

    A transaction is one block or several, one behind the other; `is_last` says that the next block
    belongs to another one. An epoch contains all of a transaction or nothing.

    `position` is the position of the first operation, `position + len(keys)` that of the next
    block. Operations on one row stand in the order in which they happened. `values` is NULL for a
    delete. `before` is the row before the operation, NULL where there was none; it is None as a
    whole if the table is written without before-images. `passes`: it is what the writer has said,
    and the operations are no rows of the table.

    A foreign table (`Mapping`) has `cells`: what its operations did, and `values` are all NULL.
    Cells stand in the order in which they were written: `operation` (a number in `keys`), `family`
    and `column` (numbers in the table's mapping; column -1 means the whole family), `type` (HBase's
    codes: 4 put, 8 delete of one version, 10 of a family's version, 12 of a column, 14 of a
    family), `timestamp`, `sequence` (the id that orders operations on a row and tells those that
    come again; 0 for a row that was scanned), `value`. Cells of other columns are left out. Blocks
    of such tables do not follow each other without gaps: positions also count operations on tables
    and rows that are not mapped.
    """

    stream: str
    position: Position
    table: TableId
    time: float
    keys: pa.BinaryArray
    values: pa.BinaryArray
    before: pa.BinaryArray | None
    is_last: bool = True
    cells: pa.RecordBatch | None = None
    passes: bool = False

    @property
    def end(self) -> Position:
        return self.position + len(self.keys)


class BaseSnapshot(Protocol):
    """All base tables as they are after every operation that `vector` contains.

    Close it soon: it may pin pages.

    Reading a table that had been dropped by then raises Dropped.
    """

    vector: Vector

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

    def stretch(self, table: TableId, low: bytes, rows: int, size: int) -> tuple[bytes | None, int]:
        """How far a step from `low` on goes: the key of its last row, and its rows.

        It has `rows` rows, or ends with the row with which keys and values are about `size` bytes.
        The key is None if the table ends before. Made to be asked often: rows need not be copied.
        """


class BaseTables(Protocol):
    """Base rows and their change log.

    A store that does not own the base tables gives only the log's half.
    """

    def streams(self) -> tuple[str, ...]:
        """The streams that have a log now. They may come and go: a source, a node, a server."""

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        """Log operations in their order, in ONE transaction, durable when this returns: every later
        snapshot shows them. `before_images` is for stores without a history of rows.

        A key may occur several times. Returns the positions after the last operations, of the
        streams that got some: the token of a session. With `unless_after`, raises Conflict and
        writes nothing if any operation on this table has been logged that this vector does not
        contain: read-then-write statements retry on it. Raises StoreFull if there is no room, and
        TooLarge if several operations have more bytes, before-images included, than an epoch should
        take at once; then nothing is written and the store stays usable. One operation is never too
        large. Raises Dropped, whichever process has dropped the table: a write that is acknowledged
        came before the drop.
        """

    def write_all(
        self,
        operations: Sequence[AnyOperations],
        unless_after: Vector | None = None,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        """The same for one transaction over several tables: all of it is applied and logged, or
        nothing, and no epoch divides it. The conflict of one table is that of all.

        Rows that are `expected` are compared while nobody else can write, with what they are
        before this transaction: if one has another value, RowConflict names it, and nothing is
        written. It is the value that counts, not whether somebody wrote it again. To compare must
        be cheap beside writing: other writers wait for it.

        A store without `Capabilities.transactions` refuses more than one table, and all that is
        expected; one without `Capabilities.passing` is not given operations that pass.
        """

    def put_one(
        self,
        table: TableId,
        key: bytes,
        value: bytes | None,
        before_images: bool,
        expected: Sequence[Expected] = (),
    ) -> Vector:
        """The same for one operation, made for latency."""

    def together(self) -> AbstractContextManager[None]:
        """Transactions that this thread writes inside stay each by itself, but are durable, and
        seen in snapshots, at its end: a store that waits for a disk waits once.
        """

    def snapshot(self) -> AbstractContextManager[BaseSnapshot]: ...

    def end(self) -> Vector:
        """The position after the last logged operation, per stream."""

    def barrier(self) -> Vector:
        """Positions that cover every operation acknowledged before this call, whoever wrote it.

        For a store whose writes return positions it is `end()`.
        """

    def read_log(self, stream: str, low: Position, high: Position) -> Iterator[LogBlock]:
        """All blocks with low <= position < high, in order. Both are boundaries of transactions.

        Reading below the trim point raises Stale, also when trimming overtakes a read under way
        (rule R6). Blocks may refer to memory that is only valid until the iterator advances: copy
        what you keep.
        """

    def cut(self, stream: str, low: Position, rows: int, size: int | None = None) -> Position:
        """The largest boundary of transactions at most `low + rows`, or the end of the first one
        after `low` if that is larger.

        With `size`, not beyond the transaction with which keys, values and before-images exceed so
        many bytes, unless it is the first. Returns `low` if nothing is logged after it. Must not
        read the blocks themselves.
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
        """Allow transactions that end at or before `position` to be dropped.

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
