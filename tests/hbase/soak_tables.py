"""What the soak keeps: three tables of HBase, views of all kinds over them, and a judge that scans
the tables with HBase's client and computes the views with DuckDB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from belvedere.database import Database
from belvedere.stores.hbase.jvm import java_class
from tests.hbase.users import User


@dataclass(frozen=True, slots=True)
class SoakTable:
    """`key` is what its row keys begin with. Clients of a `timed` one set time stamps."""

    name: str
    key: str
    columns: dict[str, str]
    timed: bool = False

    @property
    def rows(self) -> list[bytes]:
        return [f"{self.key}{number:02d}".encode() for number in range(60)]


# what an order's id is, a return's may be too: the two are joined
TABLES = (
    SoakTable("customers", "c", {"region": "STRING", "level": "BIGINT"}, timed=True),
    SoakTable("orders", "o", {"customer": "STRING", "status": "STRING", "amount": "BIGINT"}),
    SoakTable("returns", "o", {"customer": "STRING", "amount": "BIGINT"}),
)
VIEWS = {
    "pairs": "SELECT o.id, o.amount, c.region FROM orders o JOIN customers c ON o.customer = c.id",
    "revenue": "SELECT c.region, count(*) AS n, sum(o.amount) AS total FROM orders o"
    " JOIN customers c ON o.customer = c.id GROUP BY c.region",
    "extremes": "SELECT customer, min(amount) AS least, max(amount) AS most,"
    " count(DISTINCT status) AS kinds FROM orders GROUP BY customer",
    "levels": "SELECT DISTINCT region, level FROM customers",
    "best": "SELECT customer, id, amount FROM orders WHERE amount IS NOT NULL"
    " QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) <= 2",
    "everybody": "SELECT c.id, c.level, o.id AS bought FROM customers c"
    " LEFT JOIN orders o ON c.id = o.customer",
    "net": "SELECT o.id AS bought, r.id AS returned, o.amount - r.amount AS kept FROM orders o"
    " FULL JOIN returns r ON o.id = r.id",
    "strangers": "SELECT customer FROM orders EXCEPT SELECT id FROM customers",
    "busy": "SELECT customer FROM orders UNION ALL SELECT customer FROM returns",
    "sizes": "SELECT n, count(*) AS regions FROM revenue GROUP BY n",  # a view on a view
}
Rows = Counter[tuple[Any, ...]]


def create_tables(user: User) -> None:
    for table in TABLES:
        user.create(table.name, splits=[f"{table.key}20".encode(), f"{table.key}40".encode()])


def declare(db: Database) -> None:
    for table in TABLES:
        columns = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
        db.sql(
            f"CREATE TABLE {table.name} (id STRING, {columns}, PRIMARY KEY (id)) USING hbase"
            f" OPTIONS (table = '{table.name}', family = 'f', format = 'text')"
        )
    for name, select in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")


def computed(user: User) -> dict[str, Rows]:
    """Every view, from what HBase's client finds in the tables now."""
    with duckdb.connect() as engine:
        for table in TABLES:
            engine.register(table.name, _scan(user, table))
        for name, select in VIEWS.items():
            engine.execute(f"CREATE TABLE {name} AS {select}")
        return {name: _rows(engine.table(name).fetchall()) for name in VIEWS}


def kept(db: Database) -> dict[str, Rows]:
    """Every view as a reader finds it."""
    return {name: _rows(row.values() for row in db.view(name).scan()) for name in VIEWS}


def differences(wanted: dict[str, Rows], found: dict[str, Rows]) -> list[str]:
    """A line for each view that is not what it should be, with some rows."""
    lines = []
    for name in VIEWS:
        missing, wrong = wanted[name] - found[name], found[name] - wanted[name]
        if missing or wrong:
            lines.append(f"{name}: missing {list(missing)[:5]}, wrong {list(wrong)[:5]}")
    return lines


def _rows(rows: Iterable[Iterable[Any]]) -> Rows:
    return Counter(tuple(row) for row in rows)


def _scan(user: User, table: SoakTable) -> pa.Table:
    types = {"STRING": pa.string(), "BIGINT": pa.int64()}
    fields = [("id", pa.string()), *((name, types[kind]) for name, kind in table.columns.items())]
    rows = []
    with user.open(table.name) as opened:
        scanner = opened.getScanner(java_class("org.apache.hadoop.hbase.client.Scan")())
        for result in scanner:
            row: dict[str, Any] = {"id": bytes(result.getRow()).decode()}
            for name, kind in table.columns.items():
                cell = result.getValue(b"f", name.encode())
                value = None if cell is None else bytes(cell).decode()
                row[name] = int(value) if value is not None and kind == "BIGINT" else value
            rows.append(row)
        scanner.close()
    shown = [row for row in rows if any(row[name] is not None for name in table.columns)]
    return pa.Table.from_pylist(shown, schema=pa.schema(fields))
