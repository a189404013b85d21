"""The data source as Spark calls it, without Spark: what it refuses, and which columns it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

import belvedere
from belvedere.data_source import BelvedereSource
from belvedere.epochs.local import LocalRunner
from belvedere.errors import SchemaError

FIELDS = {"a": IntegerType(), "n": LongType()}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "shop")
    with belvedere.open(path, slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        db.table("t").put_many([{"id": i, "a": i % 3} for i in range(10)])
        db.catch_up()
        yield path


def source(shop: str, **options: str) -> BelvedereSource:
    return BelvedereSource(CaseInsensitiveDict({"db": shop, "path": "v", **options}))


def schema(*names: str) -> StructType:
    return StructType([StructField(name, FIELDS[name]) for name in names])


def read(found: BelvedereSource, *names: str) -> list[dict[str, Any]]:
    reader = found.reader(schema(*names))
    batches: list[Any] = [b for part in reader.partitions() for b in reader.read(part)]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    return sorted((row for b in batches for row in b.to_pylist()), key=repr)


def test_only_the_columns_that_are_asked_for_are_given_in_their_order(shop: str) -> None:
    assert source(shop).schema() == "`a` int, `n` bigint"
    assert read(source(shop), "a", "n") == [{"a": 0, "n": 4}, {"a": 1, "n": 3}, {"a": 2, "n": 3}]
    some = source(shop, columns="N, a")
    assert some.schema() == "`n` bigint, `a` int"
    assert [list(row) for row in read(some, "n", "a")] == [["n", "a"]] * 3
    assert read(source(shop, columns="n"), "n") == [{"n": 3}, {"n": 3}, {"n": 4}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "n, x"}, "v has no column 'x': it has a, n"),
        ({"columns": "n, n"}, "names n twice"),
        ({"columns": ""}, "v has no column ''"),
        ({"speed": "high"}, "has no option 'speed': the options are db, path, asOf"),
        ({"since": "3"}, "the format for reads has no option 'since'"),
        ({"checkpointLocation": "x"}, "for reads has no option 'checkpointlocation'"),
    ],
)
def test_what_a_read_would_not_obey_is_refused(
    shop: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(SchemaError, match=said):
        source(shop, **options).reader(schema("a", "n"))


def test_a_schema_and_options_of_other_uses_are_refused(shop: str) -> None:
    with pytest.raises(SchemaError, match="and no schema"):
        source(shop).reader(schema("a"))
    stream = source(shop, changes="true", columns="a")
    with pytest.raises(SchemaError, match="for streams of changes has no option 'columns'"):
        stream.streamReader(schema("a"))
    written = source(shop, path="t", columns="a")
    with pytest.raises(SchemaError, match="for writes has no option 'columns'"):
        written.writer(schema("a"), False)
    source(shop, path="t", checkpointLocation="x").streamWriter(schema("a"), False)
