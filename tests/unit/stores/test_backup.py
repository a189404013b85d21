"""Backups of a store, what they refuse, and stores that are made of them."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import belvedere
from belvedere.catalog.head import Head
from belvedere.catalog.pins import hold, oldest_pin
from belvedere.catalog.state import read_head
from belvedere.database import Database
from belvedere.epochs.coordinator import Coordinator
from belvedere.epochs.intent import Intent
from belvedere.epochs.lease import holder
from belvedere.epochs.local import LocalRunner
from belvedere.epochs.manager import Ack
from belvedere.errors import StoreError, StoreFull
from belvedere.stores.embedded import (
    EmbeddedStore,
    backup,
    checked,
    copies,
    files,
    merging,
    part_files,
    run_lists,
)
from belvedere.stores.embedded.environment import Environment, Transaction
from belvedere.stores.embedded.places import Place
from belvedere.types import Vector
from tests.integration import shop


def opened(path: Path) -> Database:
    db = belvedere.open(path, slots=2)
    db._runner = LocalRunner(db.store)
    return db


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    """A shop whose runs are in files."""
    with opened(tmp_path / "shop") as made:
        made.sql(shop.TABLE)
        shop.create(made)
        for seed in range(6):
            made.table("orders").put_many(shop.rows(4000, seed, keys=20_000))
            made.catch_up()
        yield made


def places(db: Database) -> Sequence[Place]:
    assert isinstance(db.store, EmbeddedStore)
    return db.store.places


def runs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.run"))


def check_restored(source: Path, target: Path) -> None:
    belvedere.restore(source, target)
    with opened(target) as restored:
        restored.catch_up()
        shop.check(restored)


def tree(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): p.stat().st_ino for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------- one cut


def test_a_backup_is_restored_as_it_was_whatever_is_written_later(
    db: Database, tmp_path: Path
) -> None:
    wanted = {name: db.view(name).to_arrow().to_pylist() for name in shop.VIEWS}
    taken = db.backup(tmp_path / "b")
    assert taken.bytes > taken.copied_bytes > 0
    for seed in range(20, 26):
        db.table("orders").put_many(shop.rows(4000, seed))
        db.catch_up()
    db.sql("DROP MATERIALIZED VIEW paid")
    belvedere.restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r") as restored:
        found = {name: restored.view(name).to_arrow().to_pylist() for name in shop.VIEWS}
        assert found == wanted
        shop.check(restored)


def test_runs_are_linked_and_what_is_written_to_is_copied(db: Database, tmp_path: Path) -> None:
    db.backup(tmp_path / "b")
    belvedere.restore(tmp_path / "b", tmp_path / "r")
    ours, theirs = tree(tmp_path / "shop"), tree(tmp_path / "b")
    again = tree(tmp_path / "r")
    linked = {name for name in theirs if ours.get(name) == theirs[name]}
    assert linked == {name for name in theirs if name.endswith(".run")} != set()
    assert {name for name in theirs if again.get(name) == theirs[name]} == linked


def test_a_restored_database_goes_its_own_way(db: Database, tmp_path: Path) -> None:
    """Parts of it and of the database that was backed up are not taken for each other's."""
    db.backup(tmp_path / "b")
    for name in ("r1", "r2"):
        check_restored(tmp_path / "b", tmp_path / name)
    db.table("orders").put_many(shop.rows(3000, 7))
    db.catch_up()
    shop.check(db)
    ids = [json.loads((tmp_path / n / "format.json").read_text())["id"] for n in ("shop", "r1")]
    assert ids[0] != ids[1]
    shutil.rmtree(tmp_path / "r1" / "base")
    shutil.copytree(tmp_path / "r2" / "base", tmp_path / "r1" / "base")
    with pytest.raises(StoreError, match="belongs to another store"):
        belvedere.open(tmp_path / "r1")


def test_a_backup_of_a_restored_and_compacted_database_is_a_backup(
    db: Database, tmp_path: Path
) -> None:
    db.backup(tmp_path / "b1")
    check_restored(tmp_path / "b1", tmp_path / "r1")
    belvedere.compact(tmp_path / "r1")
    with opened(tmp_path / "r1") as restored:
        restored.table("orders").put_many(shop.rows(3000, 8))
        restored.catch_up()
        restored.backup(tmp_path / "b2")
    check_restored(tmp_path / "b2", tmp_path / "r2")


class _Died(Exception):
    pass


class _Dying:
    """A runner whose attempts are written, and never acknowledged."""

    def __init__(self, inner: LocalRunner) -> None:
        self._inner = inner

    def run(self, intent: Intent) -> list[Ack]:
        self._inner.run(intent)
        raise _Died


def test_an_open_epoch_a_lease_and_pins_do_not_hinder_the_restored_database(
    db: Database, tmp_path: Path
) -> None:
    db.table("orders").put_many(shop.rows(4000, 9))
    coordinator = Coordinator(db.store, _Dying(LocalRunner(db.store)))
    assert coordinator.acquire()
    with pytest.raises(_Died):
        coordinator.step()
    hold(db.store, 3600.0)
    epoch = db.status().epoch
    db.backup(tmp_path / "b")
    assert db.status().coordinator  # this process has the lease, and is alive
    belvedere.restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r") as restored:
        now = coordinator.now()
        assert restored.store.catalog.get_one("intent") is not None
        assert holder(restored.store, now) is None
        assert oldest_pin(restored.store, now) is None
        assert restored.status().epoch == epoch
        restored.catch_up(timeout=30)
        shop.check(restored)


def test_dropped_tables_and_views_are_dropped_in_the_backup(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE TABLE other (id INT PRIMARY KEY, v INT)")
    db.table("other").put_many([{"id": i, "v": i} for i in range(2000)])
    db.sql("DROP MATERIALIZED VIEW extremes")
    db.sql("DROP TABLE other")
    db.backup(tmp_path / "b")
    belvedere.restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r") as restored:
        restored.catch_up()
        assert sorted(restored.state().tables) == ["orders"]
        shop.check(restored, {n: s for n, s in shop.VIEWS.items() if n != "extremes"})


def test_a_cut_is_taken_again_when_the_catalog_changes_meanwhile(
    db: Database, tmp_path: Path
) -> None:
    """The last part that begins finds a commit of an epoch that the catalog's has not seen."""
    store = db.store
    environments: list[Environment] = store._environments  # type: ignore[attr-defined]
    tries: list[None] = []

    class Late:
        """A part before whose transaction something is committed, the first two times."""

        def begin_read(self) -> Transaction:
            tries.append(None)
            if len(tries) < 3:
                db.table("orders").put_many(shop.rows(100, len(tries)))
                db.catch_up()
            return environments[-1].begin_read()

        def end_read(self, transaction: Transaction) -> None:
            environments[-1].end_read(transaction)

    with backup.cut([*environments[:-1], Late()]) as transactions:  # type: ignore[list-item]
        assert len(tries) == 3
        head = Head.from_bytes(checked.opened(b"head", transactions[0].get(b"head")))
        assert head == store.catalog.read(read_head)
        assert max(map(run_lists.seen, transactions[2:])) <= transactions[0].id()


def _go_on(db: Database, seed: int) -> None:
    """An epoch, a merge of everything, and a collection."""
    db.table("orders").put_many(shop.rows(6000, seed, keys=20_000))
    coordinator = Coordinator(db.store, LocalRunner(db.store))
    assert coordinator.acquire()
    coordinator.step()
    for place in places(db):
        lists = place.environment.read(lambda t: list(run_lists.every(t)))
        for owner in {owner for owner, _, _ in lists}:
            merge = place.environment.read(partial(merging.whole_merge, owner=owner))
            if merge is not None:
                merging.do(place.environment, place.files, merge, lambda: False)
    coordinator.clean()
    coordinator.release()


def test_files_that_are_merged_away_meanwhile_make_it_begin_again(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a cut and the linking of its files."""
    real = backup.cut
    cuts: list[int] = []

    @contextmanager
    def late(environments: Sequence[Environment]) -> Iterator[list[Transaction]]:
        cuts.append(len(cuts))
        if len(cuts) < 4:
            _go_on(db, 2 * len(cuts))  # else all its files are linked already
        with real(environments) as transactions:
            if len(cuts) < 4:
                _go_on(db, 2 * len(cuts) + 1)
            yield transactions

    monkeypatch.setattr(backup, "cut", late)
    db.backup(tmp_path / "b")
    assert len(cuts) == 4
    listed = backup.read(tmp_path / "b").sizes
    assert set(listed) == set(tree(tmp_path / "b")) - {"backup.json"}  # nothing of the other cuts
    check_restored(tmp_path / "b", tmp_path / "r")


def test_a_list_that_is_collected_may_name_files_that_are_gone(
    db: Database, tmp_path: Path
) -> None:
    """A crash inside of a collection: files are gone, and its transaction was not committed."""
    gone = 0
    for place in places(db):
        path = place.environment.path
        wanted = place.environment.read(partial(part_files.needed, path=path))
        for name in set(wanted.by_any) - set(wanted.by_newest):
            place.files.remove(name)
            gone += 1
    assert gone
    db.backup(tmp_path / "b")
    check_restored(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "shop") as again:
        shop.check(again)


# ---------------------------------------------------------------- other file systems


def never(source: Path, target: Path) -> bool:
    return False


def test_on_another_file_system_only_what_an_earlier_backup_lacks_is_copied(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = copies.link

    def elsewhere(source: Path, target: Path) -> bool:
        return source.is_relative_to(tmp_path / "disk") and link(source, target)

    monkeypatch.setattr(copies, "link", elsewhere)
    first = db.backup(tmp_path / "disk" / "b1")
    assert first.copied_bytes == first.bytes
    db.table("orders").put_many(shop.rows(10, 99))
    db.catch_up()
    second = db.backup(tmp_path / "disk" / "b2", base=tmp_path / "disk" / "b1")
    assert second.copied_bytes < second.bytes
    one, two = tree(tmp_path / "disk" / "b1"), tree(tmp_path / "disk" / "b2")
    assert {n for n in two if n in one and n.endswith(".run")} == {
        n for n in two if one.get(n) == two[n]
    }
    check_restored(tmp_path / "disk" / "b2", tmp_path / "r")


def test_a_file_of_an_earlier_backup_that_is_cut_off_is_not_linked(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.backup(tmp_path / "b1")
    short = runs(tmp_path / "b1")[0]
    content = short.read_bytes()
    short.unlink()
    short.write_bytes(content[:-1])
    link = copies.link
    monkeypatch.setattr(
        copies, "link", lambda s, t: s.is_relative_to(tmp_path / "b1") and link(s, t)
    )
    db.backup(tmp_path / "b2", base=tmp_path / "b1")
    check_restored(tmp_path / "b2", tmp_path / "r")


# ---------------------------------------------------------------- refused


def refused_targets(folder: Path) -> dict[str, tuple[Path, str]]:
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("mine")
    (folder / "a file").write_text("mine")
    return {
        "not empty": (folder / "full", "is not empty"),
        "a file": (folder / "a file", "is a file"),
        "the store": (folder / "shop", "inside of, a database"),
        "inside": (folder / "shop" / "base" / "b", "inside of, a database"),
        "around": (folder, "is inside of"),
        "below a file": (folder / "a file" / "b", "cannot be used"),
    }


@pytest.mark.parametrize(
    "which", ["not empty", "a file", "the store", "inside", "around", "below a file"]
)
def test_a_directory_that_is_in_use_is_refused_and_left_alone(
    db: Database, tmp_path: Path, which: str
) -> None:
    target, why = refused_targets(tmp_path)[which]
    before = tree(tmp_path)
    with pytest.raises(StoreError, match=why):
        db.backup(target)
    assert tree(tmp_path) == before
    db.backup(tmp_path / "b")
    before = tree(tmp_path)
    with pytest.raises(StoreError):
        belvedere.restore(tmp_path / "b", target)
    assert tree(tmp_path) == before


def test_a_backup_is_no_database_and_a_database_is_no_backup(db: Database, tmp_path: Path) -> None:
    db.backup(tmp_path / "b")
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreError, match="is a backup: make a database of it"):
            belvedere.open(tmp_path / "b", **options)
    (tmp_path / "empty").mkdir()
    for name in ("shop", "empty", "nowhere"):
        with pytest.raises(StoreError, match="is not a backup"):
            belvedere.restore(tmp_path / name, tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_what_has_no_directory_is_not_backed_up(tmp_path: Path) -> None:
    with belvedere.open("memory:") as db, pytest.raises(StoreError, match="cannot be backed up"):
        db.backup(tmp_path / "b")
    for url in ("memory:", "hbase://nowhere:2181/shop"):
        with pytest.raises(StoreError, match="cannot be compacted"):
            belvedere.compact(url)
    for wrong in (None, b"x", 3, ""):
        with pytest.raises(StoreError, match="named by text"):
            belvedere.restore(wrong, tmp_path / "r")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="is not a Belvedere database"):
        belvedere.compact(tmp_path / "nowhere")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a file is missing": lambda b: runs(b)[0].unlink(),
    "a part is missing": lambda b: shutil.rmtree(b / "slots/001"),
    "a file is cut off": lambda b: os.truncate(b / "base/data.mdb", 4096),
    "a byte of LMDB is flipped": lambda b: _flip(b / "base/data.mdb"),
    "a byte of the list is flipped": lambda b: _flip(b / "backup.json"),
    "it was interrupted": lambda b: (b / "backup.json").rename(b / "backup.json.new"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_backup_that_is_not_whole_is_refused_and_nothing_is_left(
    db: Database, tmp_path: Path, how: str
) -> None:
    db.backup(tmp_path / "b")
    DAMAGE[how](tmp_path / "b")
    with pytest.raises(StoreError, match=r"missing|damaged|interrupted|should have"):
        belvedere.restore(tmp_path / "b", tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("way", ["backup", "restore"])
def test_a_full_disk_leaves_nothing_and_says_so(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Here the limit of a file's size, of which the system says the same."""
    db.backup(tmp_path / "b")
    ways: dict[str, Callable[[Path], object]] = {
        "backup": db.backup,
        "restore": partial(belvedere.restore, tmp_path / "b"),
    }
    monkeypatch.setattr(copies, "link", never)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreFull, match="is full or over a limit; nothing is left there"):
            ways[way](tmp_path / "new" / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "new" / "b").exists()
    shop.check(db)


def test_a_lost_run_is_named_when_the_store_is_opened_and_when_it_is_backed_up(
    db: Database, tmp_path: Path
) -> None:
    place = places(db)[0]
    path = place.environment.path
    newest = place.environment.read(lambda t: part_files.needed(t, path)).by_newest
    lost = Path(path) / min(newest)
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(StoreError, match=f"{lost.name} is missing or cut off, a part"):
        db.backup(tmp_path / "b")
    db.close()
    with pytest.raises(StoreError, match=rf"{lost.name} is missing.*Restore the whole"):
        belvedere.open(tmp_path / "shop")
    lost.write_bytes(content[: newest[lost.name] - 1])
    with pytest.raises(StoreError, match=rf"{lost.name} is cut off.*Restore the whole"):
        belvedere.open(tmp_path / "shop")
    lost.write_bytes(content)
    with opened(tmp_path / "shop") as again:
        shop.check(again)


# ---------------------------------------------------------------- numbers of copies


@given(st.integers(1, 9), st.integers(0, 3))
def test_a_copy_has_the_number_of_its_transaction_and_survives_a_torn_commit(
    tmp_path_factory: pytest.TempPathFactory, before: int, later: int
) -> None:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "copy").mkdir()
    with lmdb.open(str(folder / "one"), map_size=1 << 20) as environment:
        for number in range(before):
            _put(environment, b"%d" % number)
        with environment.begin() as transaction:
            for number in range(later):
                _put(environment, b"later %d" % number)
            with (folder / "copy" / "data.mdb").open("xb") as file:
                environment.copyfd(file.fileno(), compact=True, txn=transaction)
            files.renumber(str(folder / "copy" / "data.mdb"), transaction.id())
            assert _content(folder / "copy") == (before, before)
    with lmdb.open(str(folder / "copy"), map_size=1 << 20) as environment:
        _put(environment, b"next")
    assert _content(folder / "copy") == (before + 1, before + 1)
    _tear(folder / "copy" / "data.mdb", before + 1)
    assert _content(folder / "copy") == (before, before)


def _put(environment: lmdb.Environment, key: bytes) -> None:
    with environment.begin(write=True) as transaction:
        transaction.put(key, b"x" * 1000)


def _content(folder: Path) -> tuple[int, int]:
    with lmdb.open(str(folder), map_size=1 << 20) as environment, environment.begin() as found:
        return found.id(), len(list(found.cursor()))


def _tear(path: Path, number: int) -> None:
    """What the disk has if a commit's meta page did not get there."""
    with path.open("r+b") as file:
        file.seek(number % 2 * 4096 + 144)
        assert int.from_bytes(file.read(8), "little") == number
        file.seek(number % 2 * 4096 + 144)
        file.write(bytes(8))


def test_vectors_of_a_backup_are_those_of_its_moment(db: Database, tmp_path: Path) -> None:
    end = db.store.base.end()
    db.backup(tmp_path / "b")
    db.table("orders").put_many(shop.rows(100, 3))
    belvedere.restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r") as restored:
        assert restored.store.base.end() == end != Vector()
