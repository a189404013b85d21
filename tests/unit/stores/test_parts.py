"""Parts of a store that are lost, cut off or from another time are named when it is opened; a crash
while it is made is mended.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pyarrow as pa
import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreError
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.embedded import EmbeddedStore, files, layout, log, log_segments, parts
from belvedere.stores.embedded.log_segments import FOLDER, Segment

PARTS = ("catalog", "base", "slots/000", "slots/001")
VIEW = "CREATE MATERIALIZED VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v"
RESTORE = "Restore the whole directory from one backup"


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


def filled(path: Path, rows: int = 1000) -> Path:
    with opened(path) as db:
        db.sql("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, v INT)")
        if not db.state().views:
            db.sql(VIEW)
        first = db.store.base.end()["log"]
        db.table("t").put_many([{"id": first + i, "v": i % 7} for i in range(rows)])
        db.catch_up()
    return path


def binary(*items: bytes | None) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


# ---------------------------------------------------------------- lost and cut off


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("how", ["removed", "no file", "empty", "half", "one page"])
def test_a_part_that_is_lost_or_cut_off_is_named(tmp_path: Path, part: str, how: str) -> None:
    data = filled(tmp_path / "db") / part / "data.mdb"
    if how == "removed":
        shutil.rmtree(data.parent)
    elif how == "no file":
        data.unlink()
    else:
        os.truncate(data, {"empty": 0, "half": data.stat().st_size // 2, "one page": 4096}[how])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=rf"{part}.* (missing|empty|cut off|damaged).*{RESTORE}"):
        belvedere.open(tmp_path / "db")
    assert sorted(tmp_path.rglob("*")) == before  # nothing is made anew


def test_a_lost_format_is_named(tmp_path: Path) -> None:
    (filled(tmp_path / "db") / "format.json").unlink()
    with pytest.raises(StoreError, match=r"format\.json is missing"):
        belvedere.open(tmp_path / "db")


def test_a_file_may_be_short_of_pages_that_nobody_uses(tmp_path: Path) -> None:
    """LMDB does not write pages that a transaction takes and frees again."""
    data = tmp_path / "s" / "base" / "data.mdb"
    with EmbeddedStore.open(tmp_path / "s", slots=1) as store:
        store.base.put_one(1, b"a", b"1", True)
        store.base.write(2, binary(b"k", b"k"), binary(bytes(1 << 20), None), False)
        store.base.trim("log", store.base.end()["log"])

        def take_and_free(transaction: Any) -> None:
            transaction.put(b"\0\0\0\2k", bytes(3 << 20))
            transaction.delete(b"\0\0\0\2k")

        store.base._environment.write(take_and_free)  # type: ignore[attr-defined]
        with data.open("rb") as file:
            meta = files.newest_meta(file)
        assert meta is not None
        needed = (meta.last_page + 1) * meta.page_size
        assert data.stat().st_size < needed
    with EmbeddedStore.open(tmp_path / "s") as store:
        assert data.stat().st_size == needed
        store.base.put_one(1, b"b", b"2", True)
        with store.base.snapshot() as snapshot:
            assert [snapshot.get(1, key) for key in (b"a", b"b")] == [b"1", b"2"]


def test_a_short_file_is_refused_exactly_if_a_page_in_use_is_cut_off(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "s", slots=1) as store:
        for table in range(1, 4):
            keys = binary(*(b"%04d" % i for i in range(500)))
            store.base.write(table, keys, binary(*[os.urandom(20)] * 499, os.urandom(9000)), True)
        store.base.drop(2)
        assert not store.base.reclaim(60)
        store.base.trim("log", store.base.end()["log"])
    whole = (tmp_path / "s" / "base" / "data.mdb").read_bytes()
    outcomes = set()
    for pages in range(2, len(whole) // 4096):
        (tmp_path / "s" / "base" / "data.mdb").write_bytes(whole[: pages * 4096])
        try:
            with EmbeddedStore.open(tmp_path / "s") as store, store.base.snapshot() as snapshot:
                for table in (1, 3):  # to read what is not there would end this process
                    assert sum(len(keys) for keys, _ in snapshot.scan(table)) == 500
            outcomes.add("whole")
        except StoreError as error:
            outcomes.add("refused" if "cut off" in str(error) else str(error))
    assert "refused" in outcomes <= {"refused", "whole"}


# ---------------------------------------------------------------- from another time


@pytest.mark.parametrize("part", PARTS)
def test_an_older_part_is_named(tmp_path: Path, part: str) -> None:
    """R2: with an older base, what was written got positions that the views had passed already."""
    shutil.copytree(filled(tmp_path / "db") / part, tmp_path / "old")
    filled(tmp_path / "db", 500)
    shutil.rmtree(tmp_path / "db" / part)
    shutil.copytree(tmp_path / "old", tmp_path / "db" / part)
    with pytest.raises(
        StoreError,
        match=rf"not from one time: {part}(/log)? is older than .* not made in one piece.*{RESTORE}",
    ):
        belvedere.open(tmp_path / "db")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_another_store_is_named(tmp_path: Path, part: str) -> None:
    for name in ("db", "other"):
        filled(tmp_path / name)
    shutil.copy(tmp_path / "other" / part / "data.mdb", tmp_path / "db" / part / "data.mdb")
    with pytest.raises(StoreError, match=f"{part} belongs to another store"):
        belvedere.open(tmp_path / "db")


def test_slots_in_the_wrong_place_are_named(tmp_path: Path) -> None:
    slots = filled(tmp_path / "db") / "slots"
    for old, new in (("000", "aside"), ("001", "000"), ("aside", "001")):
        (slots / old).rename(slots / new)
    with pytest.raises(
        StoreError, match="slots/000 is slots/001 of this store, in the wrong place"
    ):
        belvedere.open(tmp_path / "db")


def test_positions_and_epochs_tell_of_parts_from_different_times_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stores can be asked that keep no numbers of parts, such as those of format 2."""
    monkeypatch.setattr(parts, "check", lambda *_: None)
    filled(tmp_path / "db", 100)
    shutil.copytree(tmp_path / "db", tmp_path / "old")
    filled(tmp_path / "db", 100)
    for part, words in (
        ("base", "the change log ends at 100, the views contain operations up to 200"),
        ("catalog", "slot 0 has epoch"),
    ):
        shutil.copytree(tmp_path / "db", tmp_path / part)
        shutil.rmtree(tmp_path / part / part)
        shutil.copytree(tmp_path / "old" / part, tmp_path / part / part)
        with pytest.raises(StoreError, match=f"not from one time: {words}"):
            belvedere.open(tmp_path / part)


def test_a_transaction_of_the_catalog_that_writes_nothing_notes_nothing(tmp_path: Path) -> None:
    def read_and_delete_nothing(transaction: CatalogTransaction) -> None:
        transaction.get("a")
        transaction.delete("b")

    with EmbeddedStore.open(tmp_path / "s", slots=2) as store:
        store.catalog.transact(lambda t: t.put("a", b"1"))
        mark = store.catalog.mark()
        store.base.put_one(1, b"k", b"v", True)
        store.catalog.transact(read_and_delete_nothing)
        assert store.catalog.mark() == mark


# ---------------------------------------------------------------- crashes while it is made, and older formats


class Crash(Exception):
    pass


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> Callable[[], int]:
    """Steps of making and marking parts end with a crash after so many; returns a function that
    tells how many there were.
    """
    done: list[str] = []

    def counted(name: str) -> None:
        original = getattr(layout, name)

        def step(*arguments: Any, **named: Any) -> Any:
            if len(done) == after:
                raise Crash
            done.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(layout, name, step)

    for name in ("_begin", "_make", "_publish"):
        counted(name)
    return lambda: len(done)


@pytest.mark.parametrize("after", range(7))
def test_a_crash_while_a_store_is_made_is_mended_by_the_next_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    with monkeypatch.context() as patch:
        crashing(patch, after)
        if after < 6:  # begin, four parts, publish
            with pytest.raises(Crash):
                EmbeddedStore.open(tmp_path / "s", slots=2)
        else:
            EmbeddedStore.open(tmp_path / "s", slots=2).close()
    with EmbeddedStore.open(tmp_path / "s", slots=2) as store:
        assert store.base.put_one(1, b"k", b"v", True).operations == 1
    EmbeddedStore.open(tmp_path / "s").close()


def log_to_lmdb(base: Path) -> int:
    """Put the log where formats up to 5 had it; returns its end."""
    folder = base / FOLDER
    with (
        lmdb.open(str(base), map_size=1 << 26) as environment,
        environment.begin(write=True) as transaction,
    ):
        transaction.delete(b"\0\0\0\0mlog")
        if not transaction.get(b"\0\0\0\0mend"):
            log.put_ends(transaction, 0, 0, 0)
        for first in log_segments.first_positions(str(folder)):
            segment = Segment.open(str(folder), first, writable=False)
            segment.walk(1 << 62)
            for position, value in segment.records(first, segment.end, 1 << 30):
                transaction.put(log.key_of(position), value)
            segment.close()
    shutil.rmtree(folder)
    return segment.end


def aged(path: Path) -> Path:
    """A store as format 2 had it: no marks, records that are shorter, and the log in LMDB."""
    end = log_to_lmdb(path / "base")
    for part in PARTS:
        with (
            lmdb.open(str(path / part), map_size=1 << 26) as environment,
            environment.begin(write=True) as transaction,
        ):
            for key in (b"store", b"parts"):
                transaction.delete(b"\0\0\0\0m" + key)
            for key in (b"end", b"floors"):
                if found := transaction.get(b"\0\0\0\0m" + key):
                    start = end.to_bytes(8, "big") if key == b"end" else found[:8]
                    transaction.put(b"\0\0\0\0m" + key, start + found[8:16])
    (path / "format.json").write_text(
        json.dumps({"belvedere": "embedded store", "format": 2, "slots": 2})
    )
    return path


def check(path: Path) -> None:
    with opened(path) as db:
        db.table("t").put({"id": -1, "v": 0})
        db.catch_up()
        rows = db.sql("SELECT count(*) AS n FROM t").to_pylist()[0]["n"]
        assert sum(row["n"] for row in db.view("w").scan()) == rows > 1


@pytest.mark.parametrize("after", range(7))
def test_a_store_of_format_2_is_brought_to_this_format_also_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    aged(filled(tmp_path / "db"))
    with monkeypatch.context() as patch:
        crashing(patch, after)
        if after < 6:
            with pytest.raises(Crash):
                EmbeddedStore.open(tmp_path / "db")
    check(tmp_path / "db")
    assert json.loads((tmp_path / "db" / "format.json").read_text())["format"] == layout.FORMAT
    check(tmp_path / "db")


@pytest.mark.parametrize("part", PARTS)
def test_a_store_of_format_2_must_have_all_parts_that_were_in_use(
    tmp_path: Path, part: str
) -> None:
    for rows in (10, 1, 1, 1, 1):
        filled(tmp_path / "db", rows)
    shutil.rmtree(aged(tmp_path / "db") / part)
    with pytest.raises(StoreError, match=f"{part} is missing"):
        belvedere.open(tmp_path / "db")
    assert not (tmp_path / "db" / part).exists()


def test_a_store_of_format_2_may_lack_what_nobody_had_used(tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "format.json").write_text('{"format": 2, "slots": 2}')
    filled(tmp_path / "fresh")
    with opened(tmp_path / "db") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        db.table("t").put({"id": 1, "v": 1})
    shutil.rmtree(aged(tmp_path / "db") / "slots")
    with opened(tmp_path / "db") as db:
        assert db.table("t").get(1) == {"id": 1, "v": 1}
        db.sql(VIEW)
        db.catch_up()
        assert list(db.view("w").scan()) == [{"v": 1, "n": 1}]


def test_a_format_of_an_earlier_time_beside_marked_parts_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "db")
    (tmp_path / "db" / "format.json").write_text('{"format": 2, "slots": 2}')
    with pytest.raises(StoreError, match="has content that this store did not write"):
        belvedere.open(tmp_path / "db")


def test_a_store_that_another_process_writes_can_be_opened_all_the_time(tmp_path: Path) -> None:
    """The check reads parts one after the other while they move on."""
    with opened(tmp_path / "db") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        db.sql(VIEW)
        pipeline = db.start()
        table = db.table("t")
        for i in range(150):
            table.put({"id": i, "v": i % 3})
            with EmbeddedStore.open(tmp_path / "db") as store:
                assert store.base.end()["log"] == i + 1
            belvedere.open(tmp_path / "db").close()
        pipeline.await_position(150, timeout=60)
        pipeline.stop()
