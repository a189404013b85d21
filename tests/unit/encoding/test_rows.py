"""RowCodec gives every row back bit by bit, and its fast form and its plain form write the same
bytes.
"""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import RowCodec, dict_decoder
from belvedere.errors import Damaged, SchemaError
from belvedere.types import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING, SqlType, decimal
from tests.unit.encoding.values import KINDS, Rows, bits, columns, tables

Table = tuple[tuple[SqlType, ...], Rows]


@given(tables())
def test_the_fast_form_writes_the_bytes_of_the_plain_form(table: Table) -> None:
    types, rows = table
    codec = RowCodec(types)
    encoded = codec.encode(columns(types, rows))
    encoded.validate(full=True)
    assert encoded.to_pylist() == [codec.encode_one(row) for row in rows]


@given(tables())
def test_decoded_rows_are_the_columns_again(table: Table) -> None:
    types, rows = table
    codec = RowCodec(types)
    decoded = codec.decode(codec.encode(columns(types, rows)))
    for column, kind, i in zip(decoded, types, range(len(types)), strict=True):
        column.validate(full=True)
        assert column.type == kind.arrow
        assert list(map(bits, column.to_pylist())) == [bits(row[i]) for row in rows]
    for row in rows:
        assert tuple(map(bits, codec.decode_one(codec.encode_one(row)))) == tuple(map(bits, row))


@given(tables(), st.data())
def test_a_dict_has_what_the_row_and_the_key_have(table: Table, data: st.DataObject) -> None:
    types, rows = table
    names = [
        "a name",
        "class",
        "'\\n\"",
        "data",
        "nulls",
        "f0",
        *(f"c{i}" for i in range(len(types))),
    ]
    places = data.draw(
        st.permutations([(True, 0), (True, 1), *((False, i) for i in range(len(types)))])
    )
    columns = tuple((name, *place) for name, place in zip(names, places, strict=False))
    codec, key = RowCodec(types), ("k", None)
    for row in rows:
        found = dict_decoder(types, columns)(key, codec.encode_one(row))
        assert [(n, bits(v)) for n, v in found.items()] == [
            (n, bits((key if in_key else row)[i])) for n, in_key, i in columns
        ]


@given(tables(), st.data())
def test_a_slice_encodes_and_decodes_as_its_copy(table: Table, data: st.DataObject) -> None:
    types, rows = table
    start = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - start))
    codec = RowCodec(types)
    part = codec.encode([column.slice(start, count) for column in columns(types, rows)])
    assert part.to_pylist() == [codec.encode_one(row) for row in rows[start : start + count]]
    whole = codec.encode(columns(types, rows))
    assert codec.encode(codec.decode(whole.slice(start, count))).equals(part)


@given(tables(), st.data())
def test_an_absent_row_is_null_in_every_column_and_leaves_its_neighbours_alone(
    table: Table, data: st.DataObject
) -> None:
    types, rows = table
    codec, present = (
        RowCodec(types),
        data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))),
    )
    encoded = pa.array(
        [codec.encode_one(row) if here else None for row, here in zip(rows, present, strict=True)],
        pa.binary(),
    )
    for i, column in enumerate(codec.decode(encoded)):
        column.validate(full=True)
        assert list(map(bits, column.to_pylist())) == [
            bits(row[i]) if here else None for row, here in zip(rows, present, strict=True)
        ]


def test_the_bits_of_zeros_and_nans_are_kept() -> None:
    codec = RowCodec((DOUBLE,))
    doubles = np.array([1 << 63, 0x7FF8000000000123, 0xFFF0000000000001, 0], np.uint64).view(
        np.float64
    )
    encoded = codec.encode([pa.array(doubles)])
    (decoded,) = codec.decode(encoded)
    assert decoded.to_numpy().view(np.uint64).tolist() == doubles.view(np.uint64).tolist()
    assert codec.encode_one([-0.0]) == encoded[0].as_py()
    assert math.copysign(1, codec.decode_one(encoded[0].as_py())[0]) == -1


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_of_nulls_is_a_column_whatever_its_type(kind: SqlType) -> None:
    codec = RowCodec((kind, INT))
    for nulls in (pa.nulls(2), pa.nulls(2, kind.arrow)):
        encoded = codec.encode([nulls, pa.array([1, 2], pa.int32())])
        assert encoded.to_pylist() == [codec.encode_one((None, 1)), codec.encode_one((None, 2))]
        assert codec.decode(encoded)[0].equals(pa.nulls(2, kind.arrow))


def test_what_lies_under_a_null_is_not_written() -> None:
    seven = pa.array([7, 7], pa.int64())
    hidden = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), seven.buffers()[1]])
    codec = RowCodec((BIGINT,))
    assert codec.encode([hidden]).to_pylist() == [codec.encode_one([7]), codec.encode_one([None])]


@pytest.mark.parametrize(
    "texts", [["a", "b", "c"], ["a", "", "bc"], ["", "", ""], ["a", "bc", ""]], ids=str
)
def test_strings_of_equal_lengths_and_of_equal_sums_are_told_apart(texts: list[str]) -> None:
    codec = RowCodec((STRING,))
    assert codec.encode([pa.array(texts)]).to_pylist() == [
        codec.encode_one([text]) for text in texts
    ]


def test_the_bytes_on_disk_never_change() -> None:
    types = (BOOLEAN, INT, STRING, BIGINT, decimal(19, 1), BINARY, decimal(4, 2), DOUBLE, INT)
    row = (True, -2, "é", None, Decimal("-0.1"), b"\0", Decimal("1.00"), 1.0, None)
    fields = (
        "0801 01 feffffff 02000000 0000000000000000"
        + "ff" * 16
        + "01000000 6400000000000000 000000000000f03f 00000000"
    )
    assert RowCodec(types).encode(columns(types, [row])).to_pylist() == [
        bytes.fromhex(fields + "c3a9 00")
    ]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_empty_batch_has_no_rows_and_its_columns_have_their_types(kind: SqlType) -> None:
    codec = RowCodec((kind, STRING))
    encoded = codec.encode([pa.array([], kind.arrow), pa.array([], pa.string())])
    assert (encoded.type, len(encoded)) == (pa.binary(), 0)
    assert [column.type for column in codec.decode(encoded)] == [kind.arrow, pa.string()]


def test_a_codec_without_columns_has_the_empty_row() -> None:
    codec = RowCodec(())
    assert codec.encode([], rows=2).to_pylist() == [b"", b""]
    assert codec.decode(pa.array([b"", b""])) == []
    assert (codec.encode_one(()), codec.decode_one(b"")) == (b"", ())


@pytest.mark.parametrize(
    "values", [(), (1,), ("a", 1), (1, "a", 2), (2**31, "a"), (None, 1), (1, "\ud800")], ids=repr
)
def test_values_that_do_not_fit_are_refused(values: tuple[Any, ...]) -> None:
    with pytest.raises(SchemaError, match="does not fit"):
        RowCodec((INT, STRING)).encode_one(values)


def test_a_text_is_not_a_boolean() -> None:
    with pytest.raises(SchemaError, match="does not fit"):
        RowCodec((BOOLEAN,)).encode_one(("no",))


@pytest.mark.parametrize(
    "change",
    [lambda row: row[:-1], lambda row: row + b"x", lambda row: b""],
    ids=["short", "long", "empty"],
)
def test_bytes_that_are_no_row_are_refused(change: Any) -> None:
    codec = RowCodec((INT, STRING))
    with pytest.raises(Damaged, match="is not a row"):
        codec.decode_one(change(codec.encode_one((1, "abc"))))
    with pytest.raises(Damaged, match="is not a row"):
        dict_decoder(codec.types, (("a", False, 0), ("b", False, 1)))(
            (), change(codec.encode_one((1, "abc")))
        )


def test_codecs_are_values_that_travel() -> None:
    codec = RowCodec((STRING, INT))
    copy = pickle.loads(pickle.dumps(codec))
    assert copy == codec
    assert copy.encode_one(("a", 1)) == codec.encode_one(("a", 1))
