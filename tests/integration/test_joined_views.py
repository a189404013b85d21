"""Views over several tables and over views, on real Spark: maintained in narrow and wide epochs,
recomputed by Spark SQL.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.epochs.width import Fixed, Width
from belvedere.errors import CatalogError
from belvedere.spark.runner import SparkRunner

TABLES = (
    (
        "CREATE TABLE orders (id STRING, customer BIGINT, item STRING, amount BIGINT, PRIMARY KEY"
        " (id))"
    ),
    "CREATE TABLE customers (id BIGINT, name STRING, region STRING, PRIMARY KEY (id))",
    (
        "CREATE TABLE items (item STRING, price DECIMAL(6,2), PRIMARY KEY (item)) WITH"
        " (before_images = false)"
    ),
)
VIEWS = {
    "named": (
        "SELECT o.customer, o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer ="
        " c.id"
    ),
    "everyone": (
        "SELECT c.id, c.name, o.id AS order_id FROM customers c LEFT JOIN orders o ON o.customer ="
        " c.id AND o.amount > 50"
    ),
    "both": (
        "SELECT o.id, c.id AS customer, c.region FROM orders o FULL OUTER JOIN customers c ON"
        " o.customer = c.id"
    ),
    "spent": (
        """SELECT c.region, count(*) AS n, sum(CAST(o.amount AS INT) * i.price) AS total, max(o.amount) AS most
                FROM orders o JOIN customers c ON o.customer = c.id JOIN items i USING (item) GROUP BY c.region"""
    ),
    "idle": (
        "SELECT id, name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer"
        " = c.id)"
    ),
    "unknown": "SELECT id, customer FROM orders WHERE customer NOT IN (SELECT id FROM customers)",
    "active": (
        "SELECT region FROM customers INTERSECT SELECT c.region FROM customers c JOIN orders o ON"
        " o.customer = c.id"
    ),
    "top": (
        """SELECT customer, id, amount, rn FROM (SELECT customer, id, amount,
              ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS rn FROM orders) WHERE rn <= 2"""
    ),
    "largest": "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 5",
    "regions": "SELECT region, n FROM spent WHERE n > 3",
    "totals": "SELECT name, sum(amount) AS total FROM named GROUP BY name",
}
OPTIONS = {"named": " WITH (key = 'customer')"}


def create(db: belvedere.Database) -> None:
    for text in TABLES:
        db.sql(text)
    for name, select in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name}{OPTIONS.get(name, '')} AS {select}")


def change(db: belvedere.Database, seed: int) -> None:
    rng = random.Random(seed)
    maybe: list[Any] = [None, *range(12)]
    db.table("orders").put_many(
        [
            {
                "id": f"o{rng.randrange(60)}",
                "customer": rng.choice(maybe),
                "item": rng.choice("abcd"),
                "amount": rng.randrange(100),
            }
            for _ in range(40)
        ]
    )
    db.table("orders").delete_many([f"o{rng.randrange(60)}" for _ in range(10)])
    regions = ["e", "a", None]
    db.table("customers").put_many(
        [
            {"id": rng.randrange(10), "name": rng.choice("xyz"), "region": rng.choice(regions)}
            for _ in range(4)
        ]
    )
    db.table("customers").delete(rng.randrange(10))
    db.table("items").put_many(
        [{"item": rng.choice("abc"), "price": rng.randrange(1, 9)} for _ in range(2)]
    )


@pytest.mark.parametrize("width", ["narrow", "wide"])
def test_views_over_joins_and_views_equal_their_recomputation(
    tmp_path: Path, spark: SparkSession, width: Fixed
) -> None:
    with belvedere.open(tmp_path / "shop", spark=spark, slots=2) as db:
        db._runner = SparkRunner(db.store, spark, Width(tasks=2, fixed=width))
        create(db)
        for seed in range(3):
            change(db, seed)
            db.catch_up()
        for name in VIEWS:
            found = db.verify(name)
            assert found.ok, (name, found)
        assert sum(
            len(list(db.view("named").scan(prefix=(customer,)))) for customer in range(12)
        ) == len(db.view("named"))


def test_a_view_that_others_read_stays_until_they_are_dropped(db: belvedere.Database) -> None:
    create(db)
    for statement in (
        "DROP VIEW spent",
        f"CREATE OR REPLACE MATERIALIZED VIEW spent AS {VIEWS['idle']}",
    ):
        with pytest.raises(CatalogError, match="used by regions"):
            db.sql(statement)
    db.sql("DROP VIEW regions")
    db.sql("DROP VIEW spent")
    with pytest.raises(CatalogError, match="used by active, both, everyone"):
        db.sql("DROP TABLE customers")
