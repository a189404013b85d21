"""Views over users' tables in a real HBase: captured, adopted while they change, maintained, and
equal to what HBase itself answers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.stores.hbase.install import install, uninstall
from belvedere.stores.hbase.local import Cluster
from tests.hbase.stores import namespace
from tests.hbase.users import Mutation, User, Writer, quorum

pytestmark = pytest.mark.hbase

COPY = "SELECT id, a, b FROM {table}"
GROUPED = "SELECT a, count(*) AS n, max(b) AS most FROM {table} GROUP BY a"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    return User(cluster)


@pytest.fixture(scope="module")
def db(cluster: Cluster) -> Iterator[Database]:
    with belvedere.open(cluster.url(namespace()), slots=2, grace=0) as opened:
        opened._runner = LocalRunner(opened.store)
        yield opened


def adopt(db: Database, table: str) -> None:
    db.sql(
        f"CREATE TABLE {table} (id STRING, a STRING, b STRING, PRIMARY KEY (id))"
        f" USING hbase OPTIONS (table = '{table}', family = 'f')"
    )
    for view, select in (("copy", COPY), ("grouped", GROUPED)):
        db.sql(f"CREATE MATERIALIZED VIEW {table}_{view} AS {select.format(table=table)}")


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def check(db: Database, table: str) -> list[Row]:
    """Both views are what HBase answers now; nobody writes meanwhile."""
    db.catch_up()
    rows = list(db.table(table).scan())
    assert in_order(list(db.view(f"{table}_copy").scan())) == in_order(rows)
    grouped = db.sql(GROUPED.format(table=table)).to_arrow().to_pylist()
    assert in_order(list(db.view(f"{table}_grouped").scan())) == in_order(grouped)
    return rows


def random_mutation(dice: random.Random) -> list[Mutation]:
    """Few columns and time stamps, so that puts and markers meet, also backwards in time."""
    kinds = ["put"] * 6 + ["version", "column", "family", "family version"]
    found: dict[tuple[str, bytes, int], Mutation] = {}
    for _ in range(dice.randint(1, 3)):
        kind, column = dice.choice(kinds), dice.choice([b"a", b"b"])
        place = b"" if kind.startswith("family") else column
        value = bytes([dice.choice(b"xyz")]) if kind == "put" else b""
        time_stamp = dice.randint(1, 3)
        found[kind, place, time_stamp] = (kind, place, time_stamp, value)
    return list(found.values())


def test_all_kinds_of_puts_and_deletes_are_as_the_table_shows_them(
    db: Database, user: User
) -> None:
    """Also what was there before the table was adopted, and markers that hide what comes later."""
    dice = random.Random(7)
    rows = [b"r%d" % i for i in range(40)]
    user.create("cells")
    for _ in range(150):
        user.mutate("cells", dice.choice(rows), random_mutation(dice))
    adopt(db, "cells")
    shown = 0
    for _ in range(6):
        for _ in range(40):
            user.mutate("cells", dice.choice(rows), random_mutation(dice))
        shown += len(check(db, "cells"))
    assert shown > 20


def test_a_table_is_adopted_while_it_is_written(db: Database, user: User) -> None:
    user.create("live", splits=[b"m"])
    writers = [Writer(user, "live", [b"%c%d" % (first, i) for i in range(20)]) for first in b"dt"]
    for writer in writers:
        writer.start()
    try:
        adopt(db, "live")
        for _ in range(5):
            db.catch_up()
    finally:
        done = [writer.finish() for writer in writers]
    rows = {row["id"]: row["a"] for row in check(db, "live")}
    for row, count in (pair for each in done for pair in each.items()):
        assert rows.get(row.decode()) == (None if count % 7 == 0 else str(count))


def test_views_are_right_while_servers_die_and_regions_move(
    db: Database, user: User, cluster: Cluster
) -> None:
    user.create("moving", splits=[b"m", b"x"])
    adopt(db, "moving")
    writer = Writer(user, "moving", [b"%c%d" % (first, i) for i in range(10) for first in b"dt"])
    writer.start()
    try:
        db.catch_up()
        for region in user.regions("moving"):
            user.move("moving", region)
        db.catch_up()
        first, *others = sorted(user.regions("moving"), key=lambda each: bytes(each.getStartKey()))
        user.merge(*others)
        db.catch_up()
        user.split(first, b"d5")
        db.catch_up()
        cluster.kill("region-server-2")
        cluster.start("region-server-2")
        db.catch_up()
    finally:
        done = writer.finish()
    rows = {row["id"]: row["a"] for row in check(db, "moving")}
    for row, count in done.items():
        assert rows.get(row.decode()) == (None if count % 7 == 0 else str(count))


def test_what_is_delivered_again_is_in_the_log_twice_and_in_views_once(
    cluster: Cluster, user: User, tmp_path: Path
) -> None:
    """Epochs are as small as they can be, so that what comes again comes in a later one."""
    name, settings = namespace(), ["belvedere.capture.redeliver", "20"]
    install(quorum(cluster), name, str(tmp_path), settings)
    dice = random.Random(11)
    user.create("twice")
    url = f"hbase://{quorum(cluster)}/{name}?capture={tmp_path}"
    with belvedere.open(url, slots=2, grace=0) as db:
        db._runner = LocalRunner(db.store)
        adopt(db, "twice")
        for _ in range(5):
            for _ in range(8):
                user.mutate("twice", b"r%d" % dice.randint(0, 5), random_mutation(dice))
            db.catch_up(max_rows=1)
            check(db, "twice")
        assert db.store.base.end()["log"] > 5 * 8
    uninstall(quorum(cluster), name)


def test_a_session_reads_its_own_puts(db: Database, user: User) -> None:
    user.create("own")
    adopt(db, "own")
    db.catch_up()
    pipeline = db.start()
    try:
        with db.session(timeout=60) as session:
            for number in range(3):
                session.table("own").put({"id": "x", "a": str(number), "b": None})
                assert session.view("own_copy").get("x") == {"id": "x", "a": str(number), "b": None}
            user.put("own", b"y", a="foreign")
            session.wrote()
            assert session.view("own_copy").get("y") == {"id": "y", "a": "foreign", "b": None}
    finally:
        pipeline.stop()


def test_a_dropped_table_stays_in_hbase(db: Database, user: User) -> None:
    user.create("kept")
    user.put("kept", b"x", a="1")
    adopt(db, "kept")
    check(db, "kept")
    for view in ("copy", "grouped"):
        db.sql(f"DROP MATERIALIZED VIEW kept_{view}")
    db.sql("DROP TABLE kept")
    adopt(db, "kept")
    assert check(db, "kept") == [{"id": "x", "a": "1", "b": None}]
