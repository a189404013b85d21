"""Operations: what the retained log says of some base rows, up to a cut.

The log ends in the past where every view has it and no reader needs it, and so many operations of a
stream are read back from the cut. Of a row that nothing in this part of the log touches only that
is known: it was written before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from belvedere.catalog.definitions import TableDefinition
from belvedere.catalog.history import Committed, commits_between, oldest_readable
from belvedere.catalog.state import read_head
from belvedere.errors import Stale
from belvedere.libraries import pa, pc
from belvedere.stores.base import CatalogTransaction, LogBlock, Store
from belvedere.types import Position, Vector

MOST_READ = 1_000_000  # positions of a stream


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on one row: `put`, `delete`, or `cells` of a table that others write."""

    stream: str
    position: Position
    time: float
    kind: str

    @property
    def text(self) -> str:
        moment = datetime.fromtimestamp(self.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
        return f"{self.kind} at {self.stream}:{self.position}, {moment}"


@dataclass(frozen=True, slots=True)
class Logged:
    """The operations on some rows by the row's key, in log order; and from where on they are
    known, by stream. Of `longer` streams there is more, which was not read.
    """

    by_key: dict[bytes, list[Operation]]
    since: dict[str, Position]
    longer: set[str] = field(default_factory=set)

    def before(self) -> str:
        """What is said of a row without an operation."""
        places = ", ".join(f"{s}:{p}" for s, p in self.since.items() if p)
        rest = "which is not read" if self.longer else "trimmed"
        return f"before {places}, {rest}" if places else "not in the log"


def operations(
    store: Store, table: TableDefinition, keys: pa.BinaryArray, vector: Vector
) -> Logged:
    """What is logged before a vector of rows with these keys."""
    logged = Logged({}, {})
    for stream, end in vector.items():
        for low in _beginnings(store, stream, end):
            try:
                start = _near(store, stream, low, end)
                found = list(_of_blocks(store, table, keys, stream, start, end))
            except Stale:
                continue
            logged.since[stream] = start
            if start > low:
                logged.longer.add(stream)
            for key, operation in found:
                logged.by_key.setdefault(key, []).append(operation)
            break
        else:
            logged.since[stream] = end
    return logged


def _beginnings(store: Store, stream: str, end: Position) -> Iterator[Position]:
    """Boundaries of transactions from which the log may be readable, the earliest first."""
    yield 0
    for commit in store.catalog.read(_kept):
        if 0 < commit.vector.get(stream, 0) < end:
            yield commit.vector[stream]


def _near(store: Store, stream: str, low: Position, end: Position) -> Position:
    """Where reading begins: at a boundary of transactions, not too far before the end."""
    if end - low <= MOST_READ:
        return low
    return store.base.cut(stream, low, end - MOST_READ - low)


def _kept(t: CatalogTransaction) -> list[Committed]:
    return commits_between(t, oldest_readable(t) - 1, read_head(t).epoch)


def _of_blocks(
    store: Store,
    table: TableDefinition,
    keys: pa.BinaryArray,
    stream: str,
    low: Position,
    end: Position,
) -> Iterator[tuple[bytes, Operation]]:
    for block in store.base.read_log(stream, low, end) if low < end else ():
        if block.table == table.id:
            yield from _of_block(block, keys)


def _of_block(block: LogBlock, keys: pa.BinaryArray) -> Iterator[tuple[bytes, Operation]]:
    at = pc.indices_nonzero(pc.is_in(block.keys, value_set=keys))
    there = block.values.take(at).is_valid().to_pylist()
    for i, key, is_there in zip(
        at.to_pylist(), block.keys.take(at).to_pylist(), there, strict=True
    ):
        kind = "put" if is_there else "delete"
        if block.cells is not None:
            kind = "cells"
        yield key, Operation(block.stream, block.position + i, block.time, kind)
