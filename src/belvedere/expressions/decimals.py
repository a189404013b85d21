"""Decimals as whole numbers: the way to divide exactly in 128 bits."""

from __future__ import annotations

from belvedere.expressions.coercion import MAX_PRECISION
from belvedere.types import SqlType


def unscaled(sql: str, kind: SqlType) -> str:
    """The digits of a decimal as HUGEINT: 12.34 becomes 1234."""
    if kind.scale == 0:
        return f"CAST({sql} AS HUGEINT)"
    if kind.precision + kind.scale < MAX_PRECISION:
        return (
            f"CAST({wide(sql, kind)} * CAST({10**kind.scale} AS DECIMAL({kind.scale + 1},0)) AS"
            " HUGEINT)"
        )
    return f"CAST(replace(CAST({sql} AS VARCHAR), '.', '') AS HUGEINT)"


def wide(sql: str, kind: SqlType) -> str:
    """A factor in 128 bits: DuckDB multiplies two decimals of up to 18 digits in 64 bits, whatever
    the product needs.
    """
    return f"CAST({sql} AS DECIMAL({MAX_PRECISION},{kind.scale}))"


def rescaled(sql: str, kind: SqlType) -> str:
    """The inverse: a HUGEINT of digits as a decimal; fails beyond its precision."""
    if kind.scale == 0:
        return f"CAST({sql} AS {kind.duckdb})"
    return f"CAST(CAST({sql} AS DECIMAL(38,0)) * {smallest(kind.scale)} AS {kind.duckdb})"


def smallest(scale: int) -> str:
    """The decimal 0.00...1 of `scale` digits."""
    return f"CAST('0.{'1':0>{scale}}' AS DECIMAL({scale},{scale}))"


def read(text: str, kind: SqlType) -> str:
    """Decimal digits, perhaps with an exponent, rounded half up.

    DuckDB counts the digits before the exponent, so it is done wide.
    """
    return f"CAST(CAST({text} AS DECIMAL(38,{kind.scale})) AS {kind.duckdb})"
