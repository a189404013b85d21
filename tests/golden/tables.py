"""The tables that golden statements speak of."""

from __future__ import annotations

from belvedere.catalog.definitions import TableDefinition
from belvedere.sql.planner import ViewInfo
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    Schema,
    decimal,
)

ORDERS = TableDefinition(
    1,
    "orders",
    Schema(
        (
            *(Column("id", STRING, False), Column("region", STRING), Column("status", STRING)),
            *(Column("amount", BIGINT), Column("day", DATE)),
        ),
        ("id",),
    ),
)
LINES = TableDefinition(
    2,
    "lines",
    Schema(
        (
            *(
                Column("order_id", STRING, False),
                Column("line", INT, False),
                Column("price", decimal(10, 2)),
                Column("weight", DOUBLE),
            ),
            *(
                Column("wide", decimal(38, 2)),
                Column("gift", BOOLEAN),
                Column("photo", BINARY),
                Column("packed", TIMESTAMP),
            ),
        ),
        ("order_id", "line"),
    ),
    before_images=False,
    delta=3,
)
CUSTOMERS = TableDefinition(
    4,
    "customers",
    Schema(
        (
            Column("id", BIGINT, False),
            Column("name", STRING),
            Column("region", STRING),
            Column("manager", BIGINT),
        ),
        ("id",),
    ),
)
TABLES = [ORDERS, LINES, CUSTOMERS]
VIEWS = [
    ViewInfo(
        "totals",
        "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
        ("region", "total"),
    ),
    ViewInfo(
        "paid",
        "SELECT id, region, amount FROM orders WHERE status = 'paid'",
        ("id", "region", "amount"),
    ),
]
