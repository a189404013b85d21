"""Error records: they come and go with their rows, and the counter says how many there are."""

from __future__ import annotations

from hashlib import blake2b

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from belvedere.operators.errors import (
    COUNT,
    COUNTER,
    ROW,
    error_rows,
    identity_in,
    record_errors,
)
from belvedere.stores.base import Write
from belvedere.testing import OneSlot

_TABLE = 5


def record(slot: OneSlot, *rows: tuple[bytes, int, int]) -> int:
    shard = slot.shard()
    columns = [
        pa.array([r[i] for r in rows], kind)
        for i, kind in enumerate((pa.binary(), pa.int64(), pa.int32()))
    ]
    count = record_errors(shard, _TABLE, error_rows(*columns))
    shard.commit()
    assert COUNT.unpack(slot.records(_TABLE)[COUNTER])[0] == count
    return count


def test_an_error_comes_and_goes_with_its_row() -> None:
    slot = OneSlot()
    assert record(slot, (b"a", 1, 0), (b"b", 1, 2)) == 2
    assert {k: COUNT.unpack(v) for k, v in slot.records(_TABLE).items() if k != COUNTER} == {
        ROW + b"a": (1, 0),
        ROW + b"b": (1, 2),
    }
    assert record(slot, (b"a", -1, 0)) == 1
    assert record(slot, (b"b", -1, 2)) == 0
    assert list(slot.records(_TABLE)) == [COUNTER]


def test_a_row_that_changes_and_still_raises_is_one_error() -> None:
    slot = OneSlot()
    record(slot, (b"a", 1, 0))
    assert record(slot, (b"a", -1, 0), (b"a", 1, 0)) == 1


@given(st.sets(st.integers(495, 510), min_size=1), st.booleans())
def test_rows_with_long_identities_are_told_apart_and_named(sizes: set[int], alike: bool) -> None:
    """Also where they differ only at their end."""
    slot = OneSlot()
    ids = [b"k" * size + b"%d" % (0 if alike else size) for size in sizes]
    assert record(slot, *((identity, 1, 2) for identity in ids)) == len(ids)
    found = {k: v for k, v in slot.records(_TABLE).items() if k != COUNTER}
    assert all(len(key) <= 503 for key in found)
    assert {identity_in(key, value) for key, value in found.items()} == set(ids)
    assert {COUNT.unpack_from(value) for value in found.values()} == {(1, 2)}
    assert record(slot, *((identity, -1, 2) for identity in ids)) == 0
    assert list(slot.records(_TABLE)) == [COUNTER]


def test_a_record_of_a_long_identity_that_has_not_kept_it_goes_with_its_row() -> None:
    """Values had no identities once."""
    slot, identity = OneSlot(), b"k" * 600
    digest = blake2b(ROW + identity, digest_size=16).digest()
    key = (ROW + identity)[: 503 - 16] + digest
    shard = slot.shard()
    records = {COUNTER: COUNT.pack(1, 0), key: COUNT.pack(1, 2)}
    keys, values = pa.array(records, pa.binary()), pa.array(records.values(), pa.binary())
    shard.write(Write(_TABLE, keys, values, pa.nulls(2, pa.binary())))
    shard.commit()
    assert record(slot, (identity, -1, 2)) == 0
    assert list(slot.records(_TABLE)) == [COUNTER]


def test_the_empty_identity_of_a_global_aggregate_is_a_row_like_others() -> None:
    slot = OneSlot()
    assert record(slot, (b"", 1, 0)) == 1
    assert record(slot, (b"", -1, 0)) == 0
