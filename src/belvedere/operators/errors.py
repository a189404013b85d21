"""Errors are data (rule R9): a row whose expression raises becomes an error record of its view.

    errors(e) = errors(e-1) + weights of raising rows, per row identity

The record goes when its row goes, because the row's retraction raises in the same way. A counter
record under the empty key (rows stand under a prefix) says how many there are, so that the commit
manifest can tell which views are in error.
"""

from __future__ import annotations

import hashlib
import struct

from belvedere.encoding import MAX_KEY, too_long
from belvedere.encoding.arrays import Ints
from belvedere.libraries import np, npt, pa, pc
from belvedere.operators.base import ID, WEIGHT, StateTable, column_of
from belvedere.operators.grouping import group, group_count
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, INT

COUNT = struct.Struct("<qi")  # weight and the number of the expression that raised
COUNTER = b""
ROW = b"\x01"  # stands before a row's identity, which may be empty itself

_Record = tuple[int, int]  # as COUNT has them
_ABSENT: _Record = (0, 0)


def error_state(table: TableId) -> StateTable:
    """The error table of an operator: rows by identity."""
    return StateTable(table, "errors", (), (BIGINT, INT), identity=True)


def error_rows(ids: pa.Array, weights: pa.Array, expression: pa.Array) -> pa.Table:
    schema = pa.schema([(ID, pa.binary()), (WEIGHT, pa.int64()), ("expression", pa.int32())])
    return pa.table(
        [pc.cast(ids, pa.binary()), weights, pc.cast(expression, pa.int32())], schema=schema
    )


def _within_limits(keys: pa.BinaryArray) -> pa.BinaryArray:
    """The identity of a join of many tables may be longer than a store's keys: then its end is
    replaced by a digest.
    """
    if not pc.any(too_long(keys)).as_py():
        return keys
    kept = MAX_KEY - 16
    short = [
        k if len(k) <= MAX_KEY else k[:kept] + hashlib.blake2b(k, digest_size=16).digest()
        for k in keys.to_pylist()
    ]
    return pa.array(short, pa.binary())


def record_errors(shard: Shard, table: TableId, rows: pa.Table) -> int:
    """Add error rows to the error table of this slot; returns how many rows of this slot are in
    error afterwards.
    """
    keys, weights, expressions = _combined(rows)
    counter = pa.array([COUNTER], pa.binary())
    before, counted = shard.get_many(table, keys), shard.get_many(table, counter)
    old = [_unpacked(value) for value in before.to_pylist()]
    new = [
        _added(*change) for change in zip(old, weights.tolist(), expressions.tolist(), strict=True)
    ]
    count = _unpacked(counted[0].as_py())[0] + _in_error(new) - _in_error(old)
    values = [COUNT.pack(*record) if record[0] else None for record in new]
    shard.write(
        Write(
            table,
            pa.concat_arrays([counter, keys]),
            pa.array([COUNT.pack(count, 0), *values], pa.binary()),
            pa.concat_arrays([counted, before]),
        )
    )
    return count


def _combined(rows: pa.Table) -> tuple[pa.BinaryArray, Ints, npt.NDArray[np.int32]]:
    """Error rows by record key: the sum of the weights, and the last of the expressions."""
    ids, codes = group(column_of(rows, ID))
    keys = _within_limits(pc.binary_join_element_wise(ROW, ids, b""))
    weights = group_count(codes, len(keys), rows.column(WEIGHT).to_numpy())
    expressions = np.zeros(len(keys), np.int32)
    np.maximum.at(expressions, codes, rows.column("expression").to_numpy())
    return keys, weights, expressions


def _unpacked(value: bytes | None) -> _Record:
    return _ABSENT if value is None else COUNT.unpack(value)


def _added(old: _Record, weight: int, expression: int) -> _Record:
    """A row that comes says which expression raises; one that goes leaves that as it is."""
    count, raised = old
    return count + weight, expression if weight > 0 else raised


def _in_error(records: list[_Record]) -> int:
    return sum(count > 0 for count, _ in records)
