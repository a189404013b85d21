"""The slot of a key never changes, is the same for one key and for
many, and spreads keys evenly.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import KeyCodec, slot_hash, slot_hash_one, slot_of, slots_of
from belvedere.types import BIGINT, STRING


@given(st.lists(st.binary(max_size=40), max_size=12), st.data())
def test_the_fast_hash_is_the_plain_hash(keys: list[bytes], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(keys)))
    hashes = slot_hash(pa.array(keys, pa.binary()).slice(start))
    assert hashes.dtype == np.uint32
    assert hashes.tolist() == [slot_hash_one(key) for key in keys[start:]]


@pytest.mark.parametrize("longest", [0, 7, 8, 511, 512, 519, 520, 5_000, 100_000])
def test_many_keys_of_which_some_are_long_are_hashed_as_each_alone(longest: int) -> None:
    some = [bytes([i]) * (i * longest // 99) for i in range(100)]
    all_long = [key + b"x" * 520 for key in some]
    for keys in (some, all_long):
        hashes = slot_hash(pa.array([b"skipped", *keys], pa.binary()).slice(1))
        assert hashes.tolist() == [slot_hash_one(key) for key in keys]


@given(st.lists(st.binary(max_size=12)), st.integers(1, 1000))
def test_slots_of_many_keys_are_the_slots_of_each(keys: list[bytes], count: int) -> None:
    slots = slots_of(pa.array(keys, pa.binary()), count)
    assert slots.dtype == np.int64
    assert slots.tolist() == [slot_of(key, count) for key in keys]
    assert all(0 <= slot < count for slot in slots)


def test_the_hash_is_persisted_and_never_changes() -> None:
    assert [slot_hash_one(key) for key in PINNED] == list(PINNED.values())


def test_zero_bytes_at_the_end_count() -> None:
    assert len({slot_hash_one(b"\x01" + bytes(n)) for n in range(20)}) == 20


@pytest.mark.parametrize("count", [7, 16, 64, 1000])
@pytest.mark.parametrize("shape", ["names", "numbers", "multiples"])
def test_keys_spread_evenly(shape: str, count: int) -> None:
    total = 100_000
    if shape == "names":
        keys = KeyCodec((STRING,)).encode([pa.array([f"k{i:09d}" for i in range(total)])])
    else:
        step = 4096 if shape == "multiples" else 1
        keys = KeyCodec((BIGINT,)).encode([pa.array(np.arange(total, dtype=np.int64) * step)])
    seen = np.bincount(slots_of(keys, count), minlength=count)
    chi_square = float(((seen - total / count) ** 2 / (total / count)).sum())
    # six standard deviations above the mean
    assert chi_square < count - 1 + 6 * (2 * (count - 1)) ** 0.5


PINNED = {
    b"": 0xFFFFFFFF,
    b"a": 0xC54AAE31,
    b"12345678": 0x003DFA39,
    b"\x01k000000123\x00": 0x428B6208,
}
