"""What a transaction writes, until it is written: its tables as it sees them itself.

    write, put_one    operations are collected
    snapshot          one moment for all reads, with the collected operations in front of it

Rows that are read by their keys are noted with their bytes, to be compared when the transaction is
written. Scans note nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from threading import get_ident
from typing import Any, NoReturn

from belvedere.errors import TransactionError
from belvedere.libraries import pa
from belvedere.stores.base import (
    AnyOperations,
    BaseSnapshot,
    BaseTables,
    Expected,
    FewOperations,
    Operations,
    Store,
    TableId,
)
from belvedere.types import Vector

# operations of a transaction: an epoch contains all of it
LARGEST = 1_000_000
LARGEST_BYTES = 128 << 20
_FEW = 64  # operations of a table that are written in less time without arrays
_MISSING: Any = object()
_Batch = tuple[pa.BinaryArray, pa.BinaryArray]


class Collected:
    """The base tables of a transaction; what is asked of base tables otherwise is refused."""

    def __init__(self, base: BaseTables) -> None:
        self._base = base
        self._writes: dict[TableId, TableWrites] = {}
        self._expected: dict[tuple[TableId, bytes], bytes | None] = {}
        self._held: ExitStack | None = None
        self._snapshot: Overlay | None = None
        self._count = self._size = 0
        self._thread = get_ident()
        self.why_ended = ""

    def __getattr__(self, name: str) -> NoReturn:
        raise TransactionError(
            "inside a transaction tables are read as they are now: read views, and the past, before"
            " or after it"
        )

    def check_open(self) -> None:
        if self.why_ended:
            raise TransactionError(self.why_ended)
        if get_ident() != self._thread:  # keys and values of two threads would be mixed
            raise TransactionError(
                "a transaction is for the thread that began it: begin another one in this thread"
            )

    def end_it(self, why: str) -> None:
        self.why_ended = self.why_ended or why
        if self._held is not None:
            self._held.close()
            self._held = self._snapshot = None

    # ------------------------------------------------------------ writing

    def write(
        self,
        table: TableId,
        keys: pa.BinaryArray,
        values: pa.BinaryArray,
        before_images: bool,
        unless_after: Vector | None = None,
    ) -> Vector:
        """With `unless_after` these rows have been read: each is compared, not the whole table."""
        self.check_open()
        if unless_after is not None:
            self._expect(table, keys)
        self._grow(len(keys), keys.nbytes + values.nbytes)
        self._of(table, before_images).add(keys, values)
        return Vector()

    def put_one(
        self, table: TableId, key: bytes, value: bytes | None, before_images: bool
    ) -> Vector:
        self.check_open()
        self._grow(1, len(key) + len(value or b""))
        self._of(table, before_images).put(key, value)
        return Vector()

    def _of(self, table: TableId, before_images: bool) -> TableWrites:
        found = self._writes.get(table)
        if found is None:
            found = self._writes[table] = TableWrites(before_images)
        return found

    def _grow(self, rows: int, size: int) -> None:
        """A part of a call may have been collected already: so all is given up."""
        self._count, self._size = self._count + rows, self._size + size
        if self._count > LARGEST or self._size > LARGEST_BYTES:
            self.end_it(
                f"a transaction has at most {LARGEST:,} operations and {LARGEST_BYTES >> 20} MiB,"
                " and this one became larger: it was rolled back, nothing was written. Write it in"
                " several"
            )
            self.check_open()

    @property
    def count(self) -> int:
        return self._count

    def written(self) -> Vector:
        """All at once; returns the position of the log behind it."""
        expected = [Expected(*row, value) for row, value in self._expected.items()]
        there = [(table, writes) for table, writes in self._writes.items() if writes.parts]
        if self._count == 1:
            ((table, writes),) = there
            return self._base.put_one(table, *writes.only(), writes.before_images, expected)
        operations = [writes.operations(table) for table, writes in there]
        return self._base.write_all(operations, expected=expected)

    # ------------------------------------------------------------ reading

    def snapshot(self) -> AbstractContextManager[Overlay]:
        self.check_open()
        return nullcontext(self._now())

    def _now(self) -> Overlay:
        """The moment of the first read is that of all reads."""
        if self._snapshot is None:
            self._held = ExitStack()
            self._snapshot = Overlay(self, self._held.enter_context(self._base.snapshot()))
        return self._snapshot

    def end(self) -> Vector:
        return self._base.end()

    def latest(self, table: TableId) -> dict[bytes, bytes | None]:
        writes = self._writes.get(table)
        return writes.latest() if writes is not None else {}

    def note(self, table: TableId, key: bytes, value: bytes | None) -> None:
        self._expected[table, key] = value

    def _expect(self, table: TableId, keys: pa.BinaryArray) -> None:
        own = self.latest(table)
        others = [key for key in keys.to_pylist() if key not in own]
        self._now().get_many(table, pa.array(others, pa.binary()))  # which notes them


class TableWrites:
    """Operations on one table in their order: single ones in lists, many in arrays."""

    def __init__(self, before_images: bool) -> None:
        self.before_images = before_images
        self.parts: list[tuple[Any, Any]] = []
        self._latest: dict[bytes, bytes | None] = {}
        self._known = 0  # parts that are in it

    def put(self, key: bytes, value: bytes | None) -> None:
        if not self.parts or not isinstance(self.parts[-1][0], list):
            self.parts.append(([], []))
        keys, values = self.parts[-1]
        keys.append(key)
        values.append(value)
        if self._known == len(self.parts):
            self._latest[key] = value

    def add(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        if len(keys):
            self.parts.append((keys, values))

    def latest(self) -> dict[bytes, bytes | None]:
        """The last operation on every key; made when somebody reads, most writers do not."""

        def listed(column: Any) -> list[Any]:
            return column if isinstance(column, list) else list(column.to_pylist())

        for keys, values in self.parts[self._known :]:
            self._latest.update(zip(listed(keys), listed(values), strict=True))
        self._known = len(self.parts)
        return self._latest

    def only(self) -> tuple[bytes, bytes | None]:
        """The one operation that there is."""
        ((keys, values),) = self.parts
        if isinstance(keys, list):
            return keys[0], values[0]
        return keys[0].as_py(), values[0].as_py()

    def operations(self, table: TableId) -> AnyOperations:
        keys, values = self.parts[0]
        if len(self.parts) == 1 and isinstance(keys, list) and len(keys) <= _FEW:
            return FewOperations(table, keys, values, self.before_images)
        keys, values = (_joined([part[i] for part in self.parts]) for i in (0, 1))
        return Operations(table, keys, values, self.before_images)


def _joined(columns: Sequence[Any]) -> pa.BinaryArray:
    arrays = [pa.array(c, pa.binary()) if isinstance(c, list) else c for c in columns]
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


class Overlay:
    """A snapshot behind what a transaction has written."""

    def __init__(self, collected: Collected, behind: BaseSnapshot) -> None:
        self._collected, self._behind = collected, behind
        self.vector = behind.vector

    def get(self, table: TableId, key: bytes) -> bytes | None:
        own = self._collected.latest(table).get(key, _MISSING)
        if own is not _MISSING:
            return own  # type: ignore[no-any-return]  # a value, once it is there
        value = self._behind.get(table, key)
        self._collected.note(table, key, value)
        return value

    def get_many(self, table: TableId, keys: pa.BinaryArray) -> pa.BinaryArray:
        own, listed = self._collected.latest(table), keys.to_pylist()
        values = self._behind.get_many(table, keys).to_pylist()
        for i, key in enumerate(listed):
            if key in own:
                values[i] = own[key]
            else:
                self._collected.note(table, key, values[i])
        return pa.array(values, pa.binary())

    def scan(
        self, table: TableId, low: bytes = b"", high: bytes | None = None, batch: int = 100_000
    ) -> Iterator[_Batch]:
        behind = self._behind.scan(table, low, high, batch)
        own = self._collected.latest(table)
        inside = sorted(key for key in own if low <= key and (high is None or key < high))
        if not inside:
            yield from behind
            return
        done = 0
        for keys, values in behind:
            last = keys[-1].as_py()
            upto = next((i for i in range(done, len(inside)) if inside[i] > last), len(inside))
            yield from _in_batches(_merged(keys, values, own, inside[done:upto]), batch)
            done = upto
        rest = {key: own[key] for key in inside[done:]}
        yield from _in_batches(rest, batch)


def _merged(
    keys: pa.BinaryArray,
    values: pa.BinaryArray,
    own: dict[bytes, bytes | None],
    inside: Sequence[bytes],
) -> dict[bytes, bytes | None]:
    """Rows in the order of their keys, with what a transaction has written in place of them."""
    rows: dict[bytes, bytes | None] = dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))
    rows |= {key: own[key] for key in inside}
    return dict(sorted(rows.items())) if inside else rows


def _in_batches(rows: dict[bytes, bytes | None], size: int) -> Iterator[_Batch]:
    """Without rows that are deleted."""
    there = [(key, value) for key, value in rows.items() if value is not None]
    for start in range(0, len(there), size):
        keys, values = zip(*there[start : start + size], strict=True)
        yield pa.array(keys, pa.binary()), pa.array(values, pa.binary())


class CollectingStore:
    """A store in which a transaction's tables are read and written."""

    def __init__(self, store: Store, base: Collected) -> None:
        self.url, self.read_only, self.id = store.url, store.read_only, store.id
        self.capabilities, self.catalog = store.capabilities, store.catalog
        self.base, self.history, self.foreign = base, None, None
        self.state: Any = base  # which refuses

    def rest(self) -> None:
        """No task of the engine runs here."""
