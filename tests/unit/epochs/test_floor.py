"""The floor of history rises in steps, and never above what a reader holds."""

from __future__ import annotations

import itertools

import belvedere
from belvedere.catalog.pins import pinned
from belvedere.catalog.state import read_floor
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.settings import Settings

HISTORY = Settings().history


def floors(db: belvedere.Database, epochs: int) -> list[int]:
    """The floor after each of so many epochs, every one by a coordinator of its own."""
    found = []
    for number in range(epochs):
        db.table("t").put({"k": number, "x": number})
        assert len(db.catch_up()) == 1
        found.append(db.store.catalog.read(read_floor))
    return found


def opened() -> belvedere.Database:
    db = belvedere.open("memory:")
    db.sql("CREATE TABLE t (k BIGINT, x BIGINT, PRIMARY KEY (k))")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    db._runner = LocalRunner(db.store)
    db.catch_up()
    return db


def test_history_is_removed_once_in_several_epochs_whoever_commits_them() -> None:
    """Else every catch_up() of one epoch would pay for a transaction in every slot."""
    with opened() as db:
        seen = sorted(set(floors(db, 24)))
        assert len(seen) >= 4
        assert all(b - a >= HISTORY for a, b in itertools.pairwise(seen))
        assert db.store.state.status(0).history_floor == seen[-1]


def test_the_floor_stays_below_what_a_reader_holds() -> None:
    with opened() as db:
        floors(db, 10)
        with pinned(db.store) as held:
            assert max(floors(db, 3 * HISTORY)) <= held.pin.epoch
        assert floors(db, 2 * HISTORY)[-1] > held.pin.epoch
