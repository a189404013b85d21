"""LMDB's pages as they are read without it: all entries, and every flipped byte that matters."""

from __future__ import annotations

import random
from pathlib import Path

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belvedere.errors import StoreError
from belvedere.stores.embedded import checked, files, trees

KEYS = st.binary(min_size=1, max_size=40) | st.integers(0, 400).map(lambda n: b"k%d" % n)
SIZES = st.sampled_from([0, 1, 30, 700, 2100, 5000, 20_000])
STEPS = st.lists(st.dictionaries(KEYS, st.none() | SIZES, min_size=1), min_size=1, max_size=12)


def value_of(key: bytes, size: int) -> bytes:
    return (key * (size // len(key) + 1))[:size]


def write(path: Path, steps: list[dict[bytes, int | None]]) -> dict[bytes, bytes]:
    """One transaction for each step; what is there in the end."""
    expected: dict[bytes, bytes] = {}
    with lmdb.open(str(path), map_size=1 << 28) as environment:
        for step in steps:
            with environment.begin(write=True) as transaction:
                for key, size in step.items():
                    if size is None:
                        transaction.delete(key)
                        expected.pop(key, None)
                    else:
                        expected[key] = checked.seal(key, value_of(key, size))
                        transaction.put(key, expected[key])
    return expected


def read(path: Path, found: list[str]) -> dict[bytes, bytes]:
    with (path / "data.mdb").open("rb") as file:
        meta = files.newest_meta(file)
        assert meta is not None
        return dict(trees.entries(file.fileno(), meta, found.append))


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_whatever_lmdb_writes_is_read_and_found_sound(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[bytes, int | None]]
) -> None:
    path = tmp_path_factory.mktemp("tree")
    expected, found = write(path, steps), list[str]()
    assert read(path, found) == expected
    assert found == []


def filled(path: Path) -> dict[bytes, bytes]:
    """A tree of two levels with large values, some of them replaced, and free pages."""
    chance = random.Random(3)
    first: dict[bytes, int | None] = {
        b"key %05d" % n: chance.choice([3, 40, 300]) for n in range(400)
    }
    first |= {b"large %d" % n: 9000 + 3000 * n for n in range(4)}
    second: dict[bytes, int | None] = dict.fromkeys(list(first)[50:200])
    third: dict[bytes, int | None] = {b"large 2": 5000, b"key 00007": 12}
    return write(path, [first, second, third])


def test_a_flipped_byte_is_found_or_changes_nothing(tmp_path: Path) -> None:
    """Values and keys are found by their seals, all else by the pages."""
    expected = filled(tmp_path / "db")
    data = tmp_path / "db" / "data.mdb"
    whole = data.read_bytes()
    chance = random.Random(7)
    heads = [page + at for page in range(0, len(whole), 4096) for at in range(0, 160, 7)]
    noticed = 0
    for at in [*heads, *(chance.randrange(len(whole)) for _ in range(600))]:
        damaged = bytearray(whole)
        damaged[at] ^= 1 << chance.randrange(8)
        data.write_bytes(damaged)
        found: list[str] = []
        try:
            files.check_whole(str(data.parent))
            entries = read(data.parent, found)
        except StoreError:
            noticed += 1
            continue
        broken = [key for key, value in entries.items() if not checked.is_whole(key, value)]
        assert found or broken or entries == expected, at
        noticed += bool(found or broken)
    assert noticed > 300


def test_an_older_state_under_a_newer_number_is_found(tmp_path: Path) -> None:
    """What LMDB takes for its last transaction is the one before."""
    filled(tmp_path / "db")
    data = tmp_path / "db" / "data.mdb"
    with data.open("rb") as file:
        newest = files.newest_meta(file)
    assert newest is not None
    whole = bytearray(data.read_bytes())
    older = 4096 * ((newest.number + 1) % 2)
    whole[older + 144 : older + 152] = (newest.number + 1).to_bytes(8, "little")
    data.write_bytes(whole)
    found: list[str] = []
    read(data.parent, found)
    assert f"its list of free pages is of transaction {newest.number - 1}, not of" in found[0]


def test_leaves_that_are_skipped_are_not_read(tmp_path: Path) -> None:
    expected = filled(tmp_path / "db")
    with (tmp_path / "db" / "data.mdb").open("rb") as file:
        meta, found = files.newest_meta(file), list[str]()
        assert meta is not None

        def is_skipped(low: bytes, high: bytes | None) -> bool:
            return low >= b"key" and high is not None and high < b"l"

        some = dict(trees.entries(file.fileno(), meta, found.append, is_skipped))
    assert found == []
    assert some.items() < expected.items()
    assert {key for key in expected if key.startswith(b"large")} <= some.keys()
