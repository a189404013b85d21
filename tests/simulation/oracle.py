"""What the views must show, from the writers' own record of what they did.

Imports nothing of the engine.

Amounts are distinct powers of two, so a sum says exactly which operations it contains.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = tuple[str, str | None, int, float]  # k, g, x, f
Content = Counter[tuple[Any, ...]]  # the rows of a view, each with its number


@dataclass(frozen=True, slots=True)
class Operation:
    table: str
    stream: str
    position: int
    key: str
    row: Row | None  # None: deleted


@dataclass(frozen=True, slots=True)
class View:
    """A view as SQL and as plain Python; `errors` counts the rows
    for which its expression raises.
    """

    select: str
    key: tuple[str, ...]
    content: Callable[[list[Row]], Content]
    errors: Callable[[list[Row]], int] = lambda rows: 0


def _grouped(
    rows: list[Row], result: Callable[[str | None, list[Row]], tuple[Any, ...]]
) -> Content:
    return Counter(result(g, [r for r in rows if r[1] == g]) for g in {r[1] for r in rows})


VIEWS: dict[str, View] = {
    "totals": View(
        "SELECT g, count(*) AS n, sum(x) AS total FROM {table} GROUP BY g",
        (),
        lambda rows: _grouped(rows, lambda g, of: (g, len(of), sum(r[2] for r in of))),
    ),
    "extremes": View(
        "SELECT g, min(x) AS least, max(x) AS greatest FROM {table} GROUP BY g",
        (),
        lambda rows: _grouped(
            rows, lambda g, of: (g, min(r[2] for r in of), max(r[2] for r in of))
        ),
    ),
    "selection": View(
        "SELECT k, x FROM {table} WHERE g = 'a'",
        (),
        lambda rows: Counter((k, x) for k, g, x, _ in rows if g == "a"),
    ),
    "by_group": View(  # an index: keyed otherwise than the table
        "SELECT k, g, x FROM {table}",
        ("g",),
        lambda rows: Counter((k, g, x) for k, g, x, _ in rows),
    ),
    "groups": View(  # a bag
        "SELECT g FROM {table}",
        (),
        lambda rows: Counter((g,) for _, g, _, _ in rows),
    ),
    "overall": View(  # one group, with its row from the beginning
        "SELECT count(*) AS n, sum(x) AS total FROM {table}",
        (),
        lambda rows: Counter([(len(rows), sum(r[2] for r in rows) if rows else None)]),
    ),
    "by_total": View(  # two levels of exchange: by group, then by the group's total
        "SELECT g, sum(x) AS total FROM {table} GROUP BY g",
        ("total",),
        lambda rows: _grouped(rows, lambda g, of: (g, sum(r[2] for r in of))),
    ),
    "fractions": View(  # doubles: a sum that depends on the order of additions shows here
        "SELECT g, sum(f) AS total FROM {table} GROUP BY g",
        ("total",),
        lambda rows: _grouped(rows, lambda g, of: (g, math.fsum(r[3] for r in of))),
    ),
    "quotients": View(  # the rows with x = 4 raise
        "SELECT k, 1024 DIV (x - 4) AS q FROM {table}",
        (),
        lambda rows: Counter((k, _div(1024, x - 4)) for k, _, x, _ in rows if x != 4),
        lambda rows: sum(r[2] == 4 for r in rows),
    ),
}


def _div(a: int, b: int) -> int:
    """Integer division as SQL has it: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@dataclass(slots=True)
class Oracle:
    operations: list[Operation] = field(default_factory=list)
    # stream, first position, the position after the last
    transactions: list[tuple[str, int, int]] = field(default_factory=list)

    def record(self, operation: Operation) -> None:
        self.operations.append(operation)

    def rows(self, table: str, vector: Mapping[str, int]) -> list[Row]:
        """The rows of a base table after the operations that a vector covers."""
        found: dict[str, Row] = {}
        for o in self.operations:
            if o.table == table and o.position < vector[o.stream]:
                if o.row is None:
                    found.pop(o.key, None)
                else:
                    found[o.key] = o.row
        return list(found.values())
