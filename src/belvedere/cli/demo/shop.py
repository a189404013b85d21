"""The shop of the demo: an orders table, five views over it, and customers who order, pay and
change their minds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from decimal import Decimal

from belvedere.types import Row

TABLE = """CREATE TABLE orders (
    id STRING, customer STRING, product STRING, region STRING, status STRING,
    amount DECIMAL(10,2), PRIMARY KEY (id))"""


@dataclass(frozen=True, slots=True)
class DemoView:
    name: str
    keeps: str
    create: str


VIEWS = (
    DemoView(
        "revenue",
        "count, sum, avg of the paid",
        "CREATE MATERIALIZED VIEW revenue AS SELECT region, count(*) AS orders, sum(amount) AS"
        " revenue, avg(amount) AS average FROM orders WHERE status = 'paid' GROUP BY region",
    ),
    DemoView(
        "extremes",
        "min, max, distinct buyers",
        "CREATE MATERIALIZED VIEW extremes AS SELECT region, min(amount) AS smallest, max(amount)"
        " AS biggest, count(DISTINCT customer) AS customers FROM orders GROUP BY region",
    ),
    DemoView(
        "open_orders",
        "orders not yet paid",
        "CREATE MATERIALIZED VIEW open_orders AS SELECT id, customer, amount FROM orders WHERE"
        " status = 'open'",
    ),
    DemoView(
        "by_customer",
        "index: orders by customer",
        "CREATE MATERIALIZED VIEW by_customer WITH (key = 'customer, id') AS SELECT customer, id,"
        " status, amount FROM orders",
    ),
)
LATE = DemoView(
    "best_sellers",
    "HAVING sum(amount) > 200000",
    "CREATE MATERIALIZED VIEW best_sellers AS SELECT product, count(*) AS orders, sum(amount) AS"
    " revenue FROM orders WHERE status = 'paid' GROUP BY product HAVING sum(amount) > 200000",
)

REGIONS = {"africa": 1, "americas": 4, "asia": 5, "europe": 4, "oceania": 1}
PRODUCTS = (
    "telescope",
    "lantern",
    "compass",
    "barometer",
    "sextant",
    "map",
    "hourglass",
    "spyglass",
    "astrolabe",
    "globe",
    "almanac",
    "quadrant",
)
CUSTOMERS = 2_000
_INSERT, _UPDATE = 0.55, 0.85  # of all operations; the rest are deletes


@dataclass(slots=True)
class Shop:
    """Produces operations; knows its orders, because a put writes a whole row.

    The same seed gives the same operations.
    """

    seed: int = 7
    _orders: list[Row] = field(default_factory=list)
    _made: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def opening(self, count: int) -> list[Row]:
        """The orders that are there when the demo begins."""
        return [self._new() for _ in range(count)]

    def operations(self, count: int) -> tuple[list[Row], list[bool]]:
        """Rows, and whether each is a delete."""
        made = [self._operation() for _ in range(count)]
        return [row for row, _ in made], [deleted for _, deleted in made]

    def _operation(self) -> tuple[Row, bool]:
        chance = self._random.random()
        if chance < _INSERT or not self._orders:
            return self._new(), False
        place = self._random.randrange(len(self._orders))
        if chance < _UPDATE:
            row = self._orders[place] = self._changed(self._orders[place])
            return row, False
        self._orders[place], self._orders[-1] = self._orders[-1], self._orders[place]
        return self._orders.pop(), True

    def _new(self) -> Row:
        r = self._random
        self._made += 1
        row: Row = {
            "id": f"o{self._made:07}",
            "customer": f"c{int(CUSTOMERS * r.random() ** 2):04}",
            "product": PRODUCTS[int(len(PRODUCTS) * r.random() ** 1.5)],
            "region": r.choices(list(REGIONS), list(REGIONS.values()))[0],
            "status": "open" if r.random() < 0.5 else "paid",
            "amount": self._amount(),
        }
        self._orders.append(row)
        return row

    def _changed(self, row: Row) -> Row:
        """An open order is paid, a paid one is corrected."""
        return (
            {**row, "status": "paid"}
            if row["status"] == "open"
            else {**row, "amount": self._amount()}
        )

    def _amount(self) -> Decimal:
        return Decimal(int(min(9_999_999, self._random.lognormvariate(8.5, 0.9)))).scaleb(-2)
