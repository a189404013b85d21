"""Faults of foreign rows: what their clients wrote is not what the table is declared to be.

    faults(e) = faults(e-1) + rows that became wrong - rows that became right, per column

A cell that is not of its type is NULL, and so is a column that no cell has although it is NOT NULL.
Neither may pass for a value, so both are errors of the views that use the column (rule R9), kept in
error tables of the base table: those of views come and go. A row whose key is not of the declared
types has no place in any view; it is counted, and no view is in error for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from belvedere.libraries import np, npt, pa
from belvedere.operators.errors import error_rows, record_errors
from belvedere.stores.base import WRONG_NULL, Codes, Shard, TableId, is_odd
from belvedere.types import SqlType

Read: TypeAlias = "tuple[pa.BinaryArray, list[Codes]]"  # rows, and what is wrong with each column


def record_faults(
    shard: Shard, tables: Sequence[TableId], keys: pa.BinaryArray, before: Read, after: Read
) -> None:
    """Note how rows have changed that are wrong, or were: in each table the rows of a column."""
    if not tables:
        return  # made before faults were counted
    odd = is_odd(keys).to_numpy(zero_copy_only=False)
    was, now = (_all_codes(read, odd) for read in (before, after))
    for table, old, new in zip(tables, was, now, strict=True):
        changed = old != new
        if changed.any():
            rows = [_weighted(keys, code, changed, w) for code, w in ((old, -1), (new, 1))]
            record_errors(shard, table, pa.concat_tables(rows))


def _all_codes(read: Read, odd: npt.NDArray[np.bool_]) -> list[Codes]:
    """Of every column, and of the key: an odd row counts there alone."""
    rows, columns = read
    there = rows.is_valid().to_numpy(zero_copy_only=False)
    codes = [np.where(odd, 0, column).astype(np.int32) for column in columns]
    return [*codes, (odd & there).astype(np.int32)]


def _weighted(
    keys: pa.BinaryArray, codes: Codes, changed: npt.NDArray[np.bool_], weight: int
) -> pa.Table:
    chosen = np.flatnonzero(changed & (codes > 0))
    weights = pa.array(np.full(len(chosen), weight, np.int64))
    return error_rows(keys.take(pa.array(chosen)), weights, pa.array(codes[chosen]))


def describe_fault(column: str, kind: SqlType, code: int) -> str:
    if code == WRONG_NULL:
        return f"{column} is NULL, and declared NOT NULL"
    return f"the cell of {column} is no {kind}"
