"""What docs/hbase.md shows: its statements run, and other clients read a view as it says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import SqlError
from belvedere.stores.hbase import jars
from belvedere.stores.hbase.local import Cluster, create_table
from belvedere.stores.hbase.store import HBaseStore
from tests.hbase.stores import namespace
from tests.hbase.users import quorum
from tests.integration.test_docs import DOCS, blocks

pytestmark = pytest.mark.hbase

PAGE, EXAMPLE = DOCS / "hbase.md", DOCS / "examples" / "ReadView.java"
ORDERS = [
    {"id": "o1", "region": "emea", "amount": 30},
    {"id": "o2", "region": "emea", "amount": 5},
    {"id": "o3", "region": "a\0z", "amount": None},
    {"id": "o4", "region": "gone", "amount": 7},
]


def shown(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Database]:
    """With the tables and views of the page."""
    create_table(cluster.url(), "shop:orders", "d")
    with belvedere.open(cluster.url(namespace()), slots=2, grace=0) as opened:
        opened._runner = LocalRunner(opened.store)
        for statements in shown("sql"):
            opened.sql(statements)
        yield opened


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("classes")
    libraries = f"{jars.fetched('client')}/*"
    subprocess.run(["javac", "-d", str(made), "-cp", libraries, str(EXAMPLE)], check=True)
    return made


def read_with_java(db: Database, cluster: Cluster, classes: Path) -> list[str]:
    assert isinstance(db.store, HBaseStore)
    space = db.store.address.namespace
    (table,) = [n for n in db.store.client.tables.names(space) if n.startswith("revenue.")]
    command = ["java", "-cp", f"{classes}:{jars.fetched('client')}/*", "ReadView"]
    command += [quorum(cluster), f"{space}:{table}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_another_client_reads_a_view_as_of_the_committed_epoch(
    db: Database, cluster: Cluster, classes: Path
) -> None:
    """NULL, a deleted row, a zero byte in a key, and columns that became NULL."""
    orders = db.table("orders")
    orders.put_many(ORDERS)
    db.catch_up()
    assert sorted(read_with_java(db, cluster, classes)) == [
        "region=a\0z orders=1 total=null",
        "region=emea orders=2 total=35",
        "region=gone orders=1 total=7",
    ]
    orders.delete("o4")
    orders.put({"id": "o1", "region": "emea", "amount": None})
    orders.put({"id": "o2", "region": "emea", "amount": None})
    db.catch_up()
    assert sorted(read_with_java(db, cluster, classes)) == [
        "region=a\0z orders=1 total=null",
        "region=emea orders=2 total=null",
    ]


def test_update_and_delete_are_refused(db: Database) -> None:
    for statement in ("UPDATE orders SET amount = 1", "DELETE FROM orders"):
        with pytest.raises(SqlError, match="foreign table"):
            db.sql(statement)
