"""Epochs on real Spark: narrow and wide, with views that come and go while rows are written."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.epochs.width import Width
from belvedere.errors import CatalogError, Timeout, ViewInError, ViewNotReady
from belvedere.spark.runner import SparkRunner
from tests.integration import shop


@pytest.mark.parametrize("before_images", ["true", "false"])
def test_views_follow_inserts_updates_and_deletes(
    db: belvedere.Database, before_images: str
) -> None:
    db.sql(f"{shop.TABLE} WITH (before_images = {before_images})")
    shop.create(db)
    orders = db.table("orders")
    for seed in range(3):
        orders.put_many(shop.rows(3000, seed))
        orders.delete_many([f"o{i}" for i in range(seed * 500, seed * 500 + 400)])
        db.catch_up()
        shop.check(db)


def test_a_wide_epoch_and_a_narrow_one_write_the_same(tmp_path: Path, spark: SparkSession) -> None:
    contents = []
    for width in ("narrow", "wide"):
        with belvedere.open(tmp_path / width, spark=spark, slots=2) as db:
            db._runner = SparkRunner(db.store, spark, Width(tasks=2, fixed=width))
            db.sql(shop.TABLE)
            shop.create(db)
            for seed in range(2):
                db.table("orders").put_many(shop.rows(4000, seed))
                db.catch_up()
            shop.check(db)
            contents.append(
                {
                    name: sorted(map(repr, db.view(name).to_arrow().to_pylist()))
                    for name in shop.VIEWS
                }
            )
    assert contents[0] == contents[1]


def test_views_are_created_replaced_and_dropped_while_rows_are_written(
    db: belvedere.Database,
) -> None:
    db.sql(shop.TABLE)
    db.table("orders").put_many(shop.rows(2000, 0))
    pipeline = db.start(max_rows=700)
    stop = threading.Event()

    def write() -> None:
        seed = 1
        while not stop.wait(0.05):  # paced: views are built in small steps on purpose
            db.table("orders").put_many(shop.rows(20, seed))
            seed += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        shop.create(db)
        db.sql(
            "CREATE MATERIALIZED VIEW doomed AS SELECT status, count(*) AS n FROM orders GROUP BY"
            " status"
        )
        db.catch_up(timeout=120)
        db.sql("DROP MATERIALIZED VIEW doomed")
        db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW paid AS {shop.VIEWS['paid']}")
        # the old one is read until the new one is live
        assert db.view("paid").get("no such order") is None
        db.catch_up(timeout=120)
    finally:
        stop.set()
        writer.join()
    db.catch_up(timeout=120)
    shop.check(db)
    with pytest.raises(CatalogError, match="there is no view doomed"):
        db.view("doomed")
    pipeline.stop()
    assert all(db.verify(name).ok for name in ("revenue", "by_region", "statuses"))


def test_a_session_reads_its_own_writes_and_says_how_far_the_views_got(
    db: belvedere.Database,
) -> None:
    db.sql(shop.TABLE)
    shop.create(db)
    db.catch_up()
    with db.session(timeout=0.2) as s:
        s.table("orders").put({"id": "mine", "region": "emea", "status": "paid", "amount": 7})
        with pytest.raises(Timeout, match="1 operation") as waited:
            s.view("paid").get("mine")
        assert waited.value.reached in ({}, {"log": 0})
    pipeline = db.start()
    with db.session() as s:
        for amount in range(5):
            s.table("orders").put(
                {"id": "mine", "region": "emea", "status": "paid", "amount": amount}
            )
            assert s.view("paid").get("mine") == {"id": "mine", "amount": amount}
            assert s.sql("SELECT total FROM revenue").to_pylist() == [{"total": amount}]
    pipeline.stop()


def test_a_view_in_error_names_its_rows_and_recovers_while_others_go_on(
    db: belvedere.Database,
) -> None:
    db.sql(shop.TABLE)
    shop.create(db, {"paid": shop.VIEWS["paid"]})
    db.sql("CREATE MATERIALIZED VIEW shares AS SELECT id, 100 / amount AS share FROM orders")
    with pytest.raises(ViewNotReady, match="catch_up"):
        db.view("shares").get("o1")
    orders = db.table("orders")
    orders.put_many(
        [{"id": f"o{i}", "region": "emea", "status": "paid", "amount": i} for i in range(3)]
    )
    db.catch_up()
    with pytest.raises(ViewInError) as raised:
        db.view("shares").to_arrow()
    assert raised.value.rows == [{"id": "o0", "expression": "100 / amount"}]
    assert db.view("paid").get("o0") == {"id": "o0", "amount": 0}
    orders.put({"id": "o0", "region": "emea", "status": "paid", "amount": 50})
    db.catch_up()
    assert db.view("shares").get("o0") == {"id": "o0", "share": 2.0}


def test_a_damaged_view_is_found_and_exactly_the_wrong_rows_are_repaired(
    db: belvedere.Database,
) -> None:
    db.sql(shop.TABLE)
    shop.create(db)
    db.table("orders").put_many(shop.rows(1000, 3))
    db.catch_up()
    shop.damage(db, "revenue")
    shop.damage(db, "statuses")
    found = db.verify("revenue")
    assert not found.ok
    assert sum(found.counts.values()) == 1
    assert not db.verify("statuses").ok
    db.repair("revenue")
    db.repair("statuses")
    assert db.verify("revenue").ok
    assert db.verify("statuses").ok
    shop.check(db)
    db.table("orders").put_many(shop.rows(500, 4))
    db.catch_up()
    shop.check(db)


def test_a_view_is_verified_whatever_its_columns_are_called(db: belvedere.Database) -> None:
    db.sql("CREATE TABLE z (d DOUBLE PRIMARY KEY, v INT)")
    db.table("z").put_many([{"d": i / 4, "v": i % 3} for i in range(20)] + [{"d": -0.0, "v": 7}])
    selects = (
        "SELECT v AS times FROM z",
        "SELECT a.d, a.v, b.v AS w FROM z a JOIN z b ON a.d = b.d",
        "SELECT v AS `a, b`, count(*) AS _here, max(d) AS kind FROM z GROUP BY v",
        "SELECT d, v AS c0, v + 1 AS `e.f` FROM z",
    )
    for number, select in enumerate(selects):
        db.sql(f"CREATE MATERIALIZED VIEW v{number} AS {select}")
    db.catch_up()
    assert [db.verify(f"v{number}").ok for number in range(len(selects))] == [True] * len(selects)
