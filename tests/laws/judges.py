"""Who says what a view must show: a judge per law, over the rows of the model.

single   views of one table, recomputed expression by expression; says how many rows are in
         error, too
trees    any query, recomputed by DuckDB; of a view that is in error it only says whether it may
         be
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.catalog.state import CatalogState
from belvedere.types import SqlType
from tests.laws.domains import is_long
from tests.laws.model import Model
from tests.laws.oracle import Expected, Oracle, canonical_row
from tests.laws.script import Case
from tests.laws.trees.oracle import Recomputation, only_more_order
from tests.laws.trees.scope import RAISING

Row = tuple[Any, ...]


class Judge(Protocol):
    def moved(self, model: Model) -> None:
        """The rows of the model are others than before."""

    def expected(
        self, view: ViewDefinition, state: CatalogState, seen: Counter[str]
    ) -> Expected | None:
        """What the view must show, or None if nothing can be said; `seen` gets to know what
        happened.
        """

    def types(self, view: ViewDefinition) -> Sequence[SqlType] | None:
        """The types that the view's columns must have, if they are known."""

    def close(self) -> None: ...


@dataclass
class SingleTable:
    """Judges views of the one table of a case."""

    table: TableDefinition
    longest_key: int | None
    oracles: dict[int, Oracle] = field(default_factory=dict)
    before: dict[int, Expected] = field(default_factory=dict)

    def moved(self, model: Model) -> None:
        self.rows = model.tables[self.table.id]

    def expected(self, view: ViewDefinition, state: CatalogState, seen: Counter[str]) -> Expected:
        found = self._oracle(view).recompute(self.rows.rows, self.rows.images)
        self._count(view, found, seen)
        return found

    def types(self, view: ViewDefinition) -> Sequence[SqlType]:
        return self._oracle(view).types

    def close(self) -> None:
        self.oracles.clear()

    def _oracle(self, view: ViewDefinition) -> Oracle:
        if view.id not in self.oracles:
            self.oracles[view.id] = Oracle(
                view.select, self.table.schema, view.schema.key, self.longest_key
            )
        return self.oracles[view.id]

    def _count(self, view: ViewDefinition, now: Expected, seen: Counter[str]) -> None:
        old = self.before.get(view.id, Expected([], 0))
        self.before[view.id] = now
        seen["in error"] += now.errors
        seen["recovered"] += old.errors > now.errors
        seen["group moved"] += sum(
            old.groups.get(key, group) != group for key, group in now.groups.items()
        )
        seen["extreme lost"] += _rises("min", old, now) + _rises("max", now, old)
        seen["distinct value lost"] += _rises("distinct", now, old)


class AnyTree:
    """Judges views by running what they are checked with."""

    def __init__(
        self, case: Case, tables: Sequence[TableDefinition], longest_key: int | None
    ) -> None:
        self.tables = tables
        self.recomputation = Recomputation({t.name: t.schema for t in tables})
        self.too_long = longest_key is not None and _has_long_values(case)
        self.wanted = {
            (a.view.select, a.view.key): a.view.types for a in case.script if hasattr(a, "view")
        }
        self._last: dict[int, list[Row]] = {}

    def moved(self, model: Model) -> None:
        self.recomputation.put(
            {t.name: list(model.tables[t.id].rows.values()) for t in self.tables}
        )

    def expected(
        self, view: ViewDefinition, state: CatalogState, seen: Counter[str]
    ) -> Expected | None:
        if view.id not in self._last:
            assert only_more_order(view.select, view.planned.checked), (
                f"{view.select} is checked with {view.planned.checked}"
            )
        rows = self.recomputation.rows(view, state)
        seen["rows went"] += len(self._last.get(view.id, rows)) > len(rows)
        seen["rows came"] += len(self._last.get(view.id, rows)) < len(rows)
        self._last[view.id] = rows
        errors = state.in_error(view)
        seen["in error"] += errors
        if not errors:
            return Expected(rows, 0)
        assert self.too_long or RAISING in view.select, (
            f"{view.select} is in error, and nothing in it raises"
        )
        return None

    def types(self, view: ViewDefinition) -> Sequence[SqlType] | None:
        return self.wanted.get((view.select, view.key)) or None

    def close(self) -> None:
        self.recomputation.close()


def judge_of(case: Case, tables: Sequence[TableDefinition], longest_key: int | None) -> Judge:
    """`longest_key` is what the store takes."""
    if case.law == "single":
        return SingleTable(tables[0], longest_key)
    return AnyTree(case, tables, longest_key)


def _has_long_values(case: Case) -> bool:
    pools = (pool for base in case.tables for pool in base.table.pools.values())
    return any(is_long(value) for pool in pools for value in pool)


def _rises(function: str, old: Expected, new: Expected) -> int:
    """In how many groups the result of a function is greater than it was."""
    groups, after = old.results.get(function, {}), new.results.get(function, {})
    return sum(any(map(_less, values, after.get(key, ()))) for key, values in groups.items())


def _less(a: Any, b: Any) -> bool:
    return a is not None and b is not None and type(a) is type(b) and bool(a < b)


def same_rows(actual: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Equal as multisets; doubles may differ by rounding."""
    if Counter(map(canonical_row, actual)) == Counter(map(canonical_row, expected)):
        return True
    if len(actual) != len(expected):
        return False
    pairs = zip(in_order(actual), in_order(expected), strict=True)
    return all(len(a) == len(b) and all(map(_close, a, b)) for a, b in pairs)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-12)
    return type(a) is type(b) and bool(a == b)


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(
        map(canonical_row, rows),
        key=lambda row: [repr(v) if not isinstance(v, float) else f"{v:.9e}" for v in row],
    )
