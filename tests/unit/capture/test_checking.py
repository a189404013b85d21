"""verify --base over sources: exactly the rows that are wrong are found, while others write."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from belvedere.capture.images import encode_keys, encode_rows
from belvedere.capture.operations import made
from belvedere.catalog.definitions import TableDefinition
from belvedere.database import Database
from belvedere.errors import BelvedereError
from belvedere.libraries import pa
from belvedere.sources.base import Answer, Question
from belvedere.sources.registry import register
from tests.unit.capture.scripted import ScriptedSource, Server
from tests.unit.capture.test_keeping import CUSTOMERS, LONG, ORDERS, expected, opened, shown
from tests.unit.capture.test_keeping import _servers as servers

VIEW = (
    "CREATE MATERIALIZED VIEW w WITH (algorithm = 'asof') AS SELECT o.id, upper(c.name) AS name,"
    " o.amount FROM shop.orders o JOIN crm.customers c ON o.customer = c.id WHERE o.amount > 10"
)
PLAIN = "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, sum(amount) AS s FROM shop.orders"


class Busy(ScriptedSource):
    """Between any two questions somebody writes; queries may see it later than the log has it."""

    def __init__(self, server: Server, chance: random.Random) -> None:
        super().__init__(server)
        self.chance, self.is_busy = chance, False

    def position(self) -> str:
        self.server.show()
        self.server.deliver()
        return super().position()

    def ask(self, questions: Sequence[Question]) -> Answer:
        if _busy:
            change(self.chance, self.server, range(10, 13))
            self.server.deliver()
        return super().ask(questions)


_busy: list[bool] = []
register("busy", lambda name, options: Busy(servers[options["server"]], random.Random(name)))


def change(chance: random.Random, server: Server, numbers: range) -> None:
    number = chance.choice(numbers)
    for relation in server.schemas:
        row: dict[str, Any] | None = {"id": number, "name": chance.choice("abc")}
        if relation == "orders":
            customer, amount = chance.randrange(4), chance.randrange(30)
            row = {"id": number, "customer": customer, "amount": amount}
        if chance.random() < 0.3:
            row = None
        server.commit({relation: {number: row}}, chance.random() < 0.4)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    _busy.clear()
    servers["shop"], servers["crm"] = Server({"orders": ORDERS}), Server({"customers": CUSTOMERS})
    orders: dict[Any, Any] = {i: {"id": i, "customer": i % 4, "amount": 20 + i} for i in range(6)}
    servers["shop"].commit({"orders": orders})
    servers["crm"].commit({"customers": {i: {"id": i, "name": "abcd"[i]} for i in range(4)}})
    with opened(tmp_path / "db") as found:
        for name in servers.keys() & {"shop", "crm"}:
            found.sql(f"CREATE SOURCE {name} TYPE busy OPTIONS (server = '{name}', copy = '*')")
        yield found


def maintained(db: Database, view: str) -> Database:
    db.sql(view)
    db.catch_up(timeout=LONG)
    return db


def put(db: Database, table: TableDefinition, rows: list[dict[str, Any]]) -> None:
    """What nobody but the follower does."""
    data = pa.Table.from_pylist(rows, schema=table.schema.arrow)
    db.store.base.write_all([made(table, *encode_rows(table, data, None))])


def delete(db: Database, table: TableDefinition, rows: list[dict[str, Any]]) -> None:
    keys = encode_keys(table, pa.Table.from_pylist(rows, schema=table.schema.arrow))
    db.store.base.write_all([made(table, keys, pa.nulls(len(keys), pa.binary()))])


def total(db: Database) -> dict[str, Any]:
    orders = servers["shop"].rows["orders"].values()
    return {"n": len(orders), "s": sum(o["amount"] for o in orders)}


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_relation_is_compared_with_its_source_and_mended(db: Database, is_busy: bool) -> None:
    maintained(db, PLAIN)
    _busy.extend([True] * is_busy)
    assert db.verify_base("shop.orders").ok
    table = db.state().table("shop.orders")
    put(db, table, [{"id": 1, "customer": 1, "amount": -7}, {"id": 77, "customer": 1, "amount": 1}])
    delete(db, table, [{"id": 3}])
    found = db.verify_base("shop.orders")
    wrong = {(d.kind, (d.found or d.expected or {})["id"]) for d in found.differences}
    assert wrong == {("different", 1), ("extra", 77), ("missing", 3)}
    assert found.counts == {"different": 1, "extra": 1, "missing": 1}
    assert not db.repair_base("shop.orders").ok
    assert db.verify_base("shop.orders").ok
    _busy.clear()
    db.catch_up(timeout=LONG)
    assert db.view("total").get() == total(db)


@pytest.mark.parametrize("is_busy", [False, True])
def test_the_joined_rows_of_a_view_are_compared_with_its_sources(
    db: Database, is_busy: bool
) -> None:
    maintained(db, VIEW)
    _busy.extend([True] * is_busy)
    assert db.verify_base("w").ok
    table = db.state().table("w__joined")
    with db.store.base.snapshot() as snapshot:
        (keys, _), *_ = snapshot.scan(table.id)
    db.store.base.write_all([made(table, keys[:2], pa.nulls(2, pa.binary()))])
    found = db.verify_base("w")
    assert found.counts == {"missing": 2}
    assert db.repair_base("w").counts == {"missing": 2}
    assert db.verify_base("w").ok
    assert shown(db) == expected() or is_busy
    _busy.clear()
    db.catch_up(timeout=LONG)
    assert shown(db) == expected()


def test_what_has_no_other_side_is_refused(db: Database) -> None:
    maintained(db, PLAIN).sql("CREATE TABLE t (id BIGINT, PRIMARY KEY (id))")
    for name in ("t", "total"):
        with pytest.raises(BelvedereError, match=r"owns its tables|there is no table"):
            db.verify_base(name)
