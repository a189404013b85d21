"""What no log shows, on a real HBase: found row by row, and mended; views are then what HBase
answers.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.base_check import BaseVerification
from belvedere.epochs.local import LocalRunner
from belvedere.stores.hbase import jars
from belvedere.stores.hbase.local import Cluster
from tests.hbase.stores import namespace
from tests.hbase.test_maintained import adopt, check
from tests.hbase.users import User, Writer

pytestmark = pytest.mark.hbase


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    return User(cluster)


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Database]:
    with belvedere.open(cluster.url(namespace()), slots=2, grace=0) as opened:
        opened._runner = LocalRunner(opened.store)
        yield opened


def bulk_load(cluster: Cluster, place: Path, table: str, value: str, rows: list[str]) -> None:
    classes = [cluster.directory / "conf", jars.fetched("cluster") / "*"]
    command = [
        "java",
        "-Xmx256m",
        "-Dbelvedere.log=/dev/null",
        "-cp",
        os.pathsep.join(map(str, classes)),
    ]
    command += [str(Path(__file__).with_name("BulkLoad.java")), table, str(place), value, *rows]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def wrong(found: BaseVerification) -> set[tuple[str, str]]:
    return {(d.kind, (d.expected or d.found or {})["id"]) for d in found.differences}


def adopted(db: Database, user: User, table: str) -> None:
    user.create(table, splits=[b"m"])
    for number in range(30):
        user.put(table, b"%c%d" % (b"dt"[number % 2], number), a=str(number % 3), b="x")
    adopt(db, table)
    check(db, table)


def test_writes_without_a_log_are_found_and_mended(db: Database, user: User) -> None:
    adopted(db, user, "unlogged")
    assert db.verify_base("unlogged").rows == 30
    user.put_unlogged("unlogged", b"new", a="7")
    user.put_unlogged("unlogged", b"t3", b="changed")
    user.delete_unlogged("unlogged", b"d4")
    found = db.verify_base("unlogged")
    assert wrong(found) == {("missing", "new"), ("different", "t3"), ("extra", "d4")}
    assert db.repair_base("unlogged").counts == found.counts
    assert db.verify_base("unlogged").ok
    assert len(check(db, "unlogged")) == 30


def test_a_truncated_table_is_found_and_goes_on(db: Database, user: User) -> None:
    """Sequence ids of its regions begin anew."""
    adopted(db, user, "cut")
    for number in range(30):
        user.put("cut", b"d2", a=str(number))
    user.delete("cut", b"t1")
    check(db, "cut")
    user.truncate("cut")
    user.put("cut", b"d2", a="after", b="y")
    assert wrong(db.verify_base("cut")) >= {("extra", "t3"), ("different", "d2")}
    db.repair_base("cut")
    assert check(db, "cut") == [{"id": "d2", "a": "after", "b": "y"}]
    for row in (b"t1", b"t3", b"d2"):
        user.put("cut", row, a="more")
    assert len(check(db, "cut")) == 3
    assert db.verify_base("cut").ok


def test_a_bulk_load_is_found_and_mended(
    db: Database, user: User, cluster: Cluster, tmp_path: Path
) -> None:
    adopted(db, user, "loaded")
    bulk_load(cluster, tmp_path / "files", "loaded", "bulk", ["d2", "e1", "z9"])
    db.store.base.barrier()
    told = next(table for table in db.status().tables if table.name == "loaded")
    assert told.unchecked_loads == 2  # a marker for each region
    found = db.verify_base("loaded")
    assert wrong(found) == {("different", "d2"), ("missing", "e1"), ("missing", "z9")}
    db.repair_base("loaded")
    assert len(check(db, "loaded")) == 32
    assert not next(table for table in db.status().tables if table.name == "loaded").unchecked_loads


def test_writers_make_no_difference(db: Database, user: User) -> None:
    adopted(db, user, "busy")
    writer = Writer(user, "busy", [b"%c%d" % (first, i) for i in range(10) for first in b"dt"])
    user.put_unlogged("busy", b"lost", a="1")
    writer.start()
    try:
        found = db.verify_base("busy")
        assert wrong(found) == {("missing", "lost")}
        db.repair_base("busy")
        assert db.verify_base("busy").ok
    finally:
        writer.finish()
    check(db, "busy")
    assert db.verify_base("busy").undecided == 0
