"""Natural cells are those of HBase's `Bytes`, come back as they went in, and tell foreign bytes from
NULL.
"""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import natural
from belvedere.errors import Damaged
from belvedere.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal
from tests.unit.encoding.values import KINDS, bits, values

Column = tuple[SqlType, list[Any]]
columns: st.SearchStrategy[Column] = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(values(kind), max_size=8))
)


def _cell(kind: SqlType, value: Any) -> bytes | None:
    """One value as HBase's `Bytes` writes it."""
    if value is None:
        return None
    match kind.name:
        case "boolean":
            return b"\xff" if value else b"\0"
        case "int":
            return struct.pack(">i", value)
        case "bigint":
            return struct.pack(">q", value)
        case "date":
            return struct.pack(">i", (value - date(1970, 1, 1)).days)
        case "timestamp":
            passed = value - datetime(1970, 1, 1, tzinfo=UTC)
            seconds = passed.days * 86_400 + passed.seconds
            return struct.pack(">q", seconds * 1_000_000 + passed.microseconds)
        case "string":
            return str(value).encode()
        case "binary":
            return bytes(value)
    return struct.pack(">d", value)


def _java_decimal(unscaled: int, scale: int) -> bytes:
    """As `Bytes.toBytes(BigDecimal)` does, with as few bytes as the number needs."""
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return struct.pack(">i", scale) + unscaled.to_bytes(size, "big", signed=True)


@given(columns)
def test_cells_are_those_of_the_bytes_class(column: Column) -> None:
    kind, rows = column
    cells = natural.encode(pa.array(rows, kind.arrow), kind).to_pylist()
    if kind.name == "decimal":
        assert [None if c is None else _read_decimal(c) for c in cells] == rows
    elif kind.name != "double":  # a NaN has many spellings
        assert cells == [_cell(kind, value) for value in rows]
    else:
        assert [None if c is None else bits(struct.unpack(">d", c)[0]) for c in cells] == [
            None if value is None else bits(value) for value in rows
        ]


def _read_decimal(cell: bytes) -> Decimal:
    unscaled = int.from_bytes(cell[4:], "big", signed=True)
    return Decimal(f"{unscaled}E-{struct.unpack('>i', cell[:4])[0]}")


@given(columns)
def test_what_is_decoded_is_what_was_encoded(column: Column) -> None:
    kind, rows = column
    array = pa.array(rows, kind.arrow)
    found = natural.decode(natural.encode(array, kind), kind)
    found.validate(full=True)
    assert list(map(bits, found.to_pylist())) == list(map(bits, array.to_pylist()))


@given(
    st.lists(st.tuples(st.integers(-(10**20), 10**20), st.integers(-3, 12)) | st.none(), max_size=8)
)
def test_decimals_of_any_length_and_scale_are_read(numbers: list[tuple[int, int] | None]) -> None:
    kind = decimal(38, 6)
    cells = pa.array([None if n is None else _java_decimal(*n) for n in numbers], pa.binary())
    column, bad = natural.decode_some(cells, kind)
    for place, number in enumerate(numbers):
        found, is_bad = column[place].as_py(), bad is not None and bool(bad[place])
        if number is None:
            assert found is None
            assert not is_bad
            continue
        exact = number[0] * Fraction(10) ** -number[1]
        fits = (exact * 10**6).denominator == 1 and abs(exact) < 10**32
        assert is_bad != fits
        assert found == (exact if fits else None)


@given(st.sampled_from(KINDS), st.lists(st.binary(max_size=10) | st.none(), max_size=8))
def test_foreign_bytes_are_a_value_or_told_apart(kind: SqlType, cells: list[bytes | None]) -> None:
    column, bad = natural.decode_some(pa.array(cells, pa.binary()), kind)
    column.validate(full=True)
    for place, cell in enumerate(cells):
        is_bad = bad is not None and bool(bad[place])
        assert column[place].is_valid == (cell is not None and not is_bad)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INT, b"-17", -17),
        (BIGINT, b"9007199254740993", 9007199254740993),
        (DOUBLE, b"0.1", 0.1),
        (BOOLEAN, b"true", True),
        (DATE, b"2026-02-28", date(2026, 2, 28)),
        (TIMESTAMP, b"2026-02-28T12:30:00.5Z", datetime(2026, 2, 28, 12, 30, 0, 500_000, UTC)),
        (STRING, "é".encode(), "é"),
        (decimal(10, 2), b"1.5", Decimal("1.50")),
    ],
)
def test_text_is_read_as_people_write_it(kind: SqlType, text: bytes, value: Any) -> None:
    cells = pa.array([text, b"no such value \xff", None], pa.binary())
    column, bad = natural.decode_some(cells, kind, "text")
    assert column.to_pylist() == [value, None, None]
    assert bad is not None
    assert bad.tolist() == [False, True, False]
    again = natural.encode(column, kind, "text")
    assert natural.decode(again, kind, "text").to_pylist() == [value, None, None]


def test_a_cell_of_another_type_is_named() -> None:
    with pytest.raises(Damaged, match=r"1 of 2 cells are no bigint: b'12'"):
        natural.decode(pa.array([b"12", None], pa.binary()), BIGINT)
