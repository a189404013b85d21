"""Real Spark for all tests of a process, and databases in temporary directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import belvedere
from belvedere.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    made = session("local[2]")
    yield made
    made.stop()


@pytest.fixture
def db(tmp_path: Path, spark: SparkSession) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "shop", spark=spark) as opened:
        yield opened
