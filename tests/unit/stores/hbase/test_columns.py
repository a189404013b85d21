from __future__ import annotations

import random

import pyarrow as pa
import pytest

from belvedere.stores.hbase.columns import numbers, pack, unpack


def binary(*values: bytes | None) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 64, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_columns_come_back_as_they_went_in_also_sliced(rows: int, nulls: float) -> None:
    draw = random.Random(rows)
    made = [column(draw, rows + 5, nulls) for _ in range(3)]
    sliced = [each.slice(3, rows) for each in made]
    found = unpack(pack(sliced))
    assert [each.to_pylist() for each in found] == [each.to_pylist() for each in sliced]
    for each in found:
        each.validate(full=True)


def column(draw: random.Random, rows: int, nulls: float) -> pa.BinaryArray:
    values = [
        None if draw.random() < nulls else draw.randbytes(draw.randrange(30)) for _ in range(rows)
    ]
    return pa.array(values, pa.binary())


def test_the_bytes_are_those_of_java() -> None:
    """`ColumnsTest.java` expects the same."""
    expected = (
        "0200000000000000"
        "0200000000000000"
        "0000000000000000"
        "0200000000000000"
        "00000000020000000200000000000000"
        "0102000000000000"
        "0100000000000000"
        "0100000000000000"
        "0200000000000000"
        "00000000000000000100000000000000"
        "0300000000000000"
    )
    assert pack([binary(b"\1\2", b""), binary(None, b"\3")]).hex() == expected


def test_numbers_are_eight_bytes_each() -> None:
    (found,) = unpack(pack([binary(*(n.to_bytes(8, "little") for n in (1, 2**40)))]))
    assert numbers(found).tolist() == [1, 2**40]
    assert numbers(unpack(pack([binary()]))[0]).tolist() == []
