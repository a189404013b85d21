"""Blocks come back as they were written, whatever the columns look like, and can be searched where
they lie.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.stores.embedded import blocks

column = st.lists(st.none() | st.binary(max_size=20), max_size=40)


def binary(items: list[bytes | None]) -> pa.BinaryArray:
    return pa.array(items, pa.binary())


@given(
    column,
    st.integers(0, 5),
    st.integers(0, 5),
    st.floats(allow_nan=False),
    st.integers(1, 2**32 - 1),
)
def test_columns_come_back_also_from_slices(
    items: list[bytes | None], skip: int, drop: int, time: float, table: int
) -> None:
    sliced = binary(items).slice(skip, max(len(items) - skip - drop, 0))
    block = blocks.decode(blocks.encode(table, time, (sliced, sliced, sliced)))
    assert (block.table, block.time) == (table, time)
    for found in block.columns:
        found.validate(full=True)
        assert found.to_pylist() == sliced.to_pylist()


@given(
    st.lists(st.none() | st.binary(max_size=20), min_size=2, max_size=3), st.integers(1, 2**32 - 1)
)
def test_the_short_way_for_one_row_gives_the_same_bytes(
    items: list[bytes | None], table: int
) -> None:
    assert blocks.encode_one(table, 1.5, items) == blocks.encode(
        table, 1.5, [binary([item]) for item in items]
    )


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=20)), max_size=40),
)
def test_the_short_way_for_few_rows_gives_the_same_bytes(
    table: int, rows: list[tuple[bytes, bytes | None]]
) -> None:
    columns = [key for key, _ in rows], [value for _, value in rows]
    arrays = [pa.array(column, pa.binary()) for column in columns]
    assert blocks.encode_few(table, 1.5, columns) == blocks.encode(table, 1.5, arrays)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 63, 64, 65])
def test_buffers_are_aligned_to_eight_bytes(rows: int) -> None:
    items = binary([None if i % 3 == 0 else b"x" * (i % 5) for i in range(rows)])
    assert len(blocks.encode(1, 0.0, (items, items))) % 8 == 0
