"""Room given back by a store that nobody else has open."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import StoreError
from belvedere.stores.embedded import EmbeddedStore, compacting, parts, run_lists
from belvedere.stores.embedded.runs import is_small
from belvedere.waiting import wait_until
from tests.integration import shop
from tests.unit.stores.test_backup import opened, places
from tests.unit.stores.test_backup import runs as run_files


def grown(path: Path) -> Path:
    """A shop in which most rows were overwritten or deleted, and a table was dropped."""
    with opened(path) as db:
        db.sql(shop.TABLE)
        shop.create(db)
        db.sql("CREATE TABLE other (id INT PRIMARY KEY, v STRING)")
        db.table("other").put_many([{"id": i, "v": "x" * 200} for i in range(20_000)])
        for seed in range(8):
            db.table("orders").put_many(shop.rows(8000, seed, keys=10_000))
            db.catch_up()
        db.sql("DELETE FROM orders WHERE amount > -500")
        db.sql("DROP TABLE other")
        db.catch_up()
    return path


def numbers(path: Path) -> list[int]:
    with EmbeddedStore.open(path) as store:
        return [each.number() for each in store._environments]


def used(path: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in path.rglob("*") if file.is_file())


def test_room_is_given_back_and_views_stay(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    before = used(path)
    done = belvedere.compact(path)
    assert done.after < done.before / 2
    assert before - used(path) == done.before - done.after
    with opened(path) as db:
        shop.check(db)
        db.table("orders").put_many(shop.rows(3000, 77))
        db.catch_up()
        shop.check(db)
    again = belvedere.compact(path)
    assert again.before - again.after < done.before / 10


def test_every_table_is_one_run_then_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    belvedere.compact(path)
    with opened(path) as db:
        found = [place.environment.read(lambda t: list(run_lists.every(t))) for place in places(db)]
    lists = [run_lists.decode(data, "") for some in found for _, _, data in some]
    in_files = [runs for runs in lists if any(not is_small(r.file) for run in runs for r in run)]
    assert {len(runs) for runs in in_files} == {1}
    named = {ref.file for runs in in_files for run in runs for ref in run}
    assert {file.name for file in run_files(path)} == named


def test_numbers_of_transactions_stay_or_grow(tmp_path: Path) -> None:
    """Else parts would look older than others have seen them."""
    path = grown(tmp_path / "shop")
    before = numbers(path)
    belvedere.compact(path)
    after = numbers(path)
    assert all(one <= other for one, other in zip(before, after, strict=True))
    belvedere.compact(path)
    assert len(after) == len(parts.names(2))


def test_a_store_that_is_open_is_not_compacted(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    with opened(path) as db:
        with pytest.raises(StoreError, match="is open, in this or another process"):
            belvedere.compact(path)
        shop.check(db)


@pytest.mark.parametrize("options", ["", ", read_only=True"])
def test_a_store_that_another_process_has_open_is_not_compacted(
    tmp_path: Path, options: str
) -> None:
    path = grown(tmp_path / "shop")
    code = f"import belvedere, sys; db = belvedere.open({str(path)!r}{options}); db.status()"
    code += "; print('open', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    before = {file: file.stat().st_mtime_ns for file in path.rglob("data.mdb")}
    with pytest.raises(StoreError, match="can only be compacted alone: stop belvedere run"):
        belvedere.compact(path)
    assert {file: file.stat().st_mtime_ns for file in path.rglob("data.mdb")} == before
    child.communicate("")
    belvedere.compact(path)


def test_rights_stay_as_they_were(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    data = path / "base" / "data.mdb"
    data.chmod(0o640)
    inode = data.stat().st_ino
    belvedere.compact(path)
    assert data.stat().st_ino != inode
    assert data.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_store_that_cannot_be_written_is_not_compacted(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    (path / "base" / "data.mdb").chmod(0o400)
    with pytest.raises(StoreError, match="cannot be compacted: there is no right to write"):
        belvedere.compact(path)


def test_who_opens_the_store_meanwhile_waits_and_finds_it_compacted(tmp_path: Path) -> None:
    path = grown(tmp_path / "shop")
    found: list[int] = []

    def open_and_count() -> None:
        with opened(path) as db:
            found.append(db.table("orders").to_arrow().num_rows)

    opener = threading.Thread(target=open_and_count)

    def clean(store: EmbeddedStore) -> None:
        opener.start()
        assert wait_until(lambda: _is_waited_for(path) or None, 60)
        assert not found

    done = compacting.compact(path, clean)
    opener.join(60)
    with opened(path) as db:
        assert found == [db.table("orders").to_arrow().num_rows]
    assert done.after < done.before


def _is_waited_for(path: Path) -> bool:
    """Whether somebody waits for the lock of a directory; the system lists such locks."""
    inode = f":{path.stat().st_ino} "
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any("->" in line and inode in line for line in locks)
