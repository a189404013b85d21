"""TPC-H's queries as views, all at once: after every epoch of changes of every table, each is what
DuckDB computes from nothing.

Without Spark: the same coordinator and view managers, in this process, over the embedded store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.bench import tpch
from belvedere.bench.scenarios.tpch import write
from belvedere.bench.tpch_changes import Reference, Stream, every_table
from belvedere.epochs.local import LocalRunner

SCALE = 0.01
EPOCHS = 4


@pytest.fixture
def db(tmp_path: Path) -> Iterator[belvedere.Database]:
    with belvedere.open(tmp_path / "tpch", slots=2) as opened:
        opened._runner = LocalRunner(opened.store)
        for table in tpch.TABLES:
            opened.sql(tpch.create_table(table))
        yield opened


def create(db: belvedere.Database, names: tuple[str, ...] = tpch.QUERIES) -> None:
    for name in names:
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {tpch.query(name)}")


def check(db: belvedere.Database, reference: Reference) -> None:
    wrong = {
        name: reference.difference(tpch.query(name), db.view(name).to_arrow())
        for name in tpch.QUERIES
    }
    assert not any(wrong.values()), "\n".join(
        f"{name}: {text}" for name, text in wrong.items() if text
    )


@pytest.mark.slow
def test_every_view_is_the_recomputation_after_every_epoch(db: belvedere.Database) -> None:
    """Half of the views are there before the rows, half are built from them; epochs are narrow and
    wide in turn.
    """
    stream, reference = Stream(SCALE), Reference()
    create(db, tpch.QUERIES[::2])
    db.catch_up()  # they are live, so the load reaches them as changes
    load = stream.load()
    write(db, load)
    reference.apply(load)
    create(db, tpch.QUERIES[1::2])
    db.catch_up()
    check(db, reference)
    for number in range(EPOCHS):
        db._runner = LocalRunner(db.store, tasks=1 + number % 2)
        changes = stream.step(every_table(100))
        rows = write(db, changes)
        reference.apply(changes)
        (epoch,) = db.catch_up()
        assert epoch.operations == rows
        check(db, reference)
    reference.close()


def test_views_are_empty_again_when_all_rows_are_gone(db: belvedere.Database) -> None:
    stream, reference = Stream(0.001), Reference()
    create(db)
    load = stream.load()
    write(db, load)
    reference.apply(load)
    db.catch_up()
    check(db, reference)
    for one in load:
        db.table(one.table).write_many(one.rows, deletes=[True] * one.rows.num_rows)
    db.catch_up()
    check(db, Reference())
