"""Cells that are not what the table is declared to be put the views that use them in error, and
rows whose key is none are counted; both until somebody corrects them.
"""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import belvedere
from belvedere.cli.status import shown
from belvedere.database import Database
from belvedere.errors import ViewInError
from belvedere.status import prometheus
from belvedere.stores.base import DELETE_FAMILY, PUT
from belvedere.stores.memory.foreign import Cell, ForeignBase
from belvedere.stores.memory.rows import RowRules

SOURCE = "shop:orders"
VIEWS = {
    "totals": "SELECT region, sum(amount) AS total FROM orders GROUP BY region",
    "regions": "SELECT region, count(*) AS n FROM orders GROUP BY region",
    "joined": "SELECT a.id AS id, b.amount AS amount FROM orders a JOIN orders b ON a.id = b.region",
    "large": "SELECT id FROM orders WHERE amount > 5",
}


class World:
    def __init__(self, key: str = "id INT") -> None:
        self.db: Database = belvedere.open("memory:", foreign=True, rows=RowRules(), slots=3)
        assert isinstance(self.db.store.base, ForeignBase)
        self.base = self.db.store.base
        self.base.sources[SOURCE] = {}
        self.db.sql(
            f"CREATE TABLE orders ({key}, region STRING NOT NULL, amount BIGINT, PRIMARY KEY (id))"
            f" USING hbase OPTIONS (table = '{SOURCE}', family = 'd')"
        )

    def views(self) -> None:
        for name, select in VIEWS.items():
            self.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {select}")

    def put(self, row: bytes, time: int = 1, **values: bytes) -> None:
        cells = [Cell(b"d", name.encode(), PUT, time, value) for name, value in values.items()]
        self.base.mutate(SOURCE, row, cells)

    def in_error(self) -> set[str]:
        self.db.catch_up()
        return {view.name for view in self.db.status().views if view.state == "in error"}


@pytest.fixture
def world() -> World:
    made = World("id STRING")
    made.views()
    made.put(b"a", region=b"emea", amount=bytes(8))
    return made


def test_a_cell_that_is_not_of_its_type_is_an_error_of_the_views_that_use_it(world: World) -> None:
    assert world.in_error() == set()
    world.put(b"a", time=2, amount=b"seven")
    assert world.in_error() == {"totals", "joined", "large"}
    assert world.db.view("regions").get("emea") == {"region": "emea", "n": 1}
    with pytest.raises(ViewInError, match="'id': 'a', 'expression': 'the cell of amount is no big"):
        world.db.view("totals").get("emea")
    world.put(b"a", time=3, amount=(7).to_bytes(8, "big"))
    assert world.in_error() == set()
    assert world.db.view("totals").get("emea") == {"region": "emea", "total": 7}


def test_a_column_that_is_not_null_and_has_no_cell_is_an_error(world: World) -> None:
    world.put(b"b", amount=bytes(8))
    assert world.in_error() == {"totals", "regions", "joined"}
    with pytest.raises(ViewInError, match="region is NULL, and declared NOT NULL"):
        world.db.view("totals").scan().__next__()
    world.base.mutate(SOURCE, b"b", [Cell(b"d", b"", DELETE_FAMILY, 5)])
    assert world.in_error() == set()


def test_views_that_come_later_know_of_wrong_cells() -> None:
    world = World("id STRING")
    world.put(b"a", region=b"emea", amount=b"?")
    world.db.catch_up()
    world.views()
    assert world.in_error() == {"totals", "joined", "large"}


def test_a_repair_of_the_picture_takes_errors_back(world: World) -> None:
    world.put(b"a", time=2, amount=b"seven")
    assert world.in_error()
    world.base.truncate(SOURCE)
    world.db.repair_base("orders")
    assert world.in_error() == set()


def test_rows_whose_key_is_none_are_counted_and_in_no_view() -> None:
    world = World("id INT")
    world.db.sql("CREATE MATERIALIZED VIEW copy AS SELECT id, region FROM orders")
    for row in (b"header", b"x" * 2000, (1).to_bytes(4, "big")):
        world.put(row, region=b"emea", amount=bytes(8))
    assert world.in_error() == set()
    (table,) = world.db.status().tables
    assert table.left_out == 2
    assert table.left_out_example.startswith(("header", "xxx"))
    assert [row["id"] for row in world.db.view("copy").scan()] == [1]
    assert world.db.verify_base("orders").ok
    world.base.mutate(SOURCE, b"header", [Cell(b"d", b"", DELETE_FAMILY, 5)])
    world.db.catch_up()
    assert world.db.status().tables[0].left_out == 1


def test_status_tells_wrong_cells_with_an_example(world: World) -> None:
    world.put(b"a", time=2, amount=b"seven")
    world.db.catch_up()
    (table,) = world.db.status().tables
    (column,) = table.faults
    assert (column.column, column.rows) == ("amount", 1)
    assert column.example == {"id": "a", "expression": "the cell of amount is no bigint"}


def test_a_bulk_load_is_told_until_the_picture_is_right(world: World) -> None:
    world.db.catch_up()
    cells = [Cell(b"d", b"region", PUT, 1, b"apac")]
    world.base.bulk_load(SOURCE, b"z", cells)
    status = world.db.status()
    assert (status.tables[0].bulk_loads, status.tables[0].unchecked_loads) == (1, 1)
    assert all("verify --base orders --repair" in view.advice for view in status.views)
    world.db.repair_base("orders")
    status = world.db.status()
    assert (status.tables[0].bulk_loads, status.tables[0].unchecked_loads) == (1, 0)
    assert not any(view.advice for view in status.views)


def test_status_is_shown_with_what_is_wrong_and_what_to_do(world: World) -> None:
    world.put(b"a", time=2, amount=b"seven")
    world.base.bulk_load(SOURCE, b"z", [Cell(b"d", b"region", PUT, 1, b"apac")])
    world.db.catch_up()
    out = Console(file=io.StringIO(), width=200, record=True)
    out.print(shown(world.db.status(), 0))
    text = out.export_text()
    assert "capture is enabled: 0 captured operations not in the views" in text
    assert "orders: in 1 row the cell of amount is no bigint, as in id=a" in text
    assert "run belvedere verify --base orders --repair --yes" in text
    measured = prometheus(world.db.status())
    assert 'belvedere_table_wrong_cells{column="amount",table="orders"} 1.0' in measured
    assert "belvedere_capture_enabled 1.0" in measured
