"""Records as cells, without HBase: what goes in comes back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from belvedere.encoding import RowCodec
from belvedere.errors import Damaged
from belvedere.stores.base import TableShape, Write
from belvedere.stores.hbase import counts
from belvedere.stores.hbase.client import Cell
from belvedere.stores.hbase.forms import ManyCells, OneCell, qualifier
from belvedere.stores.hbase.tables import STATE, place_of
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Column,
    SqlType,
    decimal,
)

TYPES: tuple[SqlType, ...] = (
    BOOLEAN,
    INT,
    BIGINT,
    DOUBLE,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    decimal(30, 2),
)
COLUMNS = tuple(Column(f"c{number}", kind) for number, kind in enumerate(TYPES))
FULL = (
    True,
    -5,
    2**40,
    -0.0,
    "Zürich",
    b"\xff\0",
    date(1969, 12, 31),
    datetime(2024, 2, 29, 12, 0, 0, 7, tzinfo=UTC),
    Decimal("-123456789012345678901.25"),
)


def encoded(*rows: tuple[object, ...] | None) -> pa.BinaryArray:
    codec = RowCodec(TYPES)
    return pa.array([None if row is None else codec.encode_one(row) for row in rows], pa.binary())


@pytest.mark.parametrize("form", [OneCell(), ManyCells(COLUMNS)])
def test_rows_come_back_as_they_went_in(form: OneCell | ManyCells) -> None:
    absent = (None,) * len(TYPES)
    some = tuple(value if number % 2 else None for number, value in enumerate(FULL))
    rows = encoded(FULL, None, absent, some)
    cells = form.cells(rows)
    assert len(cells) == len(form.names())
    assert form.values(cells).equals(rows)
    assert form.values(form.cells(rows.slice(1, 2))).equals(rows.slice(1, 2))


def test_a_view_without_value_columns_has_stamps_only() -> None:
    form = ManyCells(())
    rows = pa.array([b"", None], pa.binary())
    assert form.names() == ["_"]
    assert form.values(form.cells(rows)).equals(rows)


def test_a_null_has_no_cell_and_the_stamp_says_so() -> None:
    form = ManyCells((Column("a", BIGINT), Column("b", STRING)))
    codec = RowCodec((BIGINT, STRING))
    rows = pa.array([codec.encode_one((1, None)), None], pa.binary())
    stamp, first, second = form.cells(rows)
    assert stamp.to_pylist() == [b"\2", None]
    assert first.to_pylist() == [(1).to_bytes(8, "big"), None]
    assert second.to_pylist() == [None, None]
    with pytest.raises(Damaged, match="other clients"):
        form.values([pa.array([b"\0", None], pa.binary()), first, second])


def test_qualifiers_are_names_of_columns_and_never_the_stamp() -> None:
    names = ["a", "_", "__", "_a", "größe"]
    found = [qualifier(name) for name in names]
    assert found == ["a", "__", "___", "_a", "größe"]
    assert "_" not in found


def test_only_what_others_understand_has_a_table_of_its_own() -> None:
    key, values = (Column("k", STRING),), (Column("n", BIGINT),)
    assert place_of(TableShape(7)).name == STATE
    assert place_of(TableShape(7, "", key, values)).name == STATE
    assert place_of(TableShape(7, "v")).name == STATE
    assert place_of(TableShape(7, "sales", key, values)).name == "sales.7"
    assert place_of(TableShape(7, "größe by día", key)).name == "gr__e_by_d_a.7"
    assert place_of(TableShape(7, ".-", key)).name == "_.7"


def test_a_count_is_the_sum_from_the_newest_total_on() -> None:
    row = b"r"

    def cell(epoch: int, records: int, is_total: bool = False) -> Cell:
        value = counts.Count(records, 10 * records, abs(records)).pack(is_total)
        return Cell(row, counts.FAMILY, counts.QUALIFIER, epoch, value)

    versions = [cell(9, -1), cell(7, 3), cell(4, 5, True), cell(3, 100), cell(2, 100, True)]
    assert counts.total(versions) == counts.Count(7, 70, 9)
    assert counts.total(versions, upto=7) == counts.Count(8, 80, 8)
    remove, put = counts.fold(row, versions, 8)
    assert (remove.kind, remove.timestamp, put.timestamp) == ("C", 7, 8)
    folded = [cell(9, -1), put]
    assert counts.total(folded) == counts.Count(7, 70, 1)
    assert counts.fold(row, [cell(9, 1)], 8) == []


def test_a_write_adds_what_is_new_and_takes_what_was_there() -> None:
    def binary(*values: bytes | None) -> pa.BinaryArray:
        return pa.array(values, pa.binary())

    keys, before = binary(b"a", b"bb", b"c"), binary(None, b"123", b"1")
    found = counts.of_write(Write(7, keys, binary(b"xy", b"1", None), before))
    assert found == counts.Count(0, 3 + 3 - 5 - 2, 3)
