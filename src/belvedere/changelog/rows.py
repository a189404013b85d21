"""Rows from users as Arrow columns of a table's schema, checked before anything is written.

Lists of dicts, pyarrow tables and batches, and everything that speaks the Arrow PyCapsule interface (pandas and Polars
frames do) become one Arrow table. A row that does not fit is named by its number and column; then nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from belvedere.errors import SchemaError
from belvedere.types import Column, Schema

_EXACT = {"boolean", "string", "binary"}  # no conversion into these: a number is not a text


def to_arrow(rows: Any, schema: Schema, columns: Sequence[Column] | None = None) -> pa.Table:
    """`rows` as a table of the schema's columns (or of some of them); columns that are missing are NULL."""
    wanted = tuple(columns or schema.columns)
    data = _arrow(rows)
    table = data if data is not None else _from_dicts(rows, schema, wanted)
    if data is not None:
        _check_names(table.column_names, schema)
        present = {name.lower(): name for name in table.column_names}
        table = pa.table(
            [
                _cast(table.column(present[c.name.lower()]), c) if c.name.lower() in present else pa.nulls(table.num_rows, c.type.arrow)
                for c in wanted
            ],
            names=[c.name for c in wanted],
        )
    _check_nulls(table, schema, wanted)
    return table


def _arrow(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return pa.table(rows)
    if isinstance(rows, Sequence) and rows and isinstance(rows[0], pa.RecordBatch):
        return pa.Table.from_batches(rows)
    return None


def _from_dicts(rows: Any, schema: Schema, wanted: Sequence[Column]) -> pa.Table:
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise SchemaError(f"expected rows as a list of dicts or as Arrow data, got {type(rows).__name__}")
    listed = list(rows)
    by_name = {c.name.lower(): c.name for c in schema.columns}
    for number, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise SchemaError(f"row {number} is a {type(row).__name__}, not a dict")
        for name in row:
            if str(name).lower() not in by_name:
                raise SchemaError(f"row {number} has an unknown column {name!r}: the columns are {', '.join(schema.names)}")
    arrays = []
    for column in wanted:
        values = [row.get(column.name) if column.name in row else _other_case(row, column.name) for row in listed]
        arrays.append(_column(values, column))
    return pa.table(arrays, names=[c.name for c in wanted])


def _other_case(row: Mapping[str, Any], name: str) -> Any:
    return next((v for k, v in row.items() if k.lower() == name.lower()), None)


def _column(values: list[Any], column: Column) -> pa.Array:
    expected = {"boolean": bool, "string": str, "binary": bytes | bytearray, "int": int, "bigint": int}.get(column.type.name)
    for number, value in enumerate(values):
        if value is None or expected is None:
            continue
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise SchemaError(f"row {number}: {value!r} is not a {column.type} for column {column.name}")
    try:
        return pa.array(values, column.type.arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaError(_which(values, column, error)) from error


def _which(values: list[Any], column: Column, error: Exception) -> str:
    """The first value that does not fit."""
    for number, value in enumerate(values):
        try:
            pa.array([value], column.type.arrow)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return f"row {number}: {value!r} is not a {column.type} for column {column.name}"
    return f"column {column.name}: {error}"


def _check_names(names: Sequence[str], schema: Schema) -> None:
    known = {c.name.lower() for c in schema.columns}
    for name in names:
        if name.lower() not in known:
            raise SchemaError(f"unknown column {name!r}: the columns are {', '.join(schema.names)}")


def _cast(array: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    kind = column.type.arrow
    if array.type == kind:
        return array
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if not _convertible(array.type, column):
        raise SchemaError(f"column {column.name} is {column.type}, the data has {array.type}: cast it first")
    try:
        return array.cast(kind)
    except pa.ArrowException as error:
        raise SchemaError(f"column {column.name} is {column.type}: {str(error).splitlines()[0]}") from error


def _convertible(kind: pa.DataType, column: Column) -> bool:
    """Conversions that lose nothing, or fail loudly: never text from numbers or numbers from text."""
    if pa.types.is_null(kind):
        return True
    name = column.type.name
    if name == "string":
        return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if name == "binary":
        return bool(pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind))
    if name in ("int", "bigint"):
        return bool(pa.types.is_integer(kind))
    if name in ("double", "decimal"):
        return bool(pa.types.is_integer(kind) or (pa.types.is_floating(kind) and name == "double") or pa.types.is_decimal(kind))
    if name == "date":
        return bool(pa.types.is_date(kind))
    return bool(name == "timestamp" and pa.types.is_timestamp(kind))


def _check_nulls(table: pa.Table, schema: Schema, wanted: Sequence[Column]) -> None:
    for column in wanted:
        if (column.name in schema.key or not column.nullable) and table.column(column.name).null_count:
            number = pc.index(pc.is_null(table.column(column.name)), True).as_py()
            what = "the key" if column.name in schema.key else "column"
            raise SchemaError(f"row {number}: {what} {column.name} must not be NULL")
