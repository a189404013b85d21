"""Status of a database in HBase: servers, regions, capture, and rows that are not as declared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreError, ViewInError
from belvedere.stores.hbase.capture import Capture
from belvedere.stores.hbase.install import install
from belvedere.stores.hbase.local import Cluster
from tests.hbase.stores import namespace
from tests.hbase.users import User, quorum

pytestmark = pytest.mark.hbase


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    return User(cluster)


@pytest.fixture
def db(cluster: Cluster, user: User) -> Iterator[Database]:
    with belvedere.open(cluster.url(namespace()), slots=2, grace=0) as opened:
        opened._runner = LocalRunner(opened.store)
        yield opened


def adopt(db: Database, user: User, table: str) -> None:
    user.create(table, splits=[b"g", b"t"])
    db.sql(
        f"CREATE TABLE {table} (id STRING, a INT, b STRING, PRIMARY KEY (id))"
        f" USING hbase OPTIONS (table = '{table}', family = 'f', text = 'a')"
    )
    db.sql(f"CREATE MATERIALIZED VIEW {table}_sum AS SELECT b, sum(a) AS s FROM {table} GROUP BY b")
    db.sql(f"CREATE MATERIALIZED VIEW {table}_ids AS SELECT id, b FROM {table}")


def test_servers_regions_and_capture_are_shown(db: Database, user: User, cluster: Cluster) -> None:
    adopt(db, user, "shown")
    user.put("shown", b"x", a="1", b="k")
    db.catch_up()
    status = db.status()
    assert status.capture is not None
    assert (status.capture.state, status.capture.lag_operations) == ("enabled", 0)
    alive = [server for server in status.capture.servers if server.is_alive]
    assert len(alive) == 2
    assert sum(server.regions for server in alive) == 3
    (table,) = status.tables
    assert (table.source, table.regions, table.is_adopted, table.bulk_loads) == (
        "shown",
        3,
        True,
        0,
    )
    user.put("shown", b"y", a="2", b="k")
    db.store.base.barrier()
    behind = db.status().capture
    assert behind is not None
    assert behind.lag_operations == 1
    assert 0 < behind.lag_seconds < 600


def test_a_peer_that_is_disabled_or_removed_is_visible(
    db: Database, user: User, cluster: Cluster
) -> None:
    adopt(db, user, "peerless")
    db.catch_up()
    space = db.store.url.partition("?")[0].rsplit("/", 1)[1]
    capture = Capture(quorum(cluster), space)
    capture.disable()
    status = db.status()
    assert status.capture is not None
    assert status.capture.state == "disabled"
    assert "nothing is lost" in status.capture.advice
    with pytest.raises(StoreError, match="disabled"):
        db.catch_up()
    capture.uninstall()
    status = db.status()
    assert status.capture is not None
    assert status.capture.state == "missing"
    assert "hbase install" in status.capture.advice
    install(quorum(cluster), space, str(cluster.capture))


def test_cells_and_rows_that_are_not_as_declared_are_told(db: Database, user: User) -> None:
    adopt(db, user, "faulty")
    user.put("faulty", b"x", a="1", b="k")
    user.put("faulty", b"y", a="many", b="k")
    user.put("faulty", b"\xfe\xff", a="3", b="k")
    db.catch_up()
    (table,) = db.status().tables
    assert (table.left_out, table.left_out_example) == (1, "\\xfe\\xff")
    assert [(f.column, f.rows, f.example["id"]) for f in table.faults] == [("a", 1, "y")]
    assert sorted(row["id"] for row in db.view("faulty_ids").scan()) == ["x", "y"]
    with pytest.raises(ViewInError, match="the cell of a is no int"):
        db.view("faulty_sum").get("k")
    user.put("faulty", b"y", a="2")
    user.delete("faulty", b"\xfe\xff")
    db.catch_up()
    assert db.view("faulty_sum").get("k") == {"b": "k", "s": 3}
    (table,) = db.status().tables
    assert (table.left_out, table.faults) == (0, ())
