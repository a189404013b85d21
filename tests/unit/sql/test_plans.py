"""Plans against DuckDB: evaluated node by node, a plan gives what the query's text gives."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from belvedere.expressions import SparkSql
from belvedere.sql.planner import TableInfo, ViewInfo, plan_view
from belvedere.types import BIGINT, DATE, DOUBLE, INT, STRING, Column, Schema
from tests.unit.sql.reference import Reference, Row

ORDERS = TableInfo(
    1,
    "orders",
    Schema(
        (
            Column("id", INT, False),
            Column("cust", BIGINT),
            Column("region", STRING),
            Column("amount", BIGINT),
            Column("day", DATE),
        ),
        ("id",),
    ),
)
LINES = TableInfo(
    2,
    "lines",
    Schema(
        (
            Column("order_id", INT, False),
            Column("line", INT, False),
            Column("item", STRING),
            Column("price", DOUBLE),
        ),
        ("order_id", "line"),
    ),
)
CUSTOMERS = TableInfo(
    3,
    "customers",
    Schema(
        (Column("id", BIGINT, False), Column("name", STRING), Column("region", STRING)), ("id",)
    ),
)
TABLES = [ORDERS, LINES, CUSTOMERS]
VIEWS = [
    ViewInfo(
        "totals",
        "SELECT cust, sum(amount) AS total, count(*) AS n FROM orders GROUP BY cust",
        ("cust", "total", "n"),
    ),
    ViewInfo(
        "big",
        "SELECT id, cust AS who, amount FROM orders WHERE amount > 2",
        ("id", "who", "amount"),
    ),
    ViewInfo(
        "known",
        "SELECT b.id, b.amount, c.name FROM big b JOIN customers c ON b.who = c.id",
        ("id", "amount", "name"),
    ),
]
QUERIES = [
    q.strip()
    for q in Path(__file__).with_name("queries.sql").read_text(encoding="utf-8").split(";")
    if q.strip()
]


def values_of(kind: str, random_: random.Random) -> Any:
    return {
        "int": random_.randrange(6),
        "bigint": random_.randrange(5),
        "string": random_.choice("abc"),
        "double": random_.choice([0.5, 1.0, 2.5]),
        "date": date(2024, 1, random_.randrange(1, 4)),
    }[kind]


def data(table: TableInfo, random_: random.Random, count: int) -> pa.Table:
    rows: dict[Row, list[Any]] = {}
    for _ in range(count):
        row = [
            None if c.nullable and random_.random() < 0.2 else values_of(c.type.name, random_)
            for c in table.schema.columns
        ]
        rows[tuple(row[table.schema.names.index(k)] for k in table.schema.key)] = row
    columns = zip(*rows.values(), strict=True) if rows else [[] for _ in table.schema.columns]
    return pa.table(
        [
            pa.array(list(v), c.type.arrow)
            for v, c in zip(columns, table.schema.columns, strict=True)
        ],
        names=table.schema.names,
    )


@cache
def rows(seed: int) -> tuple[dict[int, pa.Table], duckdb.DuckDBPyConnection]:
    """Random tables, and a DuckDB that has them and the views."""
    random_ = random.Random(seed)
    tables = {
        t.id: data(t, random_, random_.choice([0, 4, 12, 25]) if seed else 15) for t in TABLES
    }
    connection = duckdb.connect()
    for info in TABLES:
        connection.register(info.name, tables[info.id])
    for view in VIEWS:
        connection.execute(f"CREATE VIEW {view.name} AS {in_duckdb(view.select)}")
    return tables, connection


def in_duckdb(select: str) -> str:
    return sqlglot.transpile(select, read=SparkSql, write="duckdb")[0]


@pytest.mark.parametrize("select", QUERIES, ids=lambda q: " ".join(q.split())[:100])
def test_a_plan_gives_what_the_query_gives(select: str) -> None:
    planned = plan_view(select, [], TABLES, VIEWS)
    keys = {t.id: [t.schema.names.index(k) for k in t.schema.key] for t in TABLES}
    text = in_duckdb(planned.checked)
    for seed in range(4):
        tables, connection = rows(seed)
        found = connection.sql(text).to_arrow_table()
        expected = Counter(zip(*(c.to_pylist() for c in found.columns), strict=True))
        assert Reference(planned, tables, keys).rows() == expected, f"seed {seed}"
