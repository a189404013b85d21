"""An epoch that fails in Spark says why: the cause itself, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.errors import PipelineError


def test_a_store_without_room_for_a_view_says_so_and_goes_on_with_room(
    tmp_path: Path, spark: SparkSession
) -> None:
    with belvedere.open(
        tmp_path / "d", spark=spark, slots=2, map_size=4 << 20, max_size=4 << 20
    ) as db:
        db.sql(
            "CREATE TABLE a (id INT PRIMARY KEY, g INT, s STRING); CREATE TABLE b (id INT PRIMARY"
            " KEY, g INT)"
        )
        for table in ("a", "b"):
            db.table(table).put_many(
                [
                    {"id": i, "g": i % 2, **({"s": "x" * 50} if table == "a" else {})}
                    for i in range(600)
                ]
            )
        db.sql(
            "CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.id AS other, s FROM a JOIN b ON a.g"
            " = b.g"
        )
        with pytest.raises(
            PipelineError,
            match=r"^epoch \d+ found no room: .*(full|room).* Nothing is lost: make room",
        ):
            db.catch_up()
    with belvedere.open(tmp_path / "d", spark=spark) as db:
        db.catch_up()
        assert db.sql("SELECT count(*) AS n FROM pairs").to_pylist() == [{"n": 2 * 300 * 300}]
