"""The mark of an environment tells of every commit, also of other processes, after a fork, and if
LMDB's pages look unknown.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lmdb
import pytest

from belvedere.catalog.head import Head
from belvedere.errors import StoreError
from belvedere.readers.cut import CatalogCache
from belvedere.stores.base import CatalogTransaction
from belvedere.stores.embedded import EmbeddedStore, marks
from belvedere.types import Vector

_HEADS = """
import sys
from belvedere.stores.embedded import EmbeddedStore
from belvedere.catalog.head import Head
from belvedere.types import Vector
with EmbeddedStore.open(sys.argv[1]) as store:
    for epoch in range(1, int(sys.argv[2]) + 1):
        store.catalog.transact(lambda t: t.put("head", Head(epoch, 0, Vector()).to_bytes()))
        print(epoch, flush=True)
"""
_COMMIT = (
    "import lmdb, sys\nwith lmdb.open(sys.argv[1]).begin(write=True) as t: t.put(b'k',"
    " sys.argv[2].encode())"
)


@pytest.mark.parametrize(
    "known", [True, False], ids=["pages as expected", "pages of another version"]
)
def test_another_process_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    if not known:
        monkeypatch.setattr(marks, "_KNOWN", (0xBEEFC0DE, 2))
    with lmdb.open(str(tmp_path)) as environment:
        mark = marks.mark_of(environment, str(tmp_path))
        seen = [mark()]
        for number in range(3):
            subprocess.run([sys.executable, "-c", _COMMIT, str(tmp_path), str(number)], check=True)
            seen.append(mark())
            assert mark() == seen[-1]
        with environment.begin(write=True) as transaction:
            transaction.put(b"k", b"own")
        seen.append(mark())
        assert seen == sorted(set(seen))


def test_an_aborted_transaction_leaves_the_mark(tmp_path: Path) -> None:
    def write_and_fail(transaction: CatalogTransaction) -> None:
        transaction.put("a", b"1")
        raise KeyError

    with EmbeddedStore.open(tmp_path, slots=1) as store:
        before = store.catalog.mark()
        with pytest.raises(KeyError):
            store.catalog.transact(write_and_fail)
        assert store.catalog.mark() == before


def test_a_forked_child_sees_commits_of_its_parent(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        before = store.catalog.mark()
        go, told = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            os.read(go[0], 1)
            os.write(told[1], b"new" if store.catalog.mark() != before else b"old")
            os._exit(0)
        store.catalog.transact(lambda transaction: transaction.put("a", b"1"))
        os.write(go[1], b"x")
        assert os.read(told[0], 3) == b"new"
        os.waitpid(child, 0)
        for end in (*go, *told):
            os.close(end)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = EmbeddedStore.open(tmp_path, slots=1)
    assert store.catalog.mark() == store.catalog.mark()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.catalog.mark()


def test_who_reads_during_a_commit_sees_it_afterwards(tmp_path: Path) -> None:
    """LMDB lets readers see a commit only when the disk has it, a moment after the mark has
    changed.
    """
    epochs = 300
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        store.catalog.transact(lambda t: t.put("head", Head(0, 0, Vector()).to_bytes()))
        caches = [CatalogCache(store) for _ in range(2)]
        command = [sys.executable, "-c", _HEADS, str(tmp_path), str(epochs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            os.set_blocking(writer.stdout.fileno(), False)
            told = 0
            while told < epochs:
                lines = (writer.stdout.read() or b"").split()
                assert lines or writer.poll() is None
                told = int(lines[-1]) if lines else told
                assert caches[0].current()[1] >= told  # asks all the time
                if lines:
                    assert caches[1].current()[1] >= told  # asks now and then


@pytest.mark.parametrize("ahead", [0, 1])
def test_what_was_read_belongs_to_its_own_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    with EmbeddedStore.open(tmp_path, slots=1) as store:
        cache = CatalogCache(store)
        mark: Any = store.catalog.mark  # of this store, it counts
        for epoch in range(1, 5):
            with monkeypatch.context() as patch:  # as in the moment before the transaction is seen
                patch.setattr(store.catalog, "mark", lambda: mark() + ahead)
                assert cache.current()[1] == epoch - 1
            store.catalog.transact(lambda t: t.put("head", Head(epoch, 0, Vector()).to_bytes()))  # noqa: B023  # runs at once
            assert cache.current()[1] == epoch
