"""TPC-H in motion: random inserts, updates and deletes of every table, and DuckDB as the judge.

A step of the stream says how many rows of each table come, change and go. An update writes the
whole row anew, join columns included. An order comes and goes with its lines (TPC-H's refresh
functions RF1 and RF2) and changes with them. Within a step a row may come or change and then go;
rows that are gone may come back in a later step. Foreign keys are not kept: an order may outlive
its customer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from belvedere.bench import tpch
from belvedere.bench.tpch import KEYS, TABLES, Generator, Ints

Mix = Mapping[str, tuple[int, int, int]]  # by table: rows that come, change, go
_FIXED = ("region", "nation")  # no new ones, only those that were deleted
_LINE_BY_LINE = "lineitem"


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations on one table in their order: rows to put, and where `deletes` is true rows of
    which only the key matters.
    """

    table: str
    rows: pa.Table
    deletes: pa.BooleanArray


def every_table(orders: int) -> dict[str, tuple[int, int, int]]:
    """A mix that touches every table, as large as a number of orders."""
    few = max(1, orders // 10)
    return {
        "region": (1, 1, 1),
        "nation": (1, 2, 1),
        "supplier": (1, few, 1),
        "customer": (few, 2 * few, few),
        "part": (few, 2 * few, few),
        "partsupp": (few, 4 * few, few),
        "orders": (orders, orders, orders),
        "lineitem": (few, 2 * orders, orders),
    }


class Stream:
    """Tables from a seed, then steps of changes."""

    def __init__(self, scale: float, seed: int = 7) -> None:
        self.generator = Generator(scale)
        self._rng = np.random.default_rng(seed)
        self._numbers = {
            table: _Numbers(self.generator.count(table))
            for table in TABLES
            if table != _LINE_BY_LINE
        }

    def load(self) -> list[Operations]:
        return [
            Operations(table, rows, _mask(rows, False))
            for table, rows in self.generator.load(self._rng)
        ]

    def step(self, mix: Mix) -> list[Operations]:
        """The operations of one step, table by table; a table that nothing
        happens to is left out.
        """
        found: dict[str, list[tuple[pa.Table, bool]]] = {table: [] for table in TABLES}
        for table in (t for t in TABLES if t in mix):
            come, change, go = mix[table]
            if table == _LINE_BY_LINE:
                found[table] += [
                    (self._some_lines(change + come), False),
                    (self._some_lines(go), True),
                ]
                continue
            numbers = self._numbers[table]
            for chosen, deleted in (
                (numbers.some(self._rng, change), False),
                (numbers.enter(self._rng, come, table not in _FIXED), False),
                (numbers.leave(self._rng, go), True),
            ):
                for name, rows in self._rows(table, chosen):
                    found[name].append((rows, deleted))
        return [
            _joined(table, parts)
            for table, parts in found.items()
            if any(rows.num_rows for rows, _ in parts)
        ]

    def _rows(self, table: str, numbers: Ints) -> Iterable[tuple[str, pa.Table]]:
        if table != "orders":
            return [(table, self.generator.rows(table, numbers, self._rng))]
        orders, lines = self.generator.orders(numbers, self._rng)
        return [("orders", orders), (_LINE_BY_LINE, lines)]

    def _some_lines(self, count: int) -> pa.Table:
        """Lines of orders that are there.

        One that was deleted alone comes back when it is chosen again.
        """
        orders = self._numbers["orders"].some(self._rng, count)
        line = self._rng.integers(0, 7, len(orders)) % tpch.line_count(orders)
        return self.generator.lines(orders, line, self._rng)


class _Numbers:
    """Which rows of a table are there, and which have been."""

    def __init__(self, count: int) -> None:
        self._live, self._gone, self._next = np.arange(count), np.arange(0), count

    def some(self, rng: np.random.Generator, count: int) -> Ints:
        return rng.choice(self._live, min(count, len(self._live)), replace=False)

    def leave(self, rng: np.random.Generator, count: int) -> Ints:
        chosen = self.some(rng, count)
        self._live, self._gone = (
            np.setdiff1d(self._live, chosen),
            np.concatenate([self._gone, chosen]),
        )
        return chosen

    def enter(self, rng: np.random.Generator, count: int, new: bool) -> Ints:
        """Half of the rows come back, if so many were there before; the others are new."""
        back = rng.choice(
            self._gone, min(count if not new else count // 2, len(self._gone)), replace=False
        )
        fresh = np.arange(self._next, self._next + (count - len(back) if new else 0))
        self._next += len(fresh)
        self._gone = np.setdiff1d(self._gone, back)
        self._live = np.concatenate([self._live, back, fresh])
        return np.concatenate([back, fresh])


def _mask(rows: pa.Table, deleted: bool) -> pa.BooleanArray:
    return pa.array(np.full(rows.num_rows, deleted))


def _joined(table: str, parts: list[tuple[pa.Table, bool]]) -> Operations:
    rows = pa.concat_tables([rows for rows, _ in parts]).combine_chunks()
    return Operations(
        table, rows, pa.concat_arrays([_mask(rows, deleted) for rows, deleted in parts])
    )


class Reference:
    """The same tables in DuckDB, and every query computed from nothing."""

    def __init__(self) -> None:
        self._db = duckdb.connect()
        for table in TABLES:
            self._db.execute(f"CREATE TABLE {table} ({tpch.COLUMNS[table]})")

    def apply(self, operations: Iterable[Operations]) -> None:
        for one in operations:
            self._db.register(
                "batch",
                one.rows.append_column("_deleted", one.deletes).append_column(
                    "_place", _places(one)
                ),
            )
            keys = ", ".join(KEYS[one.table])
            self._db.execute(
                "CREATE OR REPLACE TEMP TABLE last AS FROM batch QUALIFY row_number() OVER"
                f" (PARTITION BY {keys} ORDER BY _place DESC) = 1"
            )
            same = " AND ".join(f"{one.table}.{key} = last.{key}" for key in KEYS[one.table])
            self._db.execute(f"DELETE FROM {one.table} USING last WHERE {same}")
            self._db.execute(
                f"INSERT INTO {one.table} SELECT * EXCLUDE (_deleted, _place) FROM last WHERE NOT"
                " _deleted"
            )
            self._db.unregister("batch")

    def expected(self, select: str) -> pa.Table:
        return self._db.sql(select).to_arrow_table()

    def difference(self, select: str, got: pa.Table) -> str:
        """What is wrong with a view's contents, in words; nothing if they are right."""
        want = self.expected(select)
        if got.num_rows != want.num_rows:
            return f"{got.num_rows} rows instead of {want.num_rows}"
        rounded = [
            i
            for i, pair in enumerate(zip(got.schema, want.schema, strict=True))
            if any(pa.types.is_floating(f.type) for f in pair)
        ]
        pairs = zip(_sorted(got, rounded), _sorted(want, rounded), strict=True)
        return next((f"{a} instead of {b}" for a, b in pairs if not all(map(_same, a, b))), "")

    def rows(self) -> int:
        """Rows of all tables."""
        return sum(
            self._db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in TABLES
        )

    def close(self) -> None:
        self._db.close()


def _places(operations: Operations) -> pa.Array:
    return pa.array(np.arange(operations.rows.num_rows))


def _sorted(table: pa.Table, rounded: list[int]) -> list[tuple[Any, ...]]:
    """Rows in the order of the columns that are exact."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return sorted(
        rows, key=lambda row: [_ordinal(value) for i, value in enumerate(row) if i not in rounded]
    )


def _ordinal(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)


def _same(a: Any, b: Any) -> bool:
    """DuckDB averages decimals as doubles, Spark as decimals of six digits."""
    if isinstance(a, float) or isinstance(b, float):
        return (a is None) == (b is None) and (
            a is None or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)
        )
    return bool(
        (a is None) == (b is None)
        and (a is None or (Decimal(a) == Decimal(b) if isinstance(a, Decimal) else a == b))
    )
