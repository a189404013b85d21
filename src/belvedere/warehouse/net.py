"""Actions, netted against the view: how often each row comes or goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Protocol

from belvedere.errors import SourceError
from belvedere.warehouse.machine import Action, AddRows, DeleteKeys, Weigh
from belvedere.warehouse.rows import Key, Row, Shape


class View(Protocol):
    """The view's rows, as of its last change."""

    def rows_with(self, member: int, keys: Collection[Key]) -> Iterable[Row]:
        """View rows that were made of rows of a member with these keys."""

    def counts(self, rows: Collection[Row]) -> Iterable[int]:
        """How often rows are there."""


class _Now:
    """Counts of the rows that were looked at, before the actions and after those so far."""

    def __init__(self, shape: Shape, view: View) -> None:
        self._view = view
        self._keys_of = [
            shape.key_shown(n) if shape.has_keys else None for n in range(len(shape.members))
        ]
        self._before: dict[Row, int] = {}
        self._after: dict[Row, int] = {}
        self._by_key: dict[tuple[int, Key], dict[Row, None]] = {}

    def look_up(self, rows: Collection[Row]) -> None:
        new = [row for row in dict.fromkeys(rows) if row not in self._before]
        for row, number in zip(new, self._view.counts(new), strict=True):
            self._remember(row, number)

    def delete(self, member: int, keys: Collection[Key]) -> None:
        found = [row for row in self._view.rows_with(member, keys) if row not in self._before]
        self.look_up(found)
        for key in keys:
            for row in self._by_key.get((member, key), ()):
                self._after[row] = 0

    def add(self, row: Row, weight: int) -> None:
        self._after[row] += weight

    def ensure(self, row: Row) -> None:
        self._after[row] = max(1, self._after[row])

    def weights(self) -> dict[Row, int]:
        changed = {row: self._after[row] - number for row, number in self._before.items()}
        return {row: weight for row, weight in changed.items() if weight}

    def check(self) -> None:
        if missing := [row for row, number in self._after.items() if number < 0]:
            raise SourceError(
                f"a row would be taken away that the view does not have: {missing[0]!r}. Its"
                " sources have changed without telling it: create the view again"
            )

    def _remember(self, row: Row, number: int) -> None:
        self._before[row] = self._after[row] = number
        for member, key_of in enumerate(self._keys_of):
            if key_of is not None:
                self._by_key.setdefault((member, key_of(row)), {})[row] = None


def net(shape: Shape, actions: Iterable[Action], view: View) -> Counter[Row]:
    """What the actions do together, in their order: rows with weights that are not zero."""
    now = _Now(shape, view)
    for action in actions:
        match action:
            case DeleteKeys(member, keys):
                now.delete(member, keys)
            case AddRows(rows):
                now.look_up(rows)
                for row in rows:
                    now.ensure(row)
            case Weigh(weights):
                now.look_up(list(weights))
                for row, weight in weights.items():
                    now.add(row, weight)
    now.check()
    return Counter(now.weights())
