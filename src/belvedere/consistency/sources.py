"""Source states: what the tables hold after so many steps of every line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from belvedere.consistency.history import History, Operation, Values, View
from belvedere.consistency.lattice import Point
from belvedere.consistency.recompute import Cell


@dataclass(slots=True)
class Source:
    """Lines of steps, each a few operations; `first` and `last` bound the states."""

    names: tuple[object, ...]
    lines: tuple[Sequence[Sequence[Operation]], ...]
    first: Point
    _at: Point = ()
    _rows: dict[Cell, Values] = field(default_factory=dict)

    @property
    def last(self) -> Point:
        return tuple(len(line) for line in self.lines)

    def rows(self, point: Point) -> Mapping[Cell, Values]:
        """The rows at a point; cheap if it lies above the one that was asked for before."""
        if not self._at or any(a < b for a, b in zip(point, self._at, strict=True)):
            self._at, self._rows = (0,) * len(self.lines), {}
        for line, low, high in zip(self.lines, self._at, point, strict=True):
            for step in line[low:high]:
                for operation in step:
                    self._apply(operation)
        self._at = point
        return self._rows

    def _apply(self, operation: Operation) -> None:
        cell = (operation.table, operation.key)
        if operation.row is None:
            self._rows.pop(cell, None)
        else:
            self._rows[cell] = operation.row

    def point(self, positions: Mapping[str, int] | None) -> Point | None:
        """The state in which so many operations of every stream are contained; None if that is
        no state, because it ends inside a transaction.
        """
        if positions is None:
            return None
        found = []
        for name, line in zip(self.names, self.lines, strict=True):
            bound = positions.get(str(name), 0)
            steps = sum(step[0].number < bound for step in line)
            if steps and line[steps - 1][-1].number >= bound:
                return None
            found.append(steps)
        return tuple(found)


def by_stream(history: History, view: View) -> Source:
    """For whole views: streams of transactions."""
    transactions = history.transactions()
    names = tuple(sorted(transactions))
    source = Source(names, tuple(transactions[n] for n in names), (0,) * len(names))
    source.first = source.point(view.since) or source.first
    return source


def by_row(history: History, view: View) -> Source:
    """For single records: rows and their versions; of a transaction the last one counts."""
    versions: dict[Cell, list[list[Operation]]] = {}
    early: dict[Cell, int] = {}
    for o in history.operations:
        line = versions.setdefault((o.table, o.key), [])
        if line and (line[-1][0].stream, line[-1][0].tx) == (o.stream, o.tx):
            line[-1] = [o]
        else:
            line.append([o])
        if o.number < view.since.get(o.stream, 0):
            early[o.table, o.key] = len(line)
    names = tuple(versions)
    return Source(names, tuple(versions[n] for n in names), tuple(early.get(n, 0) for n in names))
