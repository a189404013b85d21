"""Joins on real Spark: TPC-H views follow changes of every table, in narrow and in wide epochs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.bench import tpch
from belvedere.bench.scenarios.tpch import write
from belvedere.bench.tpch_changes import Reference, Stream, every_table
from belvedere.epochs.width import Fixed, Width
from belvedere.spark.runner import SparkRunner

pytestmark = [pytest.mark.spark, pytest.mark.slow]
QUERIES = ("q03", "q05", "q13")


@pytest.mark.parametrize("width", ["narrow", "wide"])
def test_joins_aggregates_and_top_k_follow_every_table(
    tmp_path: Path, spark: SparkSession, width: Fixed
) -> None:
    stream, reference = Stream(0.001), Reference()
    with belvedere.open(tmp_path / width, spark=spark, slots=2) as db:
        db._runner = SparkRunner(db.store, spark, Width(tasks=2, fixed=width))
        for table in tpch.TABLES:
            db.sql(tpch.create_table(table))
        for name in QUERIES:
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {tpch.query(name)}")
        for changes in (stream.load(), stream.step(every_table(20)), stream.step(every_table(20))):
            write(db, changes)
            reference.apply(changes)
            db.catch_up()
            wrong = {
                name: reference.difference(tpch.query(name), db.view(name).to_arrow())
                for name in QUERIES
            }
            assert not any(wrong.values()), wrong
        if width == "wide":
            assert db.verify("q05").ok
    reference.close()
