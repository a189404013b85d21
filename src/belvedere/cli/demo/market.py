"""The shop of `belvedere demo --sources`: orders in PostgreSQL, customers in MariaDB, prices in a
file of CSV, views over all of them, and people who change all three.
"""

from __future__ import annotations

import csv
import random
import threading
import time
from pathlib import Path
from typing import Any

from belvedere.cli.demo.shop import PRODUCTS
from belvedere.sources.mariadb.settings import library as pymysql
from belvedere.sources.postgres.settings import library as psycopg
from belvedere.sources.servers import Address
from belvedere.sql.foreign import literal

VIEWS = {
    "by_city": "CREATE MATERIALIZED VIEW by_city AS SELECT c.city, count(*) AS orders,"
    " sum(o.pieces * p.price) AS revenue FROM shop.orders o JOIN crm.customers c ON o.customer ="
    " c.id JOIN office.prices p ON o.product = p.product WHERE o.status = 'paid' GROUP BY c.city",
    "open_orders": "CREATE MATERIALIZED VIEW open_orders AS SELECT o.id, c.name, o.product,"
    " o.pieces FROM shop.orders o JOIN crm.customers c ON o.customer = c.id WHERE o.status ="
    " 'open'",
    "sold": "CREATE MATERIALIZED VIEW sold AS SELECT product, sum(pieces) AS pieces, count(*) AS"
    " orders FROM shop.orders GROUP BY product",
}
_ORDERS = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, product text, pieces integer,"
    " status text)"
)
_CUSTOMERS = "CREATE TABLE customers (id bigint PRIMARY KEY, name varchar(40), city varchar(40))"
_PRICES = "product STRING, price DECIMAL(8,2)"
_CITIES = ("Bergen", "Cordoba", "Kyoto", "Lagos", "Lima", "Tartu")
_CUSTOMER_COUNT = 500
_INSERT, _UPDATE = 0.55, 0.85  # of all changes of orders; the rest are deletes

_TICK = 0.1  # seconds between two transactions at PostgreSQL
_CUSTOMER_TICKS, _PRICE_TICKS = 3, 20  # the others are changed less often


class Market:
    """All three places, written by one thread at a time."""

    def __init__(self, folder: Path, shop: Address, crm: Address, seed: int) -> None:
        self._folder, self._addresses = folder, {"shop": shop, "crm": crm}
        self._random = random.Random(seed)
        self._orders: list[int] = []
        self._made = 0
        self._shop = psycopg().connect(**_reached(shop), dbname=shop.database)
        self._crm = pymysql().connect(**_reached(crm), database=crm.database)

    def close(self) -> None:
        self._shop.close()
        self._crm.close()

    @property
    def prices(self) -> Path:
        return self._folder / "prices.csv"

    def open(self, orders: int) -> None:
        """What is there when the demo begins."""
        with self._shop.transaction(), self._shop.cursor() as cursor:
            cursor.execute(_ORDERS)
            self._insert(cursor, orders)
        people = [(n, f"customer {n}", self._city()) for n in range(_CUSTOMER_COUNT)]
        with self._crm.cursor() as cursor:
            cursor.execute(_CUSTOMERS)
            cursor.executemany("INSERT INTO customers VALUES (%s, %s, %s)", people)
        self._crm.commit()
        self._write_prices()

    def statements(self) -> list[str]:
        """That make the three places sources."""
        found = [_create_source(name, address) for name, address in self._addresses.items()]
        options = {
            "path": str(self.prices),
            "key": "product",
            "kept": str(self._folder / "kept"),
            "columns": _PRICES,
            "every": "1 s",
        }
        return [*found, f"CREATE SOURCE office TYPE files OPTIONS ({_written(options)})"]

    def write(self, rate: int, ended: threading.Event) -> None:
        """Changes of orders at this rate, if it can be held, and fewer ones of the others."""
        ticks = 0
        due = time.monotonic()
        while not ended.is_set():
            ticks += 1
            self._change_orders(max(1, round(rate * _TICK)))
            if ticks % _CUSTOMER_TICKS == 0:
                self._change_customer()
            if ticks % _PRICE_TICKS == 0:
                self._write_prices()
            due = max(due + _TICK, time.monotonic() - _TICK)
            ended.wait(max(0.0, due - time.monotonic()))

    def _change_orders(self, count: int) -> None:
        """One transaction: orders come, are paid, and go."""
        kinds = [self._random.random() for _ in range(count)]
        with self._shop.transaction(), self._shop.cursor() as cursor:
            self._insert(cursor, sum(kind < _INSERT for kind in kinds))
            paid = [(self._any(),) for kind in kinds if _INSERT <= kind < _UPDATE]
            cursor.executemany("UPDATE orders SET status = 'paid' WHERE id = %s", paid)
            gone = [(self._any(is_gone=True),) for kind in kinds if kind >= _UPDATE]
            cursor.executemany("DELETE FROM orders WHERE id = %s", gone)

    def _insert(self, cursor: Any, count: int) -> None:
        with cursor.copy("COPY orders FROM STDIN") as copy:
            for number in range(self._made, self._made + count):
                copy.write_row(self._order(number))
        self._orders += range(self._made, self._made + count)
        self._made += count

    def _order(self, number: int) -> tuple[int, int, str, int, str]:
        chance = self._random
        status = "open" if chance.random() < 0.5 else "paid"
        product = chance.choice(PRODUCTS)
        return number, chance.randrange(_CUSTOMER_COUNT), product, chance.randint(1, 9), status

    def _any(self, is_gone: bool = False) -> int:
        """An order that is there; -1 if there is none."""
        if not self._orders:
            return -1
        place = self._random.randrange(len(self._orders))
        if not is_gone:
            return self._orders[place]
        self._orders[place], self._orders[-1] = self._orders[-1], self._orders[place]
        return self._orders.pop()

    def _change_customer(self) -> None:
        """One moves to another city."""
        row = (self._city(), self._random.randrange(_CUSTOMER_COUNT))
        with self._crm.cursor() as cursor:
            cursor.execute("UPDATE customers SET city = %s WHERE id = %s", row)
        self._crm.commit()

    def _city(self) -> str:
        return self._random.choice(_CITIES)

    def _write_prices(self) -> None:
        """Renamed to its place, so that nobody reads half a file."""
        new = self.prices.with_suffix(".new")
        with open(new, "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(("product", "price"))
            lines.writerows((p, f"{self._random.randint(500, 9999) / 100:.2f}") for p in PRODUCTS)
        new.replace(self.prices)


def _reached(address: Address) -> dict[str, Any]:
    return {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
    }


def _create_source(name: str, address: Address) -> str:
    options = {
        "host": address.host,
        "port": str(address.port),
        "database": address.database,
        "user": address.user,
        "password_file": address.password_file,
    }
    return f"CREATE SOURCE {name} TYPE {address.type} OPTIONS ({_written(options)})"


def _written(options: dict[str, str]) -> str:
    return ", ".join(f"{name} = {literal(value)}" for name, value in options.items())
