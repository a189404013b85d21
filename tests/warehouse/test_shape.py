"""A SELECT is the upper one over the rows of its core, which has the keys of all relations."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sources.base import Relation
from belvedere.sql.dialect import parse
from belvedere.types import STRING, Column, Schema, parse_type
from belvedere.warehouse.shape import Core, core_of


def relation(called: str, key: str, /, **columns: str) -> Relation:
    return Relation(
        called,
        Schema(
            tuple(Column(n, parse_type(t), n != key) for n, t in columns.items()),
            tuple(key.split()),
        ),
    )


RELATIONS = {
    "orders": ("shop", relation("orders", "id", id="BIGINT", customer="BIGINT", amount="BIGINT")),
    "customers": ("crm", relation("customers", "id", id="BIGINT", name="STRING", region="BIGINT")),
    "regions": ("crm", relation("regions", "code", code="INT", label="STRING", size="DOUBLE")),
}
JOINED = "FROM orders o JOIN customers c ON o.customer = c.id"


def find(table: exp.Table) -> tuple[str, Relation]:
    return RELATIONS[table.name]


def core(text: str) -> Core:
    return core_of(parse(text), find, "core")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT o.id, c.name {JOINED}",
        f"SELECT amount * 2 AS double, upper(name) AS name {JOINED} WHERE amount > 2 AND c.id < 4",
        f"SELECT * {JOINED}".replace("*", "o.*, c.name"),
        f"SELECT o.amount {JOINED} JOIN regions r ON (r.code = c.region AND o.amount > r.code)",
        "SELECT c.name, label FROM customers c, regions WHERE (name = 'l1' OR label = 'l2')"
        " AND c.region = regions.code",
        "SELECT NAME FROM customers JOIN regions ON REGION = Code WHERE label <> 'l1'",
        "SELECT a.id AS one, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer",
        "SELECT name FROM customers WHERE region IS NULL",
    ],
)
def test_the_upper_select_over_the_core_gives_the_same_rows(text: str) -> None:
    found = core(text)
    duck = duckdb.connect()
    fill(duck)
    expected = duck.sql(parse(text).sql("duckdb"))
    duck.sql(f"CREATE TABLE core AS {core_select(found)}")
    upper = duck.sql(found.upper.sql("duckdb"))
    assert Counter(upper.fetchall()) == Counter(expected.fetchall())
    assert [c.lower() for c in upper.columns] == [c.lower() for c in expected.columns]


def core_select(found: Core) -> str:
    """What the warehouse keeps, said in SQL."""
    shape = found.shape
    columns = [[f'm{n}."{c}"' for c in m.columns] for n, m in enumerate(shape.members)]
    shown = [
        f'{columns[m][c]} AS "{name}"'
        for (m, c), name in zip(shape.shown, found.names, strict=True)
    ]
    tables = [f"{m.name} m{n}" for n, m in enumerate(shape.members)]
    ties = [
        f"{columns[e.left][e.left_column]} = {columns[e.right][e.right_column]}"
        for e in shape.equalities
    ]
    return (
        f"SELECT {', '.join(shown)} FROM {', '.join(tables)} WHERE {' AND '.join(ties) or 'true'}"
    )


def fill(duck: Any) -> None:
    draw = random.Random(3)
    for name, (_, found) in RELATIONS.items():
        columns = ", ".join(f"{c.name} {c.type}" for c in found.schema.columns)
        duck.sql(f"CREATE TABLE {name} ({columns})")
        for number in range(8):
            values = [
                str(number)
                if c.name in found.schema.key
                else "NULL"
                if draw.random() < 0.2
                else f"'l{draw.randrange(3)}'"
                if c.type == STRING
                else str(draw.randrange(6))
                for c in found.schema.columns
            ]
            duck.sql(f"INSERT INTO {name} VALUES ({', '.join(values)})")


def test_keys_that_the_select_lacks_are_added_and_join_columns_travel() -> None:
    found = core(f"SELECT c.name {JOINED}")
    assert found.added == ("o.id", "c.id")
    assert found.names == ("o.id", "c.id", "c.name")
    assert found.shape.has_keys
    assert [m.columns for m in found.shape.members] == [("id", "customer"), ("id", "name")]
    assert [(m.source, m.name) for m in found.shape.members] == [
        ("shop", "orders"),
        ("crm", "customers"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT c.name, sum(o.amount) AS s {JOINED} GROUP BY c.name", "no GROUP BY"),
        (f"SELECT sum(o.amount) AS s {JOINED}", "no aggregate"),
        (f"SELECT DISTINCT name {JOINED}", "no DISTINCT"),
        (f"SELECT name {JOINED} ORDER BY name LIMIT 3", "no (ORDER BY|LIMIT)"),
        ("SELECT name FROM orders LEFT JOIN customers ON customer = customers.id", "no LEFT JOIN"),
        ("SELECT name FROM customers JOIN orders USING (id)", "no USING"),
        ("SELECT name FROM (SELECT * FROM customers)", "no subquery"),
        ("SELECT name FROM customers WHERE id IN (SELECT id FROM orders)", "no subquery"),
        ("SELECT name FROM customers UNION ALL SELECT label FROM regions", "no set operation"),
        ("WITH x AS (SELECT 1) SELECT name FROM customers", "no WITH"),
        (f"SELECT id {JOINED}", "id is a column of o, c"),
        (f"SELECT c.color {JOINED}", "no column c.color"),
        (f"SELECT x.* {JOINED}", "no relation x"),
        ("SELECT amount + 1 FROM orders", "has no name"),
        ("SELECT name FROM orders, customers", "no equality"),
        ("SELECT name FROM regions, customers WHERE code = region OR code = 1", "no equality"),
        ("SELECT name FROM customers c JOIN regions r ON c.region = r.size", "no equality"),
        ("SELECT a.label FROM regions a JOIN regions b ON a.size = b.size", "not a floating one"),
        ("SELECT 1 AS one FROM orders JOIN orders ON true", "two relations called orders"),
    ],
)
def test_what_is_no_select_project_join_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        core(text)
