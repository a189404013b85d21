"""The tables that golden statements speak of."""

from __future__ import annotations

from belvedere.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, Column, Schema, decimal
from belvedere.views.definitions import TableDefinition

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
            *(Column("order_id", STRING, False), Column("line", INT, False), Column("price", decimal(10, 2)), Column("weight", DOUBLE)),
            *(Column("wide", decimal(38, 2)), Column("gift", BOOLEAN), Column("photo", BINARY), Column("packed", TIMESTAMP)),
        ),
        ("order_id", "line"),
    ),
    before_images=False,
    delta=3,
)
TABLES = [ORDERS, LINES]
