"""The log behind what is settled, as runs in memory: base rows that are nowhere else yet.

A process that reads base rows keeps it from one read to the next and reads what was logged since.

    segments   stretches of the log, the oldest first; of each, a table's last operation on every
               key is a run
    recent     the operations behind the last segment, one by one: key -> (position, value, what
               there was before). A reader of an older position goes back along these

Short segments become one with their neighbours. A segment is forgotten when all of it is settled:
one that is settled in part does no harm, since its operations are the newest ones on their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from belvedere.encoding.order import distinct
from belvedere.libraries import pa
from belvedere.stores.base import TableId
from belvedere.stores.embedded import runs
from belvedere.stores.embedded.log import Stretch
from belvedere.stores.embedded.merging import in_memory
from belvedere.stores.embedded.runs import Batch, Run
from belvedere.stores.embedded.sections import MISSING
from belvedere.types import Position

FEW = 2048  # operations one by one; more of them become a segment
_LARGEST = 1 << 17  # operations of a segment that is made of several
Recent = dict[tuple[TableId, bytes], tuple[Position, bytes | None, Any]]


@dataclass(slots=True)
class Segment:
    low: Position
    high: Position
    parts: dict[TableId, list[Batch]]
    _runs: dict[TableId, Run] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        return self.high - self.low

    def run(self, table: TableId) -> Run | None:
        """Made when it is first asked for: most processes read few tables."""
        if table not in self.parts:
            return None
        found = self._runs.get(table)
        if found is None:
            found = self._runs[table] = _net(self.parts[table])
        return found

    def with_next(self, other: Segment) -> Segment:
        parts = {table: list(some) for table, some in self.parts.items()}
        for table, some in other.parts.items():
            parts.setdefault(table, []).extend(some)
        return Segment(self.low, other.high, parts)


def _net(parts: Sequence[Batch]) -> Run:
    keys, values = runs.joined(parts)
    rows, _, last = distinct(keys)
    return in_memory(rows, values.take(pa.array(last)))


@dataclass(frozen=True, slots=True)
class Tail:
    """All operations from `low` to `high`. It does not change: `longer` is another one, which
    shares `recent` with it.
    """

    low: Position
    high: Position
    segments: tuple[Segment, ...] = ()
    recent: Recent = field(default_factory=dict)

    def longer(self, stretches: Iterable[Stretch]) -> Tail:
        """With what was logged since. Only the longest of all tails may be made longer."""
        found = self
        for stretch in stretches:
            found = found._with(stretch)
        return found

    def _with(self, stretch: Stretch) -> Tail:
        few = stretch.few()
        if few is None:
            closed = self._closed()
            segment = Segment(stretch.low, stretch.high, stretch.parts())
            return Tail(self.low, stretch.high, _joined((*closed.segments, segment)))
        for position, (table, key, value) in enumerate(few, stretch.low):
            name = table, key
            self.recent[name] = position, value, self.recent.get(name)
        longer = Tail(self.low, stretch.high, self.segments, self.recent)
        return longer._closed() if len(self.recent) >= FEW else longer

    def _closed(self) -> Tail:
        """With recent operations as a segment."""
        if not self.recent:
            return self
        start = self.segments[-1].high if self.segments else self.low
        parts = {table: [batch] for table, batch in _batches(self._last()).items()}
        segment = Segment(start, self.high, parts)
        return Tail(self.low, self.high, _joined((*self.segments, segment)))

    def _last(self) -> list[tuple[TableId, bytes, bytes | None]]:
        """The recent operations that this tail has; others may have been added to them since."""
        found = []
        for (table, key), entry in list(self.recent.items()):
            while entry is not None and entry[0] >= self.high:
                entry = entry[2]
            if entry is not None:
                found.append((table, key, entry[1]))
        return found

    def behind(self, mark: Position) -> Tail:
        """Without segments that are settled."""
        kept = tuple(segment for segment in self.segments if segment.high > mark)
        if len(kept) == len(self.segments):
            return self
        low = kept[0].low if kept else self.segments[-1].high
        return Tail(low, self.high, kept, self.recent)

    # ------------------------------------------------------------ reading

    def get_recent(self, table: TableId, key: bytes) -> Any:
        """The value after the last recent operation; MISSING if there was none."""
        entry = self.recent.get((table, key))
        while entry is not None and entry[0] >= self.high:
            entry = entry[2]
        return MISSING if entry is None else entry[1]

    def runs(self, table: TableId) -> list[Run]:
        """Of all operations on a table, the newest first."""
        found = [segment.run(table) for segment in reversed(self.segments)]
        recent = _batches(row for row in self._last() if row[0] == table).get(table)
        if recent is not None:
            found.insert(0, _net([recent]))
        return [run for run in found if run is not None]

    def older_runs(self, table: TableId) -> list[Run]:
        """The same without recent operations."""
        found = (segment.run(table) for segment in reversed(self.segments))
        return [run for run in found if run is not None]


def _batches(
    operations: Iterable[tuple[TableId, bytes, bytes | None]],
) -> dict[TableId, Batch]:
    columns: dict[TableId, tuple[list[bytes], list[bytes | None]]] = {}
    for table, key, value in operations:
        keys, values = columns.setdefault(table, ([], []))
        keys.append(key)
        values.append(value)
    return {
        table: (pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
        for table, (keys, values) in columns.items()
    }


def _joined(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """So few that a get does not have to look into many."""
    found = list(segments)
    while len(found) > 1 and _belong_together(*found[-2:]):
        last = found.pop()
        found[-1] = found[-1].with_next(last)
    return tuple(found)


def _belong_together(older: Segment, newer: Segment) -> bool:
    both = older.operations + newer.operations
    return both <= _LARGEST and 2 * newer.operations >= older.operations
