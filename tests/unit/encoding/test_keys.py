"""KeyCodec keeps the order of tuples, and its fast form and its plain form write the same bytes."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import KeyCodec, prefix_range, too_long
from belvedere.encoding.one_key import prefix_length
from belvedere.errors import Damaged, SchemaError
from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal,
)
from tests.unit.encoding.values import (
    KINDS,
    Rows,
    bits,
    columns,
    compare,
    rising,
    rows_of,
    schemas,
    tables,
    values,
)

Table = tuple[tuple[SqlType, ...], Rows]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_keys_of_one_column_rise_with_the_values(kind: SqlType) -> None:
    keys = [KeyCodec((kind,)).encode_one((value,)) for value in rising(kind)]
    assert all(one < other for one, other in pairwise(keys))


@given(tables(), st.booleans())
def test_the_fast_form_writes_the_bytes_of_the_plain_form(table: Table, normalize: bool) -> None:
    types, rows = table
    codec = KeyCodec(types, normalize)
    keys = codec.encode(columns(types, rows))
    keys.validate(full=True)
    assert keys.to_pylist() == [codec.encode_one(row) for row in rows]


@given(tables())
def test_keys_order_as_their_tuples(table: Table) -> None:
    types, rows = table
    keys = KeyCodec(types).encode(columns(types, rows)).to_pylist()
    for row, key in zip(rows, keys, strict=True):
        for other, other_key in zip(rows, keys, strict=True):
            assert (key > other_key) - (key < other_key) == compare(row, other)


@given(tables())
def test_decoded_keys_are_the_columns_again(table: Table) -> None:
    types, rows = table
    codec = KeyCodec(types, normalize=False)
    decoded = codec.decode(codec.encode(columns(types, rows)))
    for column, kind, i in zip(decoded, types, range(len(types)), strict=True):
        column.validate(full=True)
        assert column.type == kind.arrow
        assert list(map(bits, column.to_pylist())) == [bits(row[i]) for row in rows]
    for row in rows:
        assert tuple(map(bits, codec.decode_one(codec.encode_one(row)))) == tuple(map(bits, row))


@given(tables(), st.data())
def test_the_length_of_a_key_is_found_whatever_follows_it(
    table: Table, data: st.DataObject
) -> None:
    types, rows = table
    keys = [KeyCodec(types).encode_one(row) for row in rows]
    tails = [
        data.draw(st.sampled_from([b"", b"\x00", b"\x00\xff", b"\x01a\x00", b"\xfe\xff"]))
        for _ in keys
    ]
    records = pa.array(
        [b"skipped", *(key + tail for key, tail in zip(keys, tails, strict=True))], pa.binary()
    ).slice(1)
    assert KeyCodec(types).lengths(records).tolist() == [len(key) for key in keys]


@st.composite
def prefixed(draw: st.DrawFn) -> tuple[Table, tuple[Any, ...]]:
    types = draw(schemas)
    rows = draw(rows_of(types))
    length = draw(st.integers(0, len(types)))
    fresh = st.tuples(*map(values, types[:length]))
    prefix = draw(
        st.one_of(fresh, st.sampled_from(rows).map(lambda row: row[:length])) if rows else fresh
    )
    return (types, rows), prefix


@given(prefixed())
def test_the_range_of_a_prefix_holds_exactly_the_keys_that_begin_with_it(
    example: tuple[Table, tuple[Any, ...]],
) -> None:
    (types, rows), prefix = example
    codec = KeyCodec(types)
    low, high = prefix_range(codec.encode_one(prefix))
    for row in rows:
        key = codec.encode_one(row)
        assert (low <= key < high) == (compare(row[: len(prefix)], prefix) == 0)
        assert low != high


def test_the_range_of_a_string_leaves_out_the_strings_that_continue_it_with_a_zero_byte() -> None:
    codec = KeyCodec((STRING, INT))
    low, high = prefix_range(codec.encode_one(["a"]))
    inside = [
        low <= codec.encode_one(row) < high
        for row in [("a", None), ("a", -1), ("a\0", None), ("ab", 1), ("", 1)]
    ]
    assert inside == [True, True, False, False, False]


@given(tables(), st.data())
def test_a_slice_encodes_and_decodes_as_its_copy(table: Table, data: st.DataObject) -> None:
    types, rows = table
    start = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - start))
    codec, part = KeyCodec(types), rows[start : start + count]
    keys = codec.encode([column.slice(start, count) for column in columns(types, rows)])
    assert keys.to_pylist() == [codec.encode_one(row) for row in part]
    whole = codec.encode(columns(types, rows))
    assert codec.encode(codec.decode(whole.slice(start, count))).equals(keys)


@pytest.mark.parametrize("normalize", [True, False])
def test_minus_zero_is_zero_only_when_normalized(normalize: bool) -> None:
    codec = KeyCodec((DOUBLE,), normalize)
    minus, plus = codec.encode([pa.array([-0.0, 0.0])]).to_pylist()
    assert (minus == plus) == normalize
    assert minus <= plus


@pytest.mark.parametrize("normalize", [True, False])
def test_all_nans_are_one_key_above_infinity(normalize: bool) -> None:
    codec = KeyCodec((DOUBLE,), normalize)
    payload = pa.array([0x7FF0000000000001, -1, 0x7FF8000000000000], pa.int64()).view(pa.float64())
    keys = codec.encode([payload]).to_pylist()
    assert len({*keys, codec.encode_one([-math.nan])}) == 1
    assert keys[0] > codec.encode_one([math.inf])


PINNED = [
    (BOOLEAN, True, "0101"),
    (INT, 1, "0180000001"),
    (BIGINT, -1, "017fffffffffffffff"),
    (DOUBLE, 1.0, "01bff0000000000000"),
    (DOUBLE, -1.0, "01400fffffffffffff"),
    (STRING, "a\0b", "016100ff6200"),
    (BINARY, b"", "0100"),
    (DATE, date(1970, 1, 2), "0180000001"),
    (TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "0180000000000f4240"),
    (decimal(18, 2), Decimal("-0.01"), "017fffffffffffffff"),
    (decimal(19, 2), Decimal("0.01"), "0180000000000000000000000000000001"),
    (STRING, None, "00"),
]


@pytest.mark.parametrize(("kind", "value", "key"), PINNED, ids=str)
def test_the_bytes_on_disk_never_change(kind: SqlType, value: Any, key: str) -> None:
    assert KeyCodec((kind,)).encode([pa.array([value], kind.arrow)]).to_pylist() == [
        bytes.fromhex(key)
    ]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_empty_batch_has_no_keys_and_its_columns_have_their_types(kind: SqlType) -> None:
    codec = KeyCodec((kind, STRING))
    keys = codec.encode([pa.array([], kind.arrow), pa.array([], pa.string())])
    assert (keys.type, len(keys)) == (pa.binary(), 0)
    assert [column.type for column in codec.decode(keys)] == [kind.arrow, pa.string()]


def test_a_codec_without_columns_has_the_empty_key() -> None:
    codec = KeyCodec(())
    assert codec.encode([], rows=2).to_pylist() == [b"", b""]
    assert codec.encode_one(()) == b""
    assert codec.decode_one(b"") == ()
    with pytest.raises(SchemaError, match="rows"):
        codec.encode([])


def test_chunks_and_kindred_types_are_accepted() -> None:
    codec = KeyCodec((STRING, BIGINT))
    names = pa.chunked_array([pa.array(["a"]), pa.array([], pa.string()), pa.array(["b"])])
    keys = codec.encode([names.cast(pa.large_string()), pa.array([1, 2], pa.int32())])
    assert keys.to_pylist() == [codec.encode_one(("a", 1)), codec.encode_one(("b", 2))]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_of_nulls_is_a_column_whatever_its_type(kind: SqlType) -> None:
    codec = KeyCodec((kind,))
    for nulls in (
        pa.nulls(2),
        pa.nulls(2, kind.arrow),
        pa.chunked_array([pa.nulls(1, kind.arrow)] * 2),
    ):
        keys = codec.encode([nulls])
        assert keys.to_pylist() == [b"\0", b"\0"]
        assert codec.decode(keys)[0].equals(pa.nulls(2, kind.arrow))


def test_strings_of_many_lengths_and_escapes_come_back_from_every_position() -> None:
    texts = ["ab\0"[: i % 4] * (i // 4) for i in range(200)]
    codec = KeyCodec((STRING, BINARY, STRING))
    columns = [
        pa.array(texts),
        pa.array([text.encode() for text in reversed(texts)]),
        pa.array(texts),
    ]
    keys = codec.encode(columns)
    assert keys.to_pylist() == [
        codec.encode_one(row)
        for row in zip(*(column.to_pylist() for column in columns), strict=True)
    ]
    assert all(
        decoded.equals(column) for decoded, column in zip(codec.decode(keys), columns, strict=True)
    )


@pytest.mark.parametrize("length", [500, 511, 512, 520, 100_000])
def test_long_strings_end_where_they_did(length: int) -> None:
    """Among short ones, with and without escapes, at every place of a key."""
    texts = ["", "a", "b" * length, "\0" * length, "c" * length + "\0", "\0\xff", "\xff" * length]
    codec = KeyCodec((STRING, INT, STRING))
    rows = [(text, number, texts[-1 - number]) for number, text in enumerate(texts)]
    keys = codec.encode([pa.array(column) for column in zip(*rows, strict=True)])
    assert keys.to_pylist() == [codec.encode_one(row) for row in rows]
    assert list(zip(*(c.to_pylist() for c in codec.decode(keys)), strict=True)) == rows
    records = pa.array([key + b"\x01rest" for key in keys.to_pylist()], pa.binary())
    lengths = [len(key) for key in keys.to_pylist()]
    assert codec.lengths(records).tolist() == lengths
    assert [prefix_length(record, codec.types) for record in records.to_pylist()] == lengths


@pytest.mark.parametrize("key", [b"\x01", b"\x01abc", b"\x01\x00\xff", b"\x01a\x00\xffb\x00\xff"])
def test_a_string_without_an_end_is_damaged(key: bytes) -> None:
    with pytest.raises(Damaged, match="is not a key of"):
        prefix_length(key, (STRING,))


def test_timestamps_are_instants_whatever_their_zone() -> None:
    codec, zone = KeyCodec((TIMESTAMP,)), timezone(timedelta(hours=2))
    keys = {
        codec.encode_one([t])
        for t in (
            datetime(2026, 1, 1, 2, tzinfo=zone),
            datetime(2026, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 1),
        )
    }
    assert len(keys) == 1


MISFITS = [
    (INT, 2**31),
    (BIGINT, "1"),
    (BIGINT, 1.5),
    (STRING, 1),
    (STRING, "\ud800"),
    (BINARY, "a"),
    (DOUBLE, "1"),
]
MISFITS += [
    (DATE, 1),
    (DATE, datetime(2026, 1, 1)),
    (TIMESTAMP, date(2026, 1, 1)),
    (decimal(4, 2), Decimal("0.001")),
    (decimal(4, 2), Decimal(100)),
    (BOOLEAN, 2),
    (BOOLEAN, "no"),
]


@pytest.mark.parametrize(("kind", "value"), MISFITS, ids=str)
@pytest.mark.parametrize("types", [(), (INT,)], ids=["alone", "second"])
def test_a_value_that_does_not_fit_is_refused(
    types: tuple[SqlType, ...], kind: SqlType, value: Any
) -> None:
    with pytest.raises(SchemaError, match="does not fit"):
        KeyCodec((*types, kind)).encode_one((*([1] * len(types)), value))


def test_more_values_than_columns_are_refused() -> None:
    for types in [(), (INT,), (INT, INT)]:
        with pytest.raises(SchemaError, match="does not fit"):
            KeyCodec(types).encode_one((1, 2, 3))


@pytest.mark.parametrize(
    "key", [b"", b"\x01", b"\x02\x80\0\0\0", b"\x01\x80\0\0\0\x01", b"\x01\x80\0"], ids=repr
)
def test_bytes_that_are_no_key_are_refused(key: bytes) -> None:
    with pytest.raises(Damaged, match="is not a key"):
        KeyCodec((INT,)).decode_one(key)


def test_columns_that_do_not_match_the_types_are_refused() -> None:
    with pytest.raises(SchemaError, match="1 columns for 2 types"):
        KeyCodec((INT, INT)).encode([pa.array([1], pa.int32())])
    with pytest.raises(SchemaError, match="rows"):
        KeyCodec((INT, INT)).encode([pa.array([1], pa.int32()), pa.array([1, 2], pa.int32())])
    with pytest.raises(SchemaError, match="does not fit int32"):
        KeyCodec((INT,)).encode([pa.array(["x"])])


def test_keys_longer_than_the_limit_are_told_apart() -> None:
    codec = KeyCodec((STRING,))
    keys = codec.encode([pa.array(["a" * 98, "a" * 99])])  # and two bytes more
    assert too_long(keys, 100).to_pylist() == [False, True]


def test_codecs_are_values_that_travel() -> None:
    codec = KeyCodec((STRING, INT), normalize=False)
    copy = pickle.loads(pickle.dumps(codec))
    assert copy == codec
    assert hash(copy) == hash(codec)
    assert copy.encode_one(("a", 1)) == codec.encode_one(("a", 1))
