"""EXPLAIN COST with every row in the samples: what it says is what the view then really keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import belvedere
from belvedere.cli.app import app
from belvedere.cost import Cost
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.local import LocalRunner
from belvedere.errors import SqlError
from belvedere.graph import state_tables
from belvedere.statements import cost

TABLES = """
CREATE TABLE orders (id STRING, customer INT, region STRING, amount BIGINT, PRIMARY KEY (id));
CREATE TABLE customers (id INT, name STRING, boss INT, PRIMARY KEY (id));
CREATE TABLE nothing (id INT, x INT, PRIMARY KEY (id));
CREATE TABLE blind (id INT, x INT, PRIMARY KEY (id)) WITH (before_images = false)
"""
VIEWS = {
    "selection": "SELECT id, amount FROM orders WHERE region = 'emea'",
    "bag": "SELECT region, customer FROM orders",
    "groups": (
        "SELECT region, count(*) AS n, sum(amount) AS s, min(amount) AS m, count(DISTINCT customer)"
        " AS c FROM orders GROUP BY region"
    ),
    "global aggregate": "SELECT count(*) AS n, max(amount) AS m FROM orders",
    "errors": "SELECT id, 10 div (amount % 7) AS y FROM orders",
    "no before-images": "SELECT x, count(*) AS n FROM blind GROUP BY x",
    "inner join": "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id",
    "left join": "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "full join": (
        "SELECT o.id, c.id AS c, c.name FROM orders o FULL JOIN customers c ON o.customer = c.id"
    ),
    "self-join": "SELECT a.id AS a, b.id AS b FROM customers a JOIN customers b ON a.name = b.name",
    "semi join": (
        "SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id"
        " AND o.amount > c.boss)"
    ),
    "anti join": (
        "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer ="
        " c.id)"
    ),
    "three tables": (
        "SELECT o.id, b.name FROM orders o JOIN customers c ON o.customer = c.id JOIN customers b"
        " ON c.boss = b.id"
    ),
    "groups of a join": (
        "SELECT c.name, sum(o.amount) AS s FROM orders o JOIN customers c ON o.customer = c.id"
        " GROUP BY c.name"
    ),
    "join of groups": (
        "SELECT id, n FROM customers JOIN (SELECT customer, sum(1) AS n FROM orders GROUP BY"
        " customer) ON customer = id"
    ),
    "union all": "SELECT id, amount FROM orders UNION ALL SELECT name, id FROM customers",
    "union": "SELECT region FROM orders UNION SELECT name FROM customers",
    "intersect": "SELECT customer FROM orders INTERSECT SELECT id FROM customers",
    "except all": "SELECT customer FROM orders EXCEPT ALL SELECT id FROM customers",
    "limit": "SELECT id, region, amount FROM orders ORDER BY amount DESC, id LIMIT 10",
    "top-k": (
        "SELECT id, region FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY region ORDER BY"
        " amount, id) <= 3"
    ),
    "empty table": "SELECT id, x FROM nothing",
    "groups of nothing": "SELECT x, count(*) AS n FROM nothing GROUP BY x",
    "one group of nothing": "SELECT count(*) AS n, sum(x) AS s FROM nothing",
    "join with nothing": "SELECT o.id, n.x FROM orders o LEFT JOIN nothing n ON n.id = o.customer",
    "not in nothing": "SELECT id FROM orders WHERE customer NOT IN (SELECT x FROM nothing)",
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "shop", slots=3) as opened:
        opened.sql(TABLES)
        regions = ["emea", "apac", None]
        opened.table("orders").put_many(
            [
                {
                    "id": f"o{i}",
                    "customer": 17 if i % 3 == 0 else None if i % 50 == 1 else i * 7 % 60,
                    "region": regions[i % 3],
                    "amount": i % 90,
                }
                for i in range(600)
            ]
        )
        opened.table("customers").put_many(
            [{"id": i, "name": f"n{i % 20}", "boss": i // 5} for i in range(50)]
        )
        opened.table("blind").put_many([{"id": i, "x": i % 4} for i in range(20)])
        yield opened


def build(db: belvedere.Database) -> None:
    coordinator = Coordinator(db.store, LocalRunner(db.store))
    assert coordinator.acquire()
    while coordinator.step() is not None:
        pass
    coordinator.release()


def kept(db: belvedere.Database, view: str, but: frozenset[int] = frozenset()) -> tuple[int, int]:
    """Records and bytes in all state tables of a view, apart from those of some nodes."""
    tables = [
        table
        for node in db.state().view(view).nodes
        if node.id not in but
        for table in state_tables(node)
    ]
    counts = [
        db.store.state.count(slot, table)
        for table in tables
        for slot in range(db.store.state.slots)
    ]
    return sum(records for records, _ in counts), sum(size for _, size in counts)


@pytest.mark.parametrize("select", VIEWS.values(), ids=VIEWS.keys())
def test_the_cost_of_a_view_is_what_it_then_keeps(db: belvedere.Database, select: str) -> None:
    told = cost(db, f"CREATE MATERIALIZED VIEW v AS {select}")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    build(db)
    assert told.exact
    assert (told.records, told.bytes) == kept(db, "v")
    assert told.errors == db.state().in_error(db.state().view("v"))
    assert replace(cost(db, "v"), history=told.history) == told


def test_what_other_views_keep_costs_nothing(db: belvedere.Database) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW a AS {VIEWS['inner join']}")
    db.sql(f"CREATE MATERIALIZED VIEW b AS {VIEWS['inner join']}")
    build(db)
    select = "SELECT o.id, c.name, c.boss FROM orders o JOIN customers c ON o.customer = c.id"
    told = cost(db, select)
    assert [n.shared for n in told.nodes if n.operator == "Arrange"] == [(), ("a", "b")]
    assert told.new_exchanges == told.exchanges - 1
    assert "shared with a, b: nothing new" in str(db.sql(f"EXPLAIN COST {select}"))
    known = frozenset(n.id for n in db.state().view("a").nodes)
    db.sql(f"CREATE MATERIALIZED VIEW c AS {select}")
    build(db)
    assert (told.records, told.bytes) == kept(db, "c", but=known)
    assert "no new state" in str(db.sql(f"EXPLAIN COST {VIEWS['inner join']}"))


def test_a_view_on_views_can_be_priced_before_and_after_they_are_built(
    db: belvedere.Database,
) -> None:
    db.sql(f"CREATE MATERIALIZED VIEW sums AS {VIEWS['groups of a join']}")
    select = "SELECT s, count(*) AS n FROM sums GROUP BY s"
    before = cost(db, select)
    build(db)
    after = cost(db, select)
    db.sql(f"CREATE MATERIALIZED VIEW v AS {select}")
    build(db)
    assert (before.records, before.bytes) == kept(db, "v")
    assert (after.records, after.bytes) == kept(
        db, "v", but=frozenset(n.id for n in db.state().view("sums").nodes)
    )


def test_a_join_says_what_changed_rows_meet(db: belvedere.Database) -> None:
    (join,) = cost(db, VIEWS["inner join"]).joins
    counts: dict[int, int] = {}
    for row in db.table("orders").to_arrow().to_pylist():
        if row["customer"] is not None:
            counts[row["customer"]] = counts.get(row["customer"], 0) + 1
    matched = sum(n for customer, n in counts.items() if customer < 50)
    assert (join.left.tables, join.right.tables) == (("orders",), ("customers",))
    assert join.pairs == matched
    assert join.right.matches == matched / 50
    assert join.left.matches == matched / sum(counts.values())
    assert [heavy.rows for heavy in join.left.heaviest] == sorted(counts.values(), reverse=True)[:5]
    assert join.left.heaviest[0].key == (17,)
    assert join.right.heaviest == ()  # at most one customer has an id
    text = str(db.sql(f"EXPLAIN COST {VIEWS['inner join']}"))
    assert (
        f"a change of one row of customers with c.id = 17 touches {counts[17]:,} rows of orders"
        in text
    )


def test_levels_and_exchanges_are_those_of_the_plan(db: belvedere.Database) -> None:
    shown = str(db.sql(f"EXPLAIN {VIEWS['three tables']}"))
    told = cost(db, VIEWS["three tables"])
    assert told.exchanges == told.new_exchanges == shown.count("⇄")
    assert told.levels == 1 + max(int(part.split()[0]) for part in shown.split("level ")[1:])


def test_a_key_that_the_user_names_counts(db: belvedere.Database) -> None:
    told = cost(
        db, "CREATE MATERIALIZED VIEW v WITH (key = 'region') AS SELECT id, region FROM orders"
    )
    db.sql("CREATE MATERIALIZED VIEW v WITH (key = 'region') AS SELECT id, region FROM orders")
    assert cost(db, "v") == told  # requested, not built
    build(db)
    assert (told.records, told.bytes) == kept(db, "v")


def test_rows_that_raise_are_told_in_words(db: belvedere.Database) -> None:
    told = cost(db, VIEWS["errors"])
    assert told.errors == sum(i % 90 % 7 == 0 for i in range(600))
    assert f"{told.errors} rows could not be evaluated" in str(
        db.sql(f"EXPLAIN COST {VIEWS['errors']}")
    )


def test_nothing_is_created_and_what_cannot_be_a_view_is_refused(db: belvedere.Database) -> None:
    before = db.state()
    db.sql(f"EXPLAIN COST CREATE MATERIALIZED VIEW v AS {VIEWS['left join']}")
    assert db.state() == before
    with pytest.raises(SqlError):
        db.sql("EXPLAIN COST SELECT id FROM orders ORDER BY id")


def test_a_view_named_cost_can_still_be_explained(db: belvedere.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW cost AS SELECT id, x FROM nothing")
    assert str(db.sql("EXPLAIN cost")).startswith("cost  keyed by id")
    assert str(db.sql("EXPLAIN COST cost")).startswith("cost: no new state")


def test_the_store_in_memory_answers_too() -> None:
    with belvedere.open("memory:") as db:
        db.sql("CREATE TABLE t (id INT, x INT, PRIMARY KEY (id))")
        db.sql("INSERT INTO t VALUES (1, 10), (2, 10), (3, 11)")
        assert [
            s.records
            for n in cost(db, "SELECT x, count(*) AS n FROM t GROUP BY x").nodes
            for s in n.state
        ] == [2, 2]


def test_the_command_line_prints_text_or_json(db: belvedere.Database, tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["--db", str(tmp_path / "shop"), "explain", *arguments])
        return result.exit_code, result.stdout

    code, text = run("--cost", f"{VIEWS['inner join']};")
    assert code == 0
    assert text.strip() == str(db.sql(f"EXPLAIN COST {VIEWS['inner join']}"))
    code, data = run(VIEWS["inner join"], "--cost", "--json")
    told: Cost = cost(db, VIEWS["inner join"])
    found = json.loads(data)
    assert (code, found["records"], found["bytes"]) == (0, told.records, told.bytes)
    assert found["joins"][0]["left"]["heaviest"][0]["key"] == [17]
    assert run(VIEWS["inner join"], "--json")[0] == 2
    assert "Join" in run(VIEWS["inner join"])[1]
