"""Foreign row keys become keys and come back; what is not of the types has no key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.encoding import KeyCodec
from belvedere.errors import SchemaError
from belvedere.stores.base import MappedColumn, MappedKey, Mapping
from belvedere.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, SqlType, decimal
from tests.unit.encoding.values import KINDS, values

FIXED = [kind for kind in KINDS if kind.name in ("boolean", "int", "bigint", "double", "date")]


def _mapping(key: MappedKey) -> Mapping:
    return Mapping("shop:orders", key, (b"d",), (MappedColumn(BIGINT, 0, b"amount"),))


@st.composite
def keyed(draw: st.DrawFn) -> tuple[Mapping, list[tuple[Any, ...]]]:
    """A key of fixed columns and one of any type behind them, or one of any type; and its rows."""
    types = (*draw(st.lists(st.sampled_from(FIXED), max_size=2)), draw(st.sampled_from(KINDS)))
    row = st.tuples(*(values(kind).filter(lambda v: v is not None) for kind in types))
    return _mapping(MappedKey(types)), draw(st.lists(row, max_size=6))


def _keys(types: tuple[SqlType, ...], rows: list[tuple[Any, ...]]) -> pa.BinaryArray:
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    arrays = [pa.array(column, kind.arrow) for column, kind in zip(columns, types, strict=True)]
    return KeyCodec(types).encode(arrays)


@given(keyed())
def test_keys_become_rows_and_come_back(case: tuple[Mapping, list[tuple[Any, ...]]]) -> None:
    mapping, rows = case
    keys = _keys(mapping.key.types, rows)
    found, good = mapping.keys_of(mapping.rows_of(keys))
    assert good.all()
    assert found.to_pylist() == keys.to_pylist()


@given(
    st.lists(st.sampled_from(FIXED), max_size=2),
    st.sampled_from(KINDS),
    st.sampled_from(["bytes", "text"]),
    st.lists(st.binary(max_size=20), max_size=6),
)
def test_a_foreign_row_has_a_key_of_its_own_or_none(
    front: list[SqlType], last: SqlType, form: Any, rows: list[bytes]
) -> None:
    mapping = _mapping(MappedKey((*front, last), form, b"|" if form == "text" else b""))
    found, good = mapping.keys_of(pa.array(rows, pa.binary()))
    kept = [row for row, is_good in zip(rows, good, strict=True) if is_good]
    assert mapping.rows_of(found).to_pylist() == kept


def test_text_with_a_separator() -> None:
    mapping = _mapping(MappedKey((STRING, INT), "text", b"|"))
    rows = pa.array([b"emea|7", b"emea|07", b"emea", b"|1", b"a|1|2"], pa.binary())
    found, good = mapping.keys_of(rows)
    assert good.tolist() == [True, False, False, True, False]
    codec = KeyCodec((STRING, INT))
    assert [codec.decode_one(key) for key in found.to_pylist()] == [("emea", 7), ("", 1)]


def test_a_value_with_the_separator_is_refused() -> None:
    mapping = _mapping(MappedKey((STRING, INT), "text", b"|"))
    with pytest.raises(SchemaError, match="contains"):
        mapping.rows_of(_keys((STRING, INT), [("a|b", 1)]))


def test_a_key_whose_columns_have_no_end_is_refused() -> None:
    with pytest.raises(SchemaError, match="separator"):
        MappedKey((STRING, INT))
    with pytest.raises(SchemaError, match="separator"):
        MappedKey((INT, STRING), "text")


def test_a_mapping_is_kept_as_bytes() -> None:
    columns = (
        MappedColumn(decimal(10, 2), 1, b"a\xff"),
        MappedColumn(BOOLEAN, 0, b"", "text"),
        MappedColumn(DOUBLE, 0, b"x"),
    )
    key = MappedKey((DATE, BINARY), "bytes", b"")
    mapping = Mapping("shop:orders", key, (b"d", b"e"), columns)
    assert Mapping.from_bytes(mapping.to_bytes()) == mapping
