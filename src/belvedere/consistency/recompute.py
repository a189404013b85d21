"""What a view's SELECT returns over some state of the tables: DuckDB evaluates it.

Numbers with a fraction are compared to nine significant digits, since two engines add in different
orders; everything else exactly.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from belvedere.consistency.history import History, Key, Values, View
from belvedere.errors import HistoryError

Cell = tuple[str, Key]  # one row of one table
# functions, as sqlglot counts them, that mean the same to Spark and to DuckDB
_SAME = (
    *(exp.And, exp.Or, exp.Case, exp.If, exp.Coalesce, exp.Exists),
    *(exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg, exp.RowNumber),
)
Content = frozenset[tuple[Any, int]]  # rows, each with its number


def content(rows: Iterable[Mapping[str, Any]]) -> Content:
    counts = Counter(tuple(sorted((c, plain(v)) for c, v in row.items())) for row in rows)
    return frozenset(counts.items())


def plain(value: Any) -> Any:
    """A value as JSON has it, comparable over engines."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float | decimal.Decimal):
        return _number(float(value))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    raise HistoryError(f"a value of type {type(value).__name__} has no place in a history")


def _number(value: float) -> Any:
    if not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) and abs(value) < 2**53 else float(f"{value:.9g}")


def _parsed(view: View) -> sqlglot.Expr:
    try:
        tree = sqlglot.parse_one(view.select, read="spark")
    except SqlglotError as error:
        raise HistoryError(f"the SELECT of view {view.name}: {error}") from error
    if not isinstance(tree, exp.Query):
        raise HistoryError(f"the SELECT of view {view.name} is none: {view.select!r}")
    return tree


class Recomputation:
    """The tables of a history in DuckDB, moved from state to state by the rows that differ."""

    def __init__(self, history: History) -> None:
        self._history = history
        # a history says what is in its tables: its SELECTs read nothing else
        self._duck = duckdb.connect(config={"threads": "1", "enable_external_access": "false"})
        self._rows: dict[Cell, Values] = {}
        self._queries: dict[str, str] = {}
        for table in history.tables.values():
            columns = ", ".join(f'"{name}" {kind}' for name, kind in table.columns.items())
            self._run(f'CREATE TABLE "{table.name}" ({columns})', f"table {table.name}")

    def rows(self, view: View, state: Mapping[Cell, Values]) -> list[Values]:
        """What the view's SELECT returns over these rows."""
        self._move(state)
        found = self._run(self._query(view), f"view {view.name}")
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, map(plain, row), strict=True)) for row in found.fetchall()]

    def record(self, view: View, state: Mapping[Cell, Values], key: Key) -> list[Values]:
        """Those of its rows that have a key."""
        rows = self.rows(view, state)
        return [row for row in rows if tuple(row[column] for column in view.key) == key]

    def reads_one_table(self, view: View) -> bool:
        """Whether the SELECT names one table, once, directly or through other views."""
        self._query(view)  # which raises for a view that names itself
        tree = _parsed(view)
        named = list(tree.find_all(exp.Table))
        if len(named) != 1 or tree.find(exp.With):
            return False
        return all(map(self.reads_one_table, self._read_by(view, tree)))

    def doubt(self, view: View) -> str:
        """An expression that DuckDB may evaluate in another way than Spark, if there is one."""
        tree = _parsed(view)
        for found in tree.find_all(exp.Func, exp.Like, exp.Interval):
            is_literal = isinstance(found, exp.Cast) and isinstance(found.this, exp.Literal)
            if not isinstance(found, _SAME) and not is_literal:
                return found.sql("spark")
        return next(filter(None, map(self.doubt, self._read_by(view, tree))), "")

    def _read_by(self, view: View, tree: sqlglot.Expr) -> list[View]:
        """The views that it names."""
        named = {table.name.lower() for table in tree.find_all(exp.Table)}
        views = self._history.views.values()
        return [v for v in views if v.name != view.name and v.alias.lower() in named]

    def close(self) -> None:
        self._duck.close()

    def _query(self, view: View, above: tuple[View, ...] = ()) -> str:
        """The SELECT as DuckDB has it, with the definitions of the views that it names."""
        if view in above:
            raise HistoryError(f"view {view.name} names itself, through {above[-1].name}")
        if view.name not in self._queries:
            tree = _parsed(view)
            for other in self._read_by(view, tree):
                query = self._query(other, (*above, view))
                text = f'CREATE OR REPLACE VIEW "{other.alias}" AS {query}'
                self._run(text, f"view {other.name}")
            self._queries[view.name] = tree.sql("duckdb")
        return self._queries[view.name]

    def _move(self, state: Mapping[Cell, Values]) -> None:
        for cell in [c for c, row in self._rows.items() if state.get(c) != row]:
            self._delete(cell)
        for cell, row in state.items():
            if cell not in self._rows:
                self._insert(cell, row)

    def _delete(self, cell: Cell) -> None:
        table, key = self._history.tables[cell[0]], cell[1]
        where = " AND ".join(f'"{name}" = ?' for name in table.key)
        self._run(f'DELETE FROM "{table.name}" WHERE {where}', table.name, list(key))
        del self._rows[cell]

    def _insert(self, cell: Cell, row: Values) -> None:
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        text = f'INSERT INTO "{cell[0]}" ({names}) VALUES ({marks})'
        self._run(text, f"table {cell[0]}", list(row.values()))
        self._rows[cell] = row

    def _run(self, text: str, what: str, values: list[Any] | None = None) -> Any:
        try:
            return self._duck.execute(text, values)
        except duckdb.Error as error:
            raise HistoryError(f"{what}: DuckDB cannot do it: {error}") from error
