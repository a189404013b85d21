"""What a view is: plain nested loops, which share nothing with the warehouse but the shape."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TypeAlias

from belvedere.warehouse.rows import Row, Shape
from tests.warehouse.sources import Tables

Content: TypeAlias = frozenset[tuple[Row, int]]  # rows, each with its number


def evaluate(shape: Shape, tables: Tables) -> Content:
    found: Counter[Row] = Counter()
    for rows in product(*(tables[n].values() for n in range(len(shape.members)))):
        pairs = [
            (rows[e.left][e.left_column], rows[e.right][e.right_column]) for e in shape.equalities
        ]
        if all(one is not None and one == other for one, other in pairs):
            found[tuple(rows[member][column] for member, column in shape.shown)] += 1
    return frozenset(found.items())
