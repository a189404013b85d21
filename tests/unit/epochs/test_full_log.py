"""A store that is full of log which every view has already: catching up makes room."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreFull

LARGEST = 4 << 20


def catch_up(db: Database) -> None:
    coordinator = Coordinator(db.store, LocalRunner(db.store))
    assert coordinator.acquire()
    while coordinator.step() is not None:
        pass
    coordinator.release()


def fill(db: Database) -> None:
    for number in range(LARGEST // 10_000):
        db.table("t").put({"id": number % 10, "s": "x" * 10_000})


def test_a_store_full_of_log_is_usable_again_after_catching_up(tmp_path: Path) -> None:
    with belvedere.open(tmp_path / "d", slots=1, map_size=1 << 20, max_size=LARGEST) as db:
        db.sql(
            "CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS"
            " SELECT count(*) AS n FROM t"
        )
        for _ in range(3):
            with pytest.raises(StoreFull, match="nothing was written"):
                fill(db)
            catch_up(db)
            db.table("t").put({"id": 1, "s": "x" * 10_000})
        catch_up(db)
        assert db.view("v").get() == {"n": 10}


def test_what_a_call_has_written_before_the_store_was_full_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belvedere.table.BATCH", 50)
    with belvedere.open(tmp_path / "d", slots=1, map_size=1 << 20, max_size=LARGEST) as db:
        db.sql("CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id))")
        with pytest.raises(
            StoreFull, match=r"the first \d+ of 1,000 rows are written, the others are not"
        ) as raised:
            db.table("t").put_many([{"id": number, "s": "x" * 10_000} for number in range(1000)])
        told = int(str(raised.value).split()[2])
        assert told % 50 == 0
        assert db.table("t").to_arrow().num_rows == told == db.status().written


def test_a_larger_size_can_be_given_while_the_store_is_open(tmp_path: Path) -> None:
    with belvedere.open(tmp_path / "d", slots=1, map_size=1 << 20, max_size=LARGEST) as small:
        small.sql("CREATE TABLE t (id INT, s STRING, PRIMARY KEY (id))")
        rows = [{"id": number, "s": "x" * 10_000} for number in range(1000)]
        with pytest.raises(StoreFull):
            small.table("t").put_many(rows)
        with belvedere.open(tmp_path / "d", max_size=16 * LARGEST) as large:
            large.table("t").put_many(rows)
        assert small.table("t").to_arrow().num_rows == 1000
