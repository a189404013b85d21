"""Databases that earlier versions have written, and how they are brought to this format."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

import belvedere
from belvedere.database import Database
from belvedere.epochs.local import LocalRunner
from belvedere.errors import StoreError
from belvedere.inspection import inspect
from belvedere.stores.embedded import older_slots
from belvedere.stores.embedded.layout import FORMAT
from tests.formats.make import VIEWS, change, fill

HERE = Path(__file__).parent
KEPT = sorted(HERE.glob("format-*.tar.xz"))


def unpacked(archive: Path, place: Path) -> Path:
    with tarfile.open(archive) as content:
        content.extractall(place, filter="data")
    return place


def check(db: Database) -> None:
    """Every view is what its definition gives."""
    for name, select in VIEWS.items():
        kept = Counter(tuple(row.items()) for row in db.view(name).scan())
        computed = Counter(tuple(row.items()) for row in db.sql(select).to_pylist())
        assert kept == computed, name


def opened(path: Path) -> Database:
    db = belvedere.open(path)
    db._runner = LocalRunner(db.store)
    return db


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: path.name)
def test_a_database_of_every_format_goes_on_where_it_was(archive: Path, tmp_path: Path) -> None:
    path = unpacked(archive, tmp_path / "db")
    fill(tmp_path / "same")
    with opened(path) as db, opened(tmp_path / "same") as same:
        for name in VIEWS:  # as of the last committed epoch, while a later one is half written
            assert list(db.view(name).scan()) == list(same.view(name).scan())
        db.catch_up()
        check(db)
        for number in (6, 7):
            change(db, number)
            db.catch_up()
            check(db)
    assert json.loads((path / "format.json").read_text())["format"] == FORMAT
    with opened(path) as db:
        check(db)


_KILLED = """
import os, signal, sys
import belvedere
from belvedere.stores.embedded import older_slots
convert, left = older_slots.convert, int(sys.argv[2])
def killed(path):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    convert(path)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
older_slots.convert = killed
if sys.argv[3] == "inside":
    older_slots._replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
belvedere.open(sys.argv[1])
"""


@pytest.mark.parametrize(
    ("slots", "where"), [(0, "before"), (1, "after"), (2, "after"), (9, "inside")]
)
def test_who_is_killed_while_a_database_is_brought_to_this_format_loses_nothing(
    tmp_path: Path, slots: int, where: str
) -> None:
    path = unpacked(HERE / "format-3.tar.xz", tmp_path / "db")
    command = [sys.executable, "-c", _KILLED, str(path), str(slots), where]
    assert subprocess.run(command, check=False).returncode == -9
    with opened(path) as db:
        db.catch_up()
        check(db)
        db.catch_up()
    runs = sorted(path.glob("slots/*/*.run"))
    with opened(path) as db:
        change(db, 8)
        db.catch_up()
        check(db)
    assert runs


_KILLED_WHILE_SEALING = """
import os, signal, sys
import belvedere
from belvedere.stores.embedded import older_values
change, left = older_values._change, int(sys.argv[2])
def killed(path, seal):
    global left
    left -= 1
    def inside(transaction):
        seal(transaction)
        if left < 0 and sys.argv[3] == "inside":
            os.kill(os.getpid(), signal.SIGKILL)
    change(path, inside)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
older_values._change = killed
belvedere.open(sys.argv[1])
"""


@pytest.mark.parametrize("archive", KEPT, ids=lambda path: path.name)
@pytest.mark.parametrize(
    ("parts", "where"), [(0, "inside"), (0, "after"), (1, "after"), (2, "inside")]
)
def test_who_is_killed_while_values_get_checksums_loses_nothing(
    archive: Path, tmp_path: Path, parts: int, where: str
) -> None:
    path = unpacked(archive, tmp_path / "db")
    command = [sys.executable, "-c", _KILLED_WHILE_SEALING, str(path), str(parts), where]
    assert subprocess.run(command, check=False).returncode == -9
    with opened(path) as db:
        db.catch_up()
        check(db)
    assert inspect(path).ok


def _hold(path: Path, ready: object, done: object) -> None:
    import lmdb

    with lmdb.open(str(path / "base"), map_size=1 << 30):
        ready.set()  # type: ignore[attr-defined]
        done.wait()  # type: ignore[attr-defined]


def test_a_database_that_others_have_open_is_left_as_it_is(tmp_path: Path) -> None:
    path = unpacked(HERE / "format-3.tar.xz", tmp_path / "db")
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, ready, done))
    other.start()
    ready.wait()
    try:
        with pytest.raises(StoreError, match="other processes have it open: stop them"):
            belvedere.open(path)
    finally:
        done.set()
        other.join()
    assert json.loads((path / "format.json").read_text())["format"] == 3
    with opened(path) as db:
        db.catch_up()
        check(db)


def test_to_read_an_older_format_only_is_refused(tmp_path: Path) -> None:
    path = unpacked(HERE / "format-3.tar.xz", tmp_path / "db")
    with pytest.raises(StoreError, match=f"brought to format {FORMAT} when it is"):
        belvedere.open(path, read_only=True)


def test_a_slot_is_made_anew_once(tmp_path: Path) -> None:
    path = unpacked(HERE / "format-3.tar.xz", tmp_path / "db")
    belvedere.open(path).close()
    before = sorted(path.glob("slots/*/*.run"))
    older_slots.convert(str(path / "slots" / "000"))
    assert sorted(path.glob("slots/*/*.run")) == before
