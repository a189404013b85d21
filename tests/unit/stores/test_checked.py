"""Values with seals, and files that are looked at when they are opened."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import lmdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.errors import Damaged, StoreError
from belvedere.stores.embedded import (
    EmbeddedStore,
    checked,
    layout,
    open_cached,
    run_lists,
    soundness,
)
from belvedere.stores.embedded.checked import Broken

KEYS, VALUES = st.binary(min_size=1, max_size=20), st.binary(max_size=40)


@given(KEYS, VALUES)
def test_a_sealed_value_is_opened_as_it_was(key: bytes, value: bytes) -> None:
    sealed = checked.seal(key, value)
    assert checked.opened(key, sealed) == value
    assert checked.is_whole(key, sealed)
    assert checked.opened(key, memoryview(sealed)) == value  # type: ignore[arg-type]
    assert sealed == value + checked.seal_of(key, value[:7], value[7:])


@given(KEYS, VALUES, st.data())
def test_a_flipped_bit_of_key_or_value_is_noticed(
    key: bytes, value: bytes, data: st.DataObject
) -> None:
    sealed = checked.seal(key, value)
    both = bytearray(key + sealed)
    both[data.draw(st.integers(0, len(both) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    other, flipped = bytes(both[: len(key)]), bytes(both[len(key) :])
    assert not checked.is_whole(other, flipped)
    with pytest.raises(Broken):
        checked.opened(other, flipped)


@given(KEYS, st.binary(max_size=checked.CHECK_SIZE - 1))
def test_what_is_too_short_for_a_seal_is_none(key: bytes, value: bytes) -> None:
    with pytest.raises(Broken):
        checked.opened(key, value)


WRITTEN = (
    b"\0\0\0\0l" + bytes(8),
    *(b"\0\0\0\0m" + name for name in (b"end", b"floors", b"store", b"parts", b"count\0\0\0\7")),
    run_lists.key_of(run_lists.owner_of(7), 41),
    b"\0\0\0\0r" + bytes(14),
    b"\0\0\0\0ssmall-0123456789ab",
    b"view/12",
)


@pytest.mark.parametrize("key", WRITTEN)
def test_a_flipped_key_is_no_key_or_has_another_value(key: bytes) -> None:
    assert checked.is_known(key)
    for bit in range(8 * len(key)):
        flipped = bytearray(key)
        flipped[bit // 8] ^= 1 << bit % 8
        other = bytes(flipped)
        has_own_check = other.startswith((b"\0\0\0\0l", b"\0\0\0\0ssmall-"))
        assert not checked.is_known(other) or checked.is_sealed(other) or has_own_check, other


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (b"view/12", "the entry view/12"),
        (run_lists.key_of(run_lists.owner_of(7), 41), "the list of runs of table 7 after 41"),
        (run_lists.COUNT + (9).to_bytes(4, "big"), "the count of table 9"),
        (run_lists.FLOORS, "the entry floors"),
        (b"\0\0\0\0l" + (1234).to_bytes(8, "big"), "the log block at position 1,234"),
        (b"\0\0\0\0ssmall-abc", "the section small-abc"),
        (b"\0\0\0\5key", "a row of table 5"),
    ],
)
def test_errors_say_what_stands_under_a_key(key: bytes, words: str) -> None:
    assert str(Broken(key)) == f"{words} is not what was written"


def filled(folder: Path) -> int:
    """A file with far more log blocks than are looked at, and floors behind them; the number of its
    transaction.
    """
    with lmdb.open(str(folder), map_size=1 << 28) as environment:
        with environment.begin(write=True) as transaction:
            for position in range(40_000):
                key = b"\0\0\0\0l" + position.to_bytes(8, "big")
                transaction.put(key, checked.seal(key, b"b" * 100))
            run_lists.set_floors(transaction, 3, 2, 1)
        return int(environment.info()["last_txnid"])


def replace(folder: Path, old: bytes, new: bytes) -> None:
    data = (folder / "data.mdb").read_bytes()
    assert old in data
    (folder / "data.mdb").write_bytes(data.replace(old, new))


def test_of_a_large_log_only_what_is_not_the_log_is_looked_at(tmp_path: Path) -> None:
    number = filled(tmp_path)
    middle = (20_000).to_bytes(8, "big")
    replace(tmp_path, b"l" + middle, b"k" + middle)  # out of order; its reader will miss it
    assert soundness.check(str(tmp_path), number)
    replace(tmp_path, b"mfloors", b"mfleers")
    with pytest.raises(Damaged, match=r"data\.mdb: there is the entry fleers, which cannot be"):
        soundness.check(str(tmp_path), number)


def test_a_transaction_whose_meta_page_is_gone_is_not_looked_at(tmp_path: Path) -> None:
    number = filled(tmp_path)
    assert not soundness.check(str(tmp_path), number + 1)


def test_an_entry_of_the_catalog_is_named(tmp_path: Path) -> None:
    with EmbeddedStore.open(tmp_path / "db", slots=1) as store:
        store.catalog.transact(lambda t: t.put("view/3", b"a definition"))
        store.catalog.transact(lambda t: t.put("view/4", b"another one"))
    replace(tmp_path / "db" / "catalog", b"a definition", b"a definitiox")
    with pytest.raises(Damaged, match=r"catalog/data\.mdb: the entry view/3 is not what"):
        EmbeddedStore.open(tmp_path / "db")


def test_a_damaged_store_is_refused_by_workers_too(tmp_path: Path) -> None:
    """Who opens it for a task held a lock that closing it again waits for."""
    with EmbeddedStore.open(tmp_path / "db", slots=1) as store:
        store.catalog.transact(lambda t: t.put("view/3", b"a definition"))
    replace(tmp_path / "db" / "catalog", b"a definition", b"a definitiox")
    refused: list[Damaged] = []

    def work() -> None:
        try:
            open_cached(tmp_path / "db")
        except Damaged as error:
            refused.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(60)
    assert len(refused) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("slots", 1), ("format", 4), ("id", "0" * 32), ("checksum", "00000000")]
)
def test_a_number_in_the_format_file_that_was_changed_is_noticed(
    tmp_path: Path, name: str, value: object
) -> None:
    EmbeddedStore.open(tmp_path / "db", slots=2).close()
    file = tmp_path / "db" / layout.FORMAT_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    with pytest.raises(StoreError, match=r"format\.json is damaged \(its checksum is wrong\)"):
        EmbeddedStore.open(tmp_path / "db")
