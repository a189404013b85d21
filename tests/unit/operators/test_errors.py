"""Error records: they come and go with their rows, and the counter says how many there are."""

from __future__ import annotations

import pyarrow as pa

from belvedere.operators.errors import COUNT, COUNTER, ROW, error_rows, record_errors
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


def test_the_empty_identity_of_a_global_aggregate_is_a_row_like_others() -> None:
    slot = OneSlot()
    assert record(slot, (b"", 1, 0)) == 1
    assert record(slot, (b"", -1, 0)) == 0
