"""Files as a source: differences of snapshots, exactly once, whatever is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from belvedere.errors import SourceError, SourceLost
from belvedere.sources.base import Event, Question, Relation, SourceTransaction, Stopped
from belvedere.sources.files import FileSource, open_source
from belvedere.sources.files.snapshots import Snapshots

FORMATS = ["csv", "parquet", "json"]
COLUMNS = "id INT, k STRING, n BIGINT, x DOUBLE, d DECIMAL(15,4), b BOOLEAN, day DATE, at TIMESTAMP"
Rows = dict[Any, dict[str, Any]]


def source_of(tmp_path: Path, suffix: str, **options: str) -> FileSource:
    given = {
        "path": str(tmp_path / "items" / f"*.{suffix}"),
        "key": "id, k",
        "kept": str(tmp_path / "kept"),
        "every": "0",
        "columns": COLUMNS,
        **options,
    }
    found = open_source("s", {name: value for name, value in given.items() if value})
    assert isinstance(found, FileSource)
    return found


def write(
    tmp_path: Path,
    format: str,
    rows: Sequence[dict[str, Any]],
    schema: pa.Schema,
    name: str = "one",
) -> Path:
    """Written beside and renamed, as users should."""
    place = tmp_path / "items" / f"{name}.{format}"
    place.parent.mkdir(exist_ok=True)
    part = tmp_path / f"{name}.part"
    table = pa.Table.from_pylist(list(rows), schema)
    if format == "parquet":
        pq.write_table(table, part)
    else:
        options = "FORMAT csv, HEADER" if format == "csv" else "FORMAT json"
        with duckdb.connect() as connection:
            connection.register("given", _without_zones(table))
            query = "SELECT * FROM given"
            if format == "csv":  # a text without letters is quoted, that it is no NULL
                options += ", FORCE_QUOTE (k)" if "k" in table.column_names else ""
            connection.execute(f"COPY ({query}) TO '{part}' ({options})")
    os.rename(part, place)
    return place


def _without_zones(table: pa.Table) -> pa.Table:
    types = [pa.timestamp("us") if pa.types.is_timestamp(t) else t for t in table.schema.types]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def random_row(choice: random.Random, id: int, k: str) -> dict[str, Any]:
    values = {
        "n": choice.choice([0, -(2**63), 2**63 - 1, 7]),
        "x": choice.choice([0.1, -1e300, 5.0]),
        "d": choice.choice([Decimal("1.5000"), Decimal("-99999999999.9999")]),
        "b": choice.random() < 0.5,
        "day": choice.choice([date(1, 1, 1), date(9999, 12, 31)]),
        "at": choice.choice(
            [datetime(1970, 1, 1, tzinfo=UTC), datetime(2020, 2, 29, 1, 2, 3, 456789, UTC)]
        ),
    }
    nulls = {name: None if choice.random() < 0.2 else value for name, value in values.items()}
    return {"id": id, "k": k, **nulls}


def random_rows(choice: random.Random, old: Rows) -> Rows:
    keys = [(i, k) for i in range(6) for k in ("", "a", 'é,"\n')]
    kept = {key: row for key, row in old.items() if choice.random() < 0.8}
    some = choice.sample(keys, choice.randint(0, 6))
    return {**kept, **{key: random_row(choice, *key) for key in some}}


def apply(copy: Rows, event: Event) -> None:
    assert isinstance(event, SourceTransaction)
    for change in event.changes:
        for row in change.before.to_pylist():
            assert copy.pop((row["id"], row["k"])) == row
        for row in change.after.to_pylist():
            assert (row["id"], row["k"]) not in copy
            copy[row["id"], row["k"]] = row


def answer_of(source: FileSource, relation: Relation) -> Rows:
    (tables,) = source.ask([Question(relation, relation.schema.names)]).tables
    return {(row["id"], row["k"]): row for table in tables for row in table.to_pylist()}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(2))
def test_differences_of_snapshots_keep_a_copy(tmp_path: Path, format: str, seed: int) -> None:
    """Of two files, each rewritten or not; the copy is what the files hold after each."""
    choice = random.Random(seed)
    source = source_of(tmp_path, format)
    write(tmp_path, format, [random_row(choice, 99, "other")], _schema(tmp_path, format), "two")
    rows = random_rows(choice, {})
    write(tmp_path, format, list(rows.values()), _schema(tmp_path, format))
    relation = source.describe("items")
    position = source.prepare([relation])
    copy = answer_of(source, relation)
    monitor = source.follow([relation], position)
    for _ in range(12):
        rows = random_rows(choice, rows)
        write(tmp_path, format, list(rows.values()), relation.schema.arrow)
        end = source.position()
        while not source.covers(position, end):
            (event,) = monitor.poll(10.0)
            if isinstance(event, SourceTransaction):
                apply(copy, event)
            position = event.position
            if choice.random() < 0.5:
                monitor.confirm(position)
        assert {key: row for key, row in copy.items() if key[0] != 99} == rows
        assert answer_of(source, relation) == copy
    monitor.close()


def _schema(tmp_path: Path, format: str) -> pa.Schema:
    from belvedere.sources.files.options import _columns

    return pa.schema([pa.field(c.name, c.type.arrow) for c in _columns(COLUMNS)])


def test_an_answer_has_the_rows_that_agree(tmp_path: Path) -> None:
    choice = random.Random(1)
    rows = {(i, "a"): random_row(choice, i, "a") for i in range(50)}
    write(tmp_path, "parquet", list(rows.values()), _schema(tmp_path, "parquet"))
    source = source_of(tmp_path, "parquet", columns="")
    relation = source.describe("items")
    source.prepare([relation])
    keys = pa.table({"id": pa.array([3, 4, 1000, None], pa.int32())})
    (tables,) = source.ask([Question(relation, ("id", "k", "d"), keys)]).tables
    found = [row for table in tables for row in table.to_pylist()]
    assert found == [{"id": i, "k": "a", "d": rows[i, "a"]["d"]} for i in (3, 4)]


def test_an_answer_is_of_a_snapshot_not_of_the_files(tmp_path: Path) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    write_text(tmp_path, "id,k\n2,b\n")
    answer = source.ask([Question(relation, ("id", "k"))])
    assert pa.concat_tables(answer.tables[0]).to_pylist() == [{"id": 1, "k": "a"}]
    (event,) = source.follow([relation], position).poll(5.0)
    assert isinstance(event, SourceTransaction)
    assert not source.shows(answer.marker, event.transaction)
    assert source.shows(source.ask([]).marker, event.transaction)


def write_text(tmp_path: Path, text: str, name: str = "one.csv") -> None:
    (tmp_path / "items").mkdir(exist_ok=True)
    part = tmp_path / "part"
    part.write_text(text)
    os.rename(part, tmp_path / "items" / name)


def prepared(tmp_path: Path, text: str) -> tuple[FileSource, Relation, str]:
    write_text(tmp_path, text)
    source = source_of(tmp_path, "csv", columns="id INT, k STRING")
    relation = source.describe("items")
    return source, relation, source.prepare([relation])


WRONG = {
    "a key twice": ("id,k\n1,a\n1,a\n", "id = 1, k = 'a' is twice in .*one.csv"),
    "a NULL key": ("id,k\n1,\n", "one.csv has a row without a key: k is NULL"),
    "another type": ("id,k\n1,a\nx,b\n", "(?s)(?=.*one.csv)(?=.*Line: 3)"),
    "missing values": ("id,k\n1,a\n2\n", "(?s)(?=.*one.csv)(?=.*Line: 3)"),
    "too many values": ("id,k\n1,a,c\n", "(?s)(?=.*one.csv)(?=.*Line: 2)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_files_that_are_wrong_are_an_error_until_they_are_right(tmp_path: Path, case: str) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    write_text(tmp_path, WRONG[case][0])
    monitor = source.follow([relation], position)
    with pytest.raises(SourceError, match=WRONG[case][1]):
        monitor.poll(1.0)
    write_text(tmp_path, "id,k\n2,b\n")
    (event,) = monitor.poll(5.0)
    assert isinstance(event, SourceTransaction)
    assert event.changes[0].before.to_pylist() == [{"id": 1, "k": "a"}]


def test_a_key_in_two_files_names_both(tmp_path: Path) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    write_text(tmp_path, "id,k\n1,a\n", "two.csv")
    with pytest.raises(SourceError, match=r"in .*one.csv and in .*two.csv"):
        source.follow([relation], position).poll(1.0)


def test_no_files_are_an_error_not_an_empty_relation(tmp_path: Path) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    (tmp_path / "items" / "one.csv").unlink()
    with pytest.raises(SourceError, match="no file is named"):
        source.follow([relation], position).poll(1.0)


def test_other_columns_stop_the_relation(tmp_path: Path) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    write_text(tmp_path, "id,k,more\n1,a,1\n")
    monitor = source.follow([relation], position)
    (event,) = monitor.poll(1.0)
    assert isinstance(event, Stopped)
    assert (event.relation, event.position) == ("items", position)
    assert monitor.poll(0.01) == []
    assert source.position() == position


def test_a_parquet_file_with_another_type_stops_the_relation(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int32(), "k": pa.string()})
    write(tmp_path, "parquet", [{"id": 1, "k": "a"}], schema)
    source = source_of(tmp_path, "parquet", columns="")
    relation = source.describe("items")
    position = source.prepare([relation])
    other = pa.schema({"id": pa.float64(), "k": pa.string()})
    write(tmp_path, "parquet", [{"id": 1.5, "k": "a"}], other)
    (event,) = source.follow([relation], position).poll(1.0)
    assert isinstance(event, Stopped)


def test_what_is_confirmed_is_forgotten_and_what_is_not_comes_again(tmp_path: Path) -> None:
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    monitor = source.follow([relation], position)
    events: list[Event] = []
    for number in range(3):
        write_text(tmp_path, f"id,k\n{number},b\n")
        events += monitor.poll(5.0)
    again = source.follow([relation], position)
    assert [again.poll(5.0)[0] for _ in range(3)] == events
    assert source.lag(position).bytes > 0
    again.confirm(events[1].position)
    with pytest.raises(SourceLost):
        source.follow([relation], events[0].position)
    assert source.follow([relation], events[1].position).poll(5.0) == [events[2]]
    source.remove()
    assert Snapshots(source._options).numbers() == []
    source.remove()


TAKER = """
    import sys
    from belvedere.sources.files import open_source
    options = dict(pair.split("=", 1) for pair in sys.argv[1:])
    source = open_source("s", options)
    relation = source.describe("items")
    source.prepare([relation])
    print("ready", flush=True)
    for line in sys.stdin:
        print(source.position(), flush=True)
"""


def test_a_killed_process_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Killed at random moments while it takes snapshots; the differences that are there fit to one
    another, and lead to what the files hold.
    """
    choice = random.Random(5)
    source, relation, position = prepared(tmp_path, "id,k\n1,a\n")
    options = {
        "path": str(tmp_path / "items" / "*.csv"),
        "key": "id, k",
        "kept": str(tmp_path / "kept"),
        "columns": "id INT, k STRING",
    }
    given = [f"{name}={value}" for name, value in options.items()]
    copy: Rows = {(1, "a"): {"id": 1, "k": "a"}}
    monitor = source.follow([relation], position)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TAKER), *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for _ in range(choice.randint(1, 3)):
            keys = choice.sample(range(20_000), 10_000)
            write_text(tmp_path, "id,k\n" + "".join(f"{key},x\n" for key in keys))
            process.stdin.write(b"\n")
            process.stdin.flush()
        if choice.random() < 0.5:
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        end = source.position()
        while not source.covers(position, end):
            (event,) = monitor.poll(10.0)
            apply(copy, event)
            position = event.position
            monitor.confirm(position)
        assert {key for key, _ in copy} == set(keys)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red"}, "no option colour"),
        ({"key": ""}, "needs the options key"),
        ({"every": "soon"}, "no time"),
        ({"path": "items/*", "format": ""}, "format"),
        ({"columns": "id WHAT"}, "WHAT"),
        ({"delimiter": "ab"}, "one character"),
        ({"every": "1 year"}, "no time"),
    ],
)
def test_options_that_are_wrong_are_refused(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(SourceError, match=message):
        source_of(tmp_path, "csv", **options)


def test_a_key_that_is_no_column_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path, "id,k\n1,a\n")
    with pytest.raises(SourceError, match="no column"):
        source_of(tmp_path, "csv", columns="", key="no").describe("items")


def test_decimals_of_json_that_would_be_rounded_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "json", [{"id": 1}], pa.schema({"id": pa.int32()}))
    source = source_of(tmp_path, "json", key="id", columns="id INT, d DECIMAL(16,2)")
    with pytest.raises(SourceError, match="15 digits"):
        source.describe("items")
