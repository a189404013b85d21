"""What all tables have in common: their number in front of keys, and columns as they must be."""

from __future__ import annotations

from belvedere.errors import SchemaError
from belvedere.libraries import pa


def prefix(table: int) -> bytes:
    return table.to_bytes(4, "big")


def check_columns(*columns: pa.BinaryArray) -> None:
    """Blocks take Arrow's buffers as they are, so another type (large_binary, string) would be
    stored as nonsense.
    """
    for column in columns:
        if not isinstance(column, pa.BinaryArray):
            raise SchemaError(
                f"a store takes arrays of type binary, not {getattr(column, 'type', type(column))}:"
                " cast them first"
            )
        if len(column) != len(columns[0]):
            raise SchemaError(
                f"{len(columns[0])} keys but {len(column)} values: give one value, or NULL, for"
                " each key"
            )


def check_not_null(keys: pa.BinaryArray) -> None:
    if keys.null_count:
        raise SchemaError("a key is NULL: every record needs a key")
