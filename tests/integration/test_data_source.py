"""Spark's `format("belvedere")`: what it reads is what readers see, what it follows is there once,
also if its driver is killed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import belvedere
from belvedere.data_source import register
from belvedere.waiting import wait_until
from tests.integration.test_kills import kill_session, start

STREAM = """
import sys
from belvedere.spark.session import session
spark = session("local[2]")
path, folder = sys.argv[1:3]
changes = spark.readStream.format("belvedere").option("db", path).option("changes", "true")
written = changes.option("consumer", "lake").load("v").writeStream.format("parquet")
query = written.option("checkpointLocation", folder + "/marks").option("path", folder + "/rows")
query = query.start()
query.processAllAvailable()
print("up to date", flush=True)
sys.stdin.readline()
"""


def rows(found: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


def fill(db: belvedere.Database, rest: int) -> None:
    db.table("t").put_many([{"id": i, "a": (i * (rest + 1)) % 13} for i in range(0, 300, rest + 1)])
    db.catch_up()


@pytest.fixture
def shop(db: belvedere.Database, spark: SparkSession, tmp_path: Path) -> str:
    # Spark looks for the source of a write in the active session of the JVM's thread, and the
    # thread of a new connection, after one that broke in another test, has none.
    sessions: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.setActiveSession(spark._jsparkSession)
    db.keep_history(epochs=100)
    db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    db.sql("CREATE MATERIALIZED VIEW bag AS SELECT a FROM t")
    fill(db, 0)
    return str(tmp_path / "shop")


def test_what_spark_reads_is_what_readers_see(
    db: belvedere.Database, shop: str, spark: SparkSession
) -> None:
    def read(name: str, **options: str) -> Counter[tuple[Any, ...]]:
        frame = spark.read.format("belvedere").option("db", shop).options(**options).load(name)
        return Counter(tuple(row) for row in frame.collect())

    epoch = db.status().epoch
    fill(db, 2)
    for name in ("v", "bag"):
        assert read(name) == rows(db.view(name).to_arrow())
    assert read("v", asOf=str(epoch)) == rows(db.view("v").to_arrow(as_of=epoch))
    assert read("t") == rows(db.table("t").to_arrow())
    amounts = Counter((row["a"],) for row in db.table("t").scan())
    assert read("t", columns="A") == amounts
    with pytest.raises(AnalysisException, match="v has no column 'x': it has a, n"):
        read("v", columns="n, x")
    with pytest.raises(AnalysisException, match="and no schema"):
        spark.read.format("belvedere").option("db", shop).schema("a INT").load("v").collect()
    frame = spark.range(1000, 1010).selectExpr("CAST(id AS INT) AS id", "7 AS a")
    frame.write.format("belvedere").option("db", shop).mode("append").save("t")
    assert db.table("t").get(1009) == {"id": 1009, "a": 7}
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    register(spark)
    try:
        source = spark.read.format("belvedere").option("db", shop).option("pushdown", "true")
        some = source.load("t").where("id >= 10 AND id < 13 AND a >= 0").collect()
        assert sorted(row.id for row in some) == [10, 11, 12]
        assert [row.id for row in source.load("t").where("id = 5").collect()] == [5]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    with pytest.raises(AnalysisException, match="has no option 'speed'"):
        read("v", speed="high")
    with pytest.raises(AnalysisException, match="there is no table or view nothing"):
        read("nothing")


def test_a_database_that_was_made_anew_is_another_one(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        shutil.rmtree(tmp_path / "shop", ignore_errors=True)
        with belvedere.open(tmp_path / "shop", slots=2) as db:
            db.sql(f"CREATE TABLE t{number} (id INT, PRIMARY KEY (id))")
            db.table(f"t{number}").put_many([{"id": i} for i in range(number + 1)])
            db.catch_up()
        read = spark.read.format("belvedere").option("db", str(tmp_path / "shop"))
        assert read.load(f"t{number}").count() == number + 1


def test_a_stream_is_written_into_a_table(
    db: belvedere.Database, shop: str, spark: SparkSession, tmp_path: Path
) -> None:
    db.sql("CREATE TABLE copy (a INT, n BIGINT, PRIMARY KEY (a))")
    changes = spark.readStream.format("belvedere").option("db", shop).option("changes", "true")
    added = changes.load("v").where("_weight > 0").select("a", "n")
    written = added.writeStream.format("belvedere").option("db", shop)
    query = written.option("checkpointLocation", str(tmp_path / "marks")).start("copy")
    query.processAllAvailable()
    query.stop()
    assert rows(db.table("copy").to_arrow()) == rows(db.view("v").to_arrow())
    frame = spark.sql("SELECT 1 AS a, 2L AS n").write.format("belvedere").option("db", shop)
    with pytest.raises(AnalysisException, match="for writes has no option 'columns'"):
        frame.option("columns", "a").mode("append").save("copy")


def batches(folder: Path) -> int:
    """How many have begun: Spark writes the offsets of each before it reads."""
    return sum(path.name.isdigit() for path in (folder / "marks" / "offsets").iterdir())


def has_begun(folder: Path, before: int) -> bool | None:
    return batches(folder) > before or None


def is_up_to_date(driver: subprocess.Popen[str]) -> bool:
    assert driver.stdout is not None
    return driver.stdout.readline() == "up to date\n"


def test_a_stream_whose_driver_is_killed_loses_nothing_and_has_nothing_twice(
    db: belvedere.Database, shop: str, spark: SparkSession, tmp_path: Path
) -> None:
    """When a batch has begun: the driver with its JVM and workers; the driver alone, so that they
    may go on with the batch beside the next driver.
    """
    folder = tmp_path / "lake"
    drivers = []
    try:
        for seed in (3, 4):
            drivers.append(start(STREAM, shop, folder))
            assert is_up_to_date(drivers[-1])
            begun = batches(folder)
            fill(db, seed)
            assert wait_until(partial(has_begun, folder, begun), 60)
            if seed == 3:
                kill_session(drivers.pop())
            else:
                drivers[-1].kill()
        drivers.append(start(STREAM, shop, folder))
        assert is_up_to_date(drivers[-1])
    finally:
        for driver in drivers:
            kill_session(driver)
    found = spark.read.parquet(str(folder / "rows")).groupBy("a", "n").sum("_weight").collect()
    total = {(row[0], row[1]): row[2] for row in found if row[2]}
    assert total == rows(db.view("v").to_arrow())
