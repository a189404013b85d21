"""Rows from users as Arrow columns of a table's schema, checked before anything is written.

Lists of dicts, pyarrow tables and batches, and everything that speaks the Arrow PyCapsule interface
(pandas and Polars frames do) become one Arrow table. A row that does not fit is named by its number
and column; then nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from belvedere.encoding.scalars import FIRST_DAY, FIRST_MICROSECOND, LAST_DAY, LAST_MICROSECOND
from belvedere.errors import SchemaError
from belvedere.input.values import misfit, plain
from belvedere.libraries import pa, pc
from belvedere.types import Column, Schema

_ROW_LABELS = re.compile(r"__index_level_\d+__")
_RANGES = {
    "date": ("int32", FIRST_DAY, LAST_DAY),
    "timestamp": ("int64", FIRST_MICROSECOND, LAST_MICROSECOND),
}


def to_arrow(
    rows: Any, schema: Schema, deletes: pa.Array | pa.ChunkedArray | None = None
) -> pa.Table:
    """`rows` as a table of the schema's columns; columns that are missing are NULL. Of rows to be
    deleted only the key matters.
    """
    wanted = schema.columns
    data = _arrow(rows)
    table = data if data is not None else _from_dicts(rows, schema, wanted)
    if data is not None:
        names = own_columns(table.schema)
        check_names(names, schema)
        present = {name.lower(): name for name in names}
        table = pa.table(
            [
                (
                    _cast(table.column(present[c.name.lower()]), c)
                    if c.name.lower() in present
                    else pa.nulls(table.num_rows, c.type.arrow)
                )
                for c in wanted
            ],
            names=[c.name for c in wanted],
        )
    _check_nulls(table, schema, wanted, deletes)
    for column in wanted:
        _check_range(table.column(column.name), column)
    return table


def own_columns(schema: pa.Schema) -> list[str]:
    """Of data from pandas, all but the row labels that it sends along when some rows were left out;
    they have no name there.
    """
    labelled = b"pandas" in (schema.metadata or {})
    return [name for name in schema.names if not (labelled and _ROW_LABELS.fullmatch(name))]


def _arrow(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
            return pa.table(rows)
        if isinstance(rows, Sequence) and rows and isinstance(rows[0], pa.RecordBatch):
            return pa.Table.from_batches(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise SchemaError(
            f"this {type(rows).__name__} does not become an Arrow table of rows:"
            f" {str(error).splitlines()[0]}"
        ) from error
    return None


def _from_dicts(rows: Any, schema: Schema, wanted: Sequence[Column]) -> pa.Table:
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
        raise SchemaError(
            f"expected rows as a list of dicts or as Arrow data, got {type(rows).__name__}"
        )
    listed = list(rows)
    seen: set[tuple[str, ...]] = set()  # rows have mostly the same columns
    for number, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise SchemaError(f"row {number} is a {type(row).__name__}, not a dict")
        if (names := tuple(row)) not in seen:
            check_names(names, schema, f"row {number}: ")
            seen.add(names)
    arrays = []
    for column in wanted:
        values = [
            row.get(column.name) if column.name in row else _other_case(row, column.name)
            for row in listed
        ]
        arrays.append(_column(values, column))
    return pa.table(arrays, names=[c.name for c in wanted])


def _other_case(row: Mapping[str, Any], name: str) -> Any:
    return next((v for k, v in row.items() if k.lower() == name.lower()), None)


def _column(values: list[Any], column: Column) -> pa.Array:
    values = [
        None if value is None else plain(value, column, number)
        for number, value in enumerate(values)
    ]
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
            return misfit(value, column, number)
    return f"column {column.name}: {error}"


def check_names(names: Iterable[str], schema: Schema, where: str = "") -> None:
    """Every name is a column's, whatever its case, and none is there twice."""
    known, found = {c.name.lower() for c in schema.columns}, set()
    for name in names:
        small = str(name).lower()
        if small not in known:
            raise SchemaError(
                f"{where}unknown column {name!r}: the columns are {', '.join(schema.names)}"
            )
        if small in found:
            raise SchemaError(
                f"{where}column {name!r} is given twice: names are compared without case"
            )
        found.add(small)


def _cast(array: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    kind = column.type.arrow
    try:
        coded = pa.types.is_dictionary(array.type)
        found = array.type.value_type if coded else array.type
        if found != kind and not _convertible(found, column):
            raise SchemaError(
                f"column {column.name} is {column.type}, the data has {found}: cast it first"
            )
        if coded:
            array = pa.chunked_array(
                [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in array.chunks], kind
            )
        array = array.cast(kind)
        if column.type.name == "string":
            array.validate(full=True)  # Arrow takes any bytes for text
    except pa.ArrowException as error:
        raise SchemaError(
            f"column {column.name} is {column.type}: {str(error).splitlines()[0]}"
        ) from error
    return array


def _convertible(kind: pa.DataType, column: Column) -> bool:
    """Conversions that lose nothing, or fail loudly: never text from numbers
    or numbers from text.
    """
    if pa.types.is_null(kind):
        return True
    name = column.type.name
    if name == "string":
        return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if name == "binary":
        return bool(
            pa.types.is_large_binary(kind)
            or pa.types.is_fixed_size_binary(kind)
            or pa.types.is_binary_view(kind)
        )
    if name in ("int", "bigint"):
        return bool(pa.types.is_integer(kind))
    if name in ("double", "decimal"):
        return bool(
            pa.types.is_integer(kind)
            or (pa.types.is_floating(kind) and name == "double")
            or pa.types.is_decimal(kind)
        )
    if name == "date":
        return bool(pa.types.is_date(kind))
    return bool(name == "timestamp" and pa.types.is_timestamp(kind))


def to_mask(deletes: Any) -> pa.Array | pa.ChunkedArray:
    """Which rows are deletes, as Arrow booleans."""
    try:
        mask = (
            deletes
            if isinstance(deletes, pa.Array | pa.ChunkedArray)
            else pa.array(deletes, pa.bool_())
        )
    except (pa.ArrowException, TypeError) as error:
        raise SchemaError(
            "deletes says for each row whether it is a delete: give booleans"
            f" ({str(error).splitlines()[0]})"
        ) from error
    if not pa.types.is_boolean(mask.type) or mask.null_count:
        raise SchemaError(
            "deletes says for each row whether it is a delete: give booleans, none of them NULL"
        )
    return mask


def _check_range(array: pa.ChunkedArray, column: Column) -> None:
    """Arrow knows dates and timestamps that nothing else here can show."""
    if column.type.name not in _RANGES:
        return
    kind, first, last = _RANGES[column.type.name]
    numbers = array.cast(kind)
    wrong = pc.or_(pc.less(numbers, first), pc.greater(numbers, last))
    if (number := pc.index(wrong, True).as_py()) >= 0:
        raise SchemaError(
            f"row {number}: column {column.name} is a {column.type} outside of the years 1 to 9999"
        )


def _check_nulls(
    table: pa.Table,
    schema: Schema,
    wanted: Sequence[Column],
    deletes: pa.Array | pa.ChunkedArray | None,
) -> None:
    if deletes is not None and len(deletes) != table.num_rows:
        raise SchemaError(
            f"deletes has {len(deletes)} values for {table.num_rows} rows: give one for each"
        )
    for column in wanted:
        is_key = column.name in schema.key
        if (is_key or not column.nullable) and table.column(column.name).null_count:
            wrong = pc.is_null(table.column(column.name))
            if deletes is not None and not is_key:
                wrong = pc.and_not(wrong, deletes)
            if (number := pc.index(wrong, True).as_py()) >= 0:
                raise SchemaError(
                    f"row {number}: {'the key' if is_key else 'column'} {column.name} must not be"
                    " NULL"
                )
