"""The change log: what is in its files (`log_file.py`), and what LMDB knows of it.

    00000000 'm' "end"             how far the log was at least, trim point, number of the catalog
                                   that the writer saw (`parts.py`; u64 each)
    00000000 'm' "table" u32       position after the last operation on a table that is trimmed
                                   (u64; or that it was dropped: `dropping.py`)

What is below the trim point is nobody's: it is raised in LMDB first, then files go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from struct import Struct

from belvedere.errors import Damaged, Stale
from belvedere.libraries import pa
from belvedere.stores.base import LogBlock, TableId
from belvedere.stores.embedded import blocks
from belvedere.stores.embedded.checked import opened, seal
from belvedere.stores.embedded.dropping import put_table_entry, table_entry
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.log_file import LogFile
from belvedere.types import Position

STREAM = "log"
Operation = tuple[TableId, bytes, bytes | None]
_END = b"\0\0\0\0mend"
_ENDS = Struct(">QQQ")
_TRIMMED_AT, _SEEN_AT = 8, 16
_TABLE_END = Struct(">Q")
_BLOCK = b"\0\0\0\0l"
_KNOWN = 1 << 16  # stretches that are remembered
_FEW = 64  # operations that are looked at one by one in less time


@dataclass(frozen=True, slots=True)
class Log:
    """Its files, and the environment that knows what is trimmed.

    `known` are stretches that this process has read, by where they begin: who chooses what an epoch
    takes, and later trims it, reads it once.
    """

    file: LogFile
    environment: Environment
    known: dict[Position, Summary] = field(default_factory=dict)


def key_of(position: Position) -> bytes:
    """Of a block in LMDB, where formats up to 5 had the log."""
    return _BLOCK + position.to_bytes(8, "big")


def is_block(key: bytes) -> bool:
    return key.startswith(_BLOCK)


def noted_end(transaction: Transaction) -> Position:
    """How far the log was at least, when LMDB was last written. In formats up to 5, its end."""
    return _number(transaction, 0)


def trim_point(transaction: Transaction) -> Position:
    return _number(transaction, _TRIMMED_AT)


def seen(transaction: Transaction) -> int:
    return _number(transaction, _SEEN_AT)


def _number(transaction: Transaction, at: int) -> int:
    stored = transaction.get(_END)
    known = opened(_END, bytes(stored)) if stored else b""
    return int.from_bytes(known[at : at + 8], "big")


def note(transaction: Transaction, file: LogFile, catalog: int) -> None:
    """That the writer of this transaction has seen the catalog's transaction of this number, and
    the log up to here.
    """
    put_ends(transaction, file.end, trim_point(transaction), catalog)


def put_ends(transaction: Transaction, end: Position, trimmed: Position, catalog: int) -> None:
    transaction.put(_END, seal(_END, _ENDS.pack(end, trimmed, catalog)))


def check_trim(transaction: Transaction, position: Position) -> None:
    """Raise if the log cannot be read from `position` on."""
    trimmed = trim_point(transaction)
    if position < trimmed:
        raise Stale(
            f"the log was trimmed to {trimmed}: position {position} cannot be read any more"
        )


class TableEnds:
    """Behind which positions tables were last written, as far as somebody asked.

    Of what is trimmed, LMDB knows it.
    """

    def __init__(self) -> None:
        self._ends: dict[TableId, Position] = {}
        self._known = 0

    def of(self, table: TableId, log: Log, end: Position) -> Position:
        """As of an end of the log, while nobody appends."""
        trimmed = log.environment.read(trim_point)
        self._known = max(self._known, trimmed)
        for stretch in stretches(log, self._known, end):
            for each in stretch.tables():
                self._ends[each] = stretch.high
        self._known = end
        entry = log.environment.read(lambda transaction: trimmed_end(transaction, table))
        return max(entry, self._ends.get(table, 0))


def trimmed_end(transaction: Transaction, table: TableId) -> Position:
    """Behind the last operation on a table that is trimmed; the mark of a dropped one is large."""
    stored = table_entry(transaction, table)
    return int(_TABLE_END.unpack_from(stored)[0]) if stored else 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """One transaction, as it is stored."""

    low: Position
    value: bytes

    @property
    def high(self) -> Position:
        return self.low + sum(rows for _, _, rows in blocks.heads(self.value))

    def tables(self) -> set[TableId]:
        return {table for _, table, _ in blocks.heads(self.value)}

    def few(self) -> list[Operation] | None:
        """Its operations that are rows of tables, unless there are many."""
        heads = list(blocks.heads(self.value))
        if sum(rows for _, _, rows in heads) > _FEW:
            return None
        return [
            (table, key, value)
            for at, table, _ in heads
            if not blocks.passes_at(self.value, at)
            for key, value in blocks.operations_at(self.value, at)
        ]

    def parts(self) -> dict[TableId, list[tuple[pa.BinaryArray, pa.BinaryArray]]]:
        """Keys and values by table, of operations that are rows."""
        found: dict[TableId, list[tuple[pa.BinaryArray, pa.BinaryArray]]] = {}
        for block in (block for block in self.blocks() if not block.passes):
            found.setdefault(block.table, []).append((block.keys, block.values))
        return found

    def blocks(self) -> Iterator[LogBlock]:
        start, decoded = self.low, blocks.decode_all(self.value)
        for number, found in enumerate(decoded, 1):
            keys, values, *images = found.columns
            before = images[0] if images else None
            is_last = number == len(decoded)
            said = found.table, found.time, keys, values, before, is_last
            block = LogBlock(STREAM, start, *said, passes=found.passes)
            start = block.end
            yield block


@dataclass(frozen=True, slots=True)
class Summary:
    """What is in a stretch: its bytes, and how many operations on each table."""

    low: Position
    high: Position
    size: int
    rows: tuple[tuple[TableId, int], ...]

    @classmethod
    def of(cls, stretch: Stretch) -> Summary:
        rows = tuple((table, rows) for _, table, rows in blocks.heads(stretch.value))
        high = stretch.low + sum(count for _, count in rows)
        return cls(stretch.low, high, len(stretch.value), rows)


def summaries(log: Log, low: Position, high: Position) -> Iterator[Summary]:
    position = low
    while position < high and (known := log.known.get(position)) is not None:
        yield known
        position = known.high
    for stretch in stretches(log, position, high):
        found = Summary.of(stretch)
        if len(log.known) >= _KNOWN:
            log.known.clear()
        log.known[found.low] = found
        yield found


def read(log: Log, low: Position, high: Position) -> Iterator[LogBlock]:
    for stretch in stretches(log, low, min(high, log.file.end)):
        yield from stretch.blocks()


def stretches(log: Log, low: Position, high: Position) -> Iterator[Stretch]:
    """Some are read at a time, and the trim point is looked at each time."""
    position = low
    while position < high:
        log.environment.read(partial(check_trim, position=position))
        found = log.file.records(position, high)
        if not found:
            log.environment.read(partial(check_trim, position=position))
            if position >= log.file.end:
                return
            raise Damaged(f"the log in {log.file.path} has no record at position {position:,}")
        for start, value in found:
            stretch = Stretch(start, value)
            position = stretch.high
            yield stretch


def cut(log: Log, low: Position, rows: int) -> Position:
    log.environment.read(partial(check_trim, position=low))
    end, target = log.file.end, low + max(rows, 0)
    if end <= max(low, target):
        return max(end, low)
    below = log.file.boundary_below(target)
    return below if below > low else log.file.boundary_above(low)


def within(
    log: Log, low: Position, high: Position, size: int, row_size: Callable[[TableId], int]
) -> Position:
    """The boundary up to which records from `low` on have at most `size` bytes, after one of them
    at least. Of each row that is replaced, about `row_size` will be read.
    """
    for stretch in summaries(log, low, high):
        used = stretch.size + sum(rows * row_size(table) for table, rows in stretch.rows)
        if size < used and stretch.low != low:
            return stretch.low
        size -= used
    return high


def trim(log: Log, position: Position, catalog: int) -> None:
    """Drop what ends at or before `position`: the trim point first, then files."""
    target = log.file.boundary_below(position)
    ends: dict[TableId, Position] = {}

    def body(transaction: Transaction) -> None:
        for table, end in ends.items():
            if trimmed_end(transaction, table) < end:
                put_table_entry(transaction, table, _TABLE_END.pack(end))
        put_ends(transaction, log.file.end, max(target, trim_point(transaction)), catalog)

    while (start := log.environment.read(trim_point)) < target:
        try:
            ends = _table_ends(log, start, target)
        except Stale:
            continue  # somebody else has trimmed it meanwhile
        log.environment.write(body, frees=True)
    for low in [low for low in list(log.known) if low < target]:
        log.known.pop(low, None)
    log.file.remove_trimmed()


def _table_ends(log: Log, low: Position, high: Position) -> dict[TableId, Position]:
    stretches = summaries(log, low, high)
    return {table: stretch.high for stretch in stretches for table, _ in stretch.rows}
