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
from belvedere.catalog import layout
from belvedere.data_source import BelvedereSource
from belvedere.epochs.local import LocalRunner
from belvedere.errors import CatalogError, HistoryGone, SchemaError, Stale, ViewInError

FIELDS = {"a": IntegerType(), "n": LongType()}


COUNTS = "SELECT a, count(*) AS n FROM t GROUP BY a"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "shop", slots=2) as db:
        db._runner = LocalRunner(db.store)
        db.sql("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
        db.sql(f"CREATE MATERIALIZED VIEW v AS {COUNTS}")
        db.table("t").put_many([{"id": i, "a": i % 3} for i in range(10)])
        db.catch_up()
        yield db


@pytest.fixture
def shop(db: belvedere.Database, tmp_path: Path) -> str:
    return str(tmp_path / "shop")


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


# ---------------------------------------------------------------- while a read or stream is under way


def put(db: belvedere.Database, number: int, a: int) -> None:
    db.table("t").put({"id": number, "a": a})
    db.catch_up()


def renew(db: belvedere.Database, how: str) -> None:
    """Another view has the name, or none has it."""
    if how == "replaced":
        db.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT a, sum(id) AS n FROM t GROUP BY a")
    else:
        db.sql("DROP MATERIALIZED VIEW v")
    for number in range(20, 30):
        put(db, number, 7)


@pytest.mark.parametrize("how", ["replaced", "dropped"])
def test_a_read_shows_the_view_that_it_was_planned_over(
    db: belvedere.Database, shop: str, how: str
) -> None:
    reader = source(shop).reader(schema("a", "n"))
    first, second = reader.partitions()
    wanted = sorted(db.view("v").scan(), key=repr)
    batches: list[Any] = list(reader.read(first))
    renew(db, how)
    batches += reader.read(second)
    assert sorted((row for b in batches for row in b.to_pylist()), key=repr) == wanted


def test_a_read_that_is_too_late_says_how_to_hold_longer(db: belvedere.Database, shop: str) -> None:
    reader = source(shop, hold="0").reader(schema("a", "n"))
    first, _ = reader.partitions()
    for number in range(30):
        put(db, number, 7)
    with pytest.raises(Stale, match="give option\\('hold', SECONDS\\)"):
        list(reader.read(first))


def stream(shop: str, **options: str) -> Any:
    found = source(shop, changes="true", **options)
    return found.streamReader(schema("a", "n"))


def changes(reader: Any, start: dict[str, int], end: dict[str, int]) -> list[Any]:
    batches: list[Any] = [b for p in reader.partitions(start, end) for b in reader.read(p)]
    return sorted((tuple(row.values()) for b in batches for row in b.to_pylist()), key=repr)


def pin_count(db: belvedere.Database) -> int:
    return db.store.catalog.read(lambda t: len(layout.PINS.all(t)))


@pytest.mark.parametrize("how", ["replaced", "dropped"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_batch_of_a_view_that_is_no_more_is_refused_and_not_empty(
    db: belvedere.Database, shop: str, how: str, restarted: bool
) -> None:
    db.keep_history(epochs=100)
    reader = stream(shop)
    none = reader.initialOffset()
    all_rows = reader.latestOffset(none, None)
    assert changes(reader, none, all_rows)
    put(db, 10, 7)
    later = reader.latestOffset(all_rows, None)
    assert changes(reader, all_rows, later) == [(7, 1, later["epoch"], 1)]
    renew(db, how)
    if restarted and how == "replaced":
        reader.stop()
        reader = stream(shop)  # with the offsets of its checkpoint
    for start, end in ((none, all_rows), (all_rows, later)):
        with pytest.raises((CatalogError, HistoryGone)):
            changes(reader, start, end)
    with pytest.raises((CatalogError, HistoryGone)):
        reader.latestOffset(later, None)
    if restarted and how == "dropped":
        with pytest.raises(CatalogError):
            stream(shop)
    reader.stop()
    assert pin_count(db) == 0


def test_what_a_batch_reads_is_held_until_it_is_committed(
    db: belvedere.Database, shop: str
) -> None:
    reader = stream(shop)
    start = reader.latestOffset(reader.initialOffset(), None)
    put(db, 10, 7)
    end = reader.latestOffset(start, None)
    parts = reader.partitions(start, end)
    for number in range(30):
        put(db, number, 8)
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [tuple(row.values()) for row in rows] == [(7, 1, end["epoch"], 1)]
    assert pin_count(db) == 1
    reader.commit(end)
    assert pin_count(db) == 0
    for number in range(30):
        put(db, number, 9)
    with pytest.raises(HistoryGone, match="with a new checkpoint"):
        reader.partitions(start, end)
    assert pin_count(db) == 0


def test_a_stream_that_begins_where_it_cannot_is_refused(db: belvedere.Database, shop: str) -> None:
    db.keep_history(epochs=100)
    late = stream(shop, since="1000")
    with pytest.raises(SchemaError, match="the newest one that is committed is"):
        late.latestOffset(late.initialOffset(), None)
    with pytest.raises(SchemaError, match="name of a consumer"):
        stream(shop, consumer="a/b")
    db.sql("CREATE MATERIALIZED VIEW q AS SELECT id AS a, 6 / a AS n FROM t WHERE id = 11")
    db.catch_up()
    put(db, 11, 0)
    wrong = db.status().epoch
    put(db, 11, 1)
    reader = source(shop, path="q", changes="true").streamReader(schema("a", "n"))
    with pytest.raises(ViewInError):
        reader.partitions({"epoch": wrong}, {"epoch": wrong + 1})
