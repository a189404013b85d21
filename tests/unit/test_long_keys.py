"""Texts of any length as what views keep rows by: groups, join keys, whole rows, orders.

What a view shows is held against the same SELECT over the tables, which keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.catalog.definitions import LIVE
from belvedere.database import Database
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings
from belvedere.errors import ViewInError

TABLES = """
    CREATE TABLE t (id INT, s STRING, n INT, PRIMARY KEY (id));
    CREATE TABLE u (id INT, s STRING, n INT, PRIMARY KEY (id))
"""
VIEWS = {
    "grouped": "SELECT s, count(*) AS c FROM t GROUP BY s",
    "grouped_by_two": "SELECT s, n, count(*) AS c, max(id) AS m FROM t GROUP BY s, n",
    "different": "SELECT DISTINCT s FROM t",
    "extremes": "SELECT n, min(s) AS a, max(s) AS z, count(DISTINCT s) AS d FROM t GROUP BY n",
    "joined": "SELECT a.id, b.id AS other, a.s FROM t a JOIN u b ON a.s = b.s",
    "joined_fully": "SELECT a.id, b.id AS b FROM t a FULL JOIN u b ON a.s = b.s AND a.n = b.n",
    "in_both": "SELECT s FROM t INTERSECT SELECT s FROM u",
    "in_one": "SELECT s, n FROM t EXCEPT ALL SELECT s, n FROM u",
    "rows": "SELECT s, n FROM t",
    "branches": "SELECT s FROM t UNION ALL SELECT s FROM u",
    "last_ones": "SELECT id, s FROM t ORDER BY s DESC, id LIMIT 3",
    "first_of_each": "SELECT id, s FROM (SELECT id, s, row_number() OVER (PARTITION BY s ORDER BY"
    " id) AS place FROM t) WHERE place = 1",
    "found": "SELECT id, s FROM t WHERE s IN (SELECT s FROM u)",
}
SIZES = (504, 5_000, 1_000_000)


@pytest.fixture(params=["embedded", "memory"])
def db(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Database]:
    place = "memory:" if request.param == "memory" else tmp_path / "long"
    with belvedere.open(place) as opened:
        opened._runner = LocalRunner(opened.store)
        opened.sql(TABLES)
        yield opened


def text(size: int, number: int) -> str:
    """Such texts are alike but for their end."""
    return f"{number:0>{size}}"


def write(db: Database, table: str, size: int, numbers: range, step: int = 1) -> None:
    rows = [{"id": i, "s": text(size, i // step), "n": i % 2} for i in numbers]
    db.table(table).put_many(rows)


def create(db: Database, *names: str) -> None:
    for name in names:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")


def rows_of(found: Any, names: list[str]) -> list[tuple[Any, ...]]:
    columns = [found.to_arrow().column(name).to_pylist() for name in names]
    return sorted(zip(*columns, strict=True), key=repr)


def assert_right(db: Database, *names: str) -> None:
    for name in names:
        expected = db.sql(VIEWS[name])
        columns = expected.to_arrow().column_names
        assert rows_of(db.view(name), columns) == rows_of(expected, columns), name


@pytest.mark.parametrize("size", [504, 100_000])
def test_views_of_every_kind_take_texts_of_any_length(db: Database, size: int) -> None:
    write(db, "t", size, range(6), 2)
    write(db, "u", size, range(1, 4))
    create(db, *VIEWS)
    db.catch_up()
    assert_right(db, *VIEWS)
    write(db, "t", size, range(1, 7, 2), 3)
    db.sql("DELETE FROM u WHERE id = 2; DELETE FROM t WHERE id = 0")
    db.catch_up()
    assert_right(db, *VIEWS)
    db.sql("DELETE FROM t; DELETE FROM u")
    db.catch_up()
    assert_right(db, *VIEWS)


@pytest.mark.parametrize("size", SIZES)
def test_a_view_is_read_by_a_long_key_and_by_its_beginning(db: Database, size: int) -> None:
    write(db, "t", size, range(6), 2)
    create(db, "grouped", "grouped_by_two")
    db.catch_up()
    one, none = text(size, 1), text(size, 7)
    assert db.view("grouped").get(one) == {"s": one, "c": 2}
    assert db.view("grouped").get(none) is None
    wanted = [{"s": one, "n": n, "c": 1, "m": 2 + n} for n in (0, 1)]
    assert list(db.view("grouped_by_two").scan(prefix=(one,))) == wanted
    assert list(db.view("grouped_by_two").scan(prefix=(none,))) == []
    chosen = db.sql("SELECT n, c FROM grouped_by_two WHERE s = ?", [one]).to_arrow()
    assert chosen.sort_by("n").to_pylist() == [{"n": 0, "c": 1}, {"n": 1, "c": 1}]


@pytest.mark.parametrize("size", SIZES)
def test_a_view_is_loaded_in_steps_that_end_at_long_keys(db: Database, size: int) -> None:
    """Also while what it is loaded from changes: a mark is such a key."""
    write(db, "t", size, range(6), 2)
    create(db, "grouped_by_two")
    db.catch_up()
    second = "SELECT n, count(*) AS c, max(s) AS z FROM grouped_by_two GROUP BY n"
    db.sql(f"CREATE MATERIALIZED VIEW second AS {second}")
    coordinator = Coordinator(db.store, LocalRunner(db.store), Settings(load_rows=1))
    assert coordinator.acquire()
    marks: set[int] = set()
    for number in range(40):
        write(db, "t", size, range(number % 8, number % 8 + 1), 3)
        report = coordinator.step()
        state = db.state()
        status = state.status[state.view("second").id]
        marks.update(len(mark) for mark in status.marks.values() if mark)
        if status.state == LIVE:
            break
    assert status.state == LIVE
    assert report is not None
    assert min(marks) >= 2 * size, "no step ended inside"
    while coordinator.step():
        pass
    coordinator.release()
    shown = rows_of(db.view("second"), ["n", "c", "z"])
    assert shown == rows_of(db.sql(second), ["n", "c", "z"])


def test_a_row_in_error_is_named_however_long_its_identity_is(db: Database) -> None:
    """That of a join is the keys of both sides."""
    a, b = "a" * 400, "b" * 400
    db.sql(
        "CREATE TABLE x (k STRING, n INT, PRIMARY KEY (k));"
        " CREATE TABLE y (j STRING, n INT, d INT, PRIMARY KEY (j));"
        " CREATE MATERIALIZED VIEW v AS SELECT k, j, 1 / d AS q FROM x JOIN y ON x.n = y.n"
    )
    db.table("x").put({"k": a, "n": 1})
    db.table("y").put({"j": b, "n": 1, "d": 0})
    db.catch_up()
    with pytest.raises(ViewInError) as raised:
        db.view("v").to_arrow()
    assert raised.value.rows == [{"k": a, "j": b, "expression": "1 / d"}]
    db.table("y").put({"j": b, "n": 1, "d": 2})
    db.catch_up()
    assert db.view("v").to_arrow().to_pylist() == [{"k": a, "j": b, "q": 0.5}]


# ---------------------------------------------------------------- limits


def limited(db: Database, longest_key: int | None) -> None:
    db.store.capabilities = replace(db.store.capabilities, longest_key=longest_key)


@pytest.mark.parametrize("name", VIEWS)
def test_where_the_store_has_a_limit_a_longer_text_is_an_error_of_the_view(
    db: Database, name: str
) -> None:
    limited(db, 503)
    create(db, name)
    for table in "tu":
        db.table(table).put({"id": 1, "s": "x" * 400, "n": 1})
        db.table(table).put({"id": 2, "s": "x" * 503, "n": 1})
    db.catch_up()
    with pytest.raises(ViewInError) as raised:
        db.view(name).to_arrow()
    what = {row["expression"] for row in raised.value.rows}
    assert what == {"the key of this row is longer than 503 bytes"}
    for table in "tu":
        db.table(table).put({"id": 2, "s": "short", "n": 1})
    db.catch_up()
    assert_right(db, name)


def test_a_view_that_was_planned_with_a_limit_keeps_it_until_it_is_replaced(db: Database) -> None:
    """Its rows in error must go from where they are, when they go."""
    limited(db, 503)
    create(db, "grouped")
    write(db, "t", 600, range(3))
    db.catch_up()
    limited(db, None)
    write(db, "t", 600, range(1, 5))
    db.catch_up()
    with pytest.raises(ViewInError, match="longer than 503 bytes"):
        db.view("grouped").to_arrow()
    write(db, "t", 20, range(5))
    db.catch_up()
    assert_right(db, "grouped")
    db.sql(f"CREATE OR REPLACE MATERIALIZED VIEW grouped AS {VIEWS['grouped']}")
    write(db, "t", 600, range(3))
    db.catch_up()
    assert_right(db, "grouped")
