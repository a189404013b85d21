"""Delivery: which slot a row goes to, and what has arrived for whom (rule R8).

The owner of a state key's slot gets all parts with that key, whoever prepared them. A view manager
and a trial (`cost/trial.py`) deliver by the same rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from belvedere.encoding import slots_of
from belvedere.libraries import np, pa
from belvedere.operators.base import KEY, Stateful, column_of

Parts = list[list[pa.Table]]  # what `step` takes: by part, then by producer


def by_slot(
    table: pa.Table, slots: int, own: Collection[int] | None = None, key: str = KEY
) -> list[tuple[int, pa.Table]]:
    """The rows of each slot; of rows that every task has, only those of its own slots."""
    keys = column_of(table, key)
    if not len(keys):
        return []
    place = slots_of(keys, slots)
    found = np.unique(place).tolist()
    if len(found) == 1 and own is None:
        return [(found[0], table)]
    return [
        (slot, table.filter(pa.array(place == slot)))
        for slot in found
        if own is None or slot in own
    ]


def prepare_parts(
    operator: Stateful, port: int, ports: int, changes: pa.Table
) -> Iterator[tuple[int, pa.Table]]:
    """What an operator makes of changes at the producer, each with the number of its part: of
    several ports a port's own number, of one port the place among what it prepares.
    """
    return enumerate(operator.prepare(port, changes), port if ports > 1 else 0)


@dataclass(slots=True)
class Inbox:
    """What has arrived for one operator, by slot and part."""

    _parts: dict[int, dict[int, list[pa.Table]]] = field(default_factory=dict)

    def add(self, slot: int, part: int, table: pa.Table) -> None:
        self._parts.setdefault(slot, {}).setdefault(part, []).append(table)

    def arrived(self, ports: int) -> Iterator[tuple[int, Parts]]:
        """Slot by slot, in order; a part of which nothing arrived is empty."""
        for slot, parts in sorted(self._parts.items()):
            count = max(ports, max(parts) + 1)
            yield slot, [parts.get(i, []) for i in range(count)]
