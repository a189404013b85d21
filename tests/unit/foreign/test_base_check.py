"""What no log shows makes the picture of a foreign table wrong; it is found, and mended."""

from __future__ import annotations

import random

import pytest

import belvedere
from belvedere.database import Database
from belvedere.errors import BelvedereError
from belvedere.stores.base import DELETE_FAMILY, PUT
from belvedere.stores.memory.foreign import Cell, ForeignBase
from belvedere.stores.memory.rows import RowRules

SELECT = "SELECT region, count(*) AS n, sum(amount) AS total FROM orders GROUP BY region"
SOURCE = "shop:orders"


class World:
    def __init__(self) -> None:
        self.db: Database = belvedere.open("memory:", foreign=True, rows=RowRules(), slots=3)
        assert isinstance(self.db.store.base, ForeignBase)
        self.base = self.db.store.base
        self.base.sources[SOURCE] = {}
        self.db.sql(
            "CREATE TABLE orders (id STRING, region STRING, amount BIGINT, PRIMARY KEY (id))"
            f" USING hbase OPTIONS (table = '{SOURCE}', family = 'd')"
        )
        self.db.sql(f"CREATE MATERIALIZED VIEW totals AS {SELECT}")

    def put(self, row: str, region: str, amount: int, time: int = 1, logged: bool = True) -> None:
        cells = [
            Cell(b"d", b"region", PUT, time, region.encode()),
            Cell(b"d", b"amount", PUT, time, amount.to_bytes(8, "big")),
        ]
        do = self.base.mutate if logged else self.base.skip_log
        do(SOURCE, row.encode(), cells)

    def delete(self, row: str, time: int, logged: bool = True) -> None:
        do = self.base.mutate if logged else self.base.skip_log
        do(SOURCE, row.encode(), [Cell(b"d", b"", DELETE_FAMILY, time)])

    def check_views(self) -> None:
        self.db.catch_up()
        found = self.db.view("totals").to_arrow().to_pylist()
        expected = self.db.sql(SELECT).to_arrow().to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.fixture
def world() -> World:
    made = World()
    for number in range(20):
        made.put(f"o{number}", "emea" if number % 2 else "apac", number)
    return made


def test_a_picture_that_is_right_is_found_right(world: World) -> None:
    found = world.db.verify_base("orders")
    assert (found.ok, found.rows, found.undecided) == (True, 20, 0)


def test_exactly_the_rows_that_no_log_shows_are_found_and_mended(world: World) -> None:
    world.db.catch_up()
    world.put("new", "emea", 7, logged=False)
    world.put("o3", "emea", 300, time=2, logged=False)
    world.delete("o4", time=2, logged=False)
    found = world.db.verify_base("orders")
    assert found.counts == {"missing": 1, "different": 1, "extra": 1}
    kinds = {(d.kind, (d.expected or d.found or {})["id"]) for d in found.differences}
    assert kinds == {("missing", "new"), ("different", "o3"), ("extra", "o4")}
    assert world.db.repair_base("orders").counts == found.counts
    assert world.db.verify_base("orders").ok
    world.check_views()


def test_a_truncated_table_is_as_new(world: World) -> None:
    """Sequence ids begin anew, and puts may be older than what was deleted before."""
    world.delete("o1", time=9)
    world.db.catch_up()
    world.base.truncate(SOURCE)
    world.put("o2", "latam", 2, time=1)
    world.db.repair_base("orders")
    world.check_views()
    world.put("o2", "latam", 22, time=2)
    world.put("o1", "latam", 1, time=3)
    world.put("o5", "latam", 5, time=1)
    world.check_views()
    assert world.db.view("totals").get("latam") == {"region": "latam", "n": 3, "total": 28}


def test_rows_that_are_written_meanwhile_are_looked_at_again(world: World) -> None:
    """Lagging capture is no difference, and a row that is always written stays undecided."""
    world.db.catch_up()
    world.base.lags = True
    world.put("o1", "emea", 100, time=5)
    assert world.db.verify_base("orders").ok
    world.put("lost", "emea", 1, time=1, logged=False)
    barrier, time = world.base.barrier, iter(range(6, 1000))

    def busy() -> belvedere.types.Vector:
        world.put("o1", "emea", 100, time=next(time))
        world.put("lost", "apac", 1, time=next(time))
        reached = barrier()
        world.put("o1", "emea", next(time), time=next(time))
        return reached

    world.base.barrier = busy  # type: ignore[method-assign]  # writers at the worst moment
    found = world.db.verify_base("orders")
    assert found.ok
    assert found.undecided == 1


def test_random_losses_are_mended(world: World) -> None:
    dice = random.Random(5)
    for _ in range(30):
        for _ in range(dice.randint(1, 8)):
            row, time = f"o{dice.randint(0, 9)}", dice.randint(1, 4)
            logged = dice.random() < 0.7
            if dice.random() < 0.3:
                world.delete(row, time, logged)
            else:
                world.put(row, dice.choice(["a", "b"]), dice.randint(0, 3), time, logged)
            if dice.random() < 0.05:
                world.base.truncate(SOURCE)
            if dice.random() < 0.3:
                world.db.catch_up()
        world.db.repair_base("orders")
        assert world.db.verify_base("orders").ok
        world.check_views()


def test_a_store_that_owns_its_tables_says_so() -> None:
    db = belvedere.open("memory:")
    db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
    for call in (db.verify_base, db.repair_base):
        with pytest.raises(BelvedereError, match="owns its tables"):
            call("t")
