"""Errors are data (rule R9): a row whose expression raises becomes an error record of its view.

    errors(e) = errors(e-1) + weights of raising rows, per row identity

The record goes when its row goes, because the row's retraction raises in the same way. A counter
record under the empty key (rows stand under a prefix) says how many there are, so that the commit
manifest can tell which views are in error.

    key      01, identity of the row; of a long one the beginning and a digest
    value    weight i64, number of the expression that raised i32; the identity, if it is a long one
"""

from __future__ import annotations

import hashlib
import struct

from belvedere.encoding import too_long
from belvedere.encoding.arrays import Ints
from belvedere.libraries import np, npt, pa, pc
from belvedere.operators.base import ID, WEIGHT, StateTable, column_of
from belvedere.operators.grouping import group, group_count
from belvedere.stores.base import Shard, TableId, Write
from belvedere.types import BIGINT, INT

COUNT = struct.Struct("<qi")
COUNTER = b""
ROW = b"\x01"  # stands before a row's identity, which may be empty itself

_Record = tuple[int, int]  # as COUNT has them
_ABSENT: _Record = (0, 0)
# Records of all stores have it, also of those that take longer keys: else the retraction of a row
# would not find a record that was written before stores took them.
_LONGEST = 503
_DIGEST = 16


def error_state(table: TableId) -> StateTable:
    """The error table of an operator: rows by identity."""
    return StateTable(table, "errors", (), (BIGINT, INT), identity=True)


def error_rows(ids: pa.Array, weights: pa.Array, expression: pa.Array) -> pa.Table:
    schema = pa.schema([(ID, pa.binary()), (WEIGHT, pa.int64()), ("expression", pa.int32())])
    return pa.table(
        [pc.cast(ids, pa.binary()), weights, pc.cast(expression, pa.int32())], schema=schema
    )


def identity_in(key: bytes, value: bytes) -> bytes:
    """The identity of the row that a record is about."""
    return value[COUNT.size :] or key[len(ROW) :]


def _within_limits(keys: pa.BinaryArray) -> tuple[pa.BinaryArray, list[bytes]]:
    """Record keys whose end is replaced by a digest if they are long, and what belongs into the
    values for that.
    """
    if not pc.any(too_long(keys, _LONGEST)).as_py():
        return keys, [b""] * len(keys)
    whole = keys.to_pylist()
    short = [key if len(key) <= _LONGEST else _shortened(key) for key in whole]
    ids = [key[len(ROW) :] if len(key) > _LONGEST else b"" for key in whole]
    return pa.array(short, pa.binary()), ids


def _shortened(key: bytes) -> bytes:
    digest = hashlib.blake2b(key, digest_size=_DIGEST).digest()
    return key[: _LONGEST - _DIGEST] + digest


def record_errors(shard: Shard, table: TableId, rows: pa.Table) -> int:
    """Add error rows to the error table of this slot; returns how many rows of this slot are in
    error afterwards.
    """
    keys, ids, weights, expressions = _combined(rows)
    counter = pa.array([COUNTER], pa.binary())
    before, counted = shard.get_many(table, keys), shard.get_many(table, counter)
    old = [_unpacked(value) for value in before.to_pylist()]
    new = [
        _added(*change) for change in zip(old, weights.tolist(), expressions.tolist(), strict=True)
    ]
    count = _unpacked(counted[0].as_py())[0] + _in_error(new) - _in_error(old)
    values = [
        COUNT.pack(*record) + identity if record[0] else None
        for record, identity in zip(new, ids, strict=True)
    ]
    shard.write(
        Write(
            table,
            pa.concat_arrays([counter, keys]),
            pa.array([COUNT.pack(count, 0), *values], pa.binary()),
            pa.concat_arrays([counted, before]),
        )
    )
    return count


def _combined(
    rows: pa.Table,
) -> tuple[pa.BinaryArray, list[bytes], Ints, npt.NDArray[np.int32]]:
    """Error rows by record key: identities that the keys do not tell, the sum of the weights, and
    the last of the expressions.
    """
    ids, codes = group(column_of(rows, ID))
    keys, long_ids = _within_limits(pc.binary_join_element_wise(ROW, ids, b""))
    weights = group_count(codes, len(keys), rows.column(WEIGHT).to_numpy())
    expressions = np.zeros(len(keys), np.int32)
    np.maximum.at(expressions, codes, rows.column("expression").to_numpy())
    return keys, long_ids, weights, expressions


def _unpacked(value: bytes | None) -> _Record:
    return _ABSENT if value is None else COUNT.unpack_from(value)


def _added(old: _Record, weight: int, expression: int) -> _Record:
    """A row that comes says which expression raises; one that goes leaves that as it is."""
    count, raised = old
    return count + weight, expression if weight > 0 else raised


def _in_error(records: list[_Record]) -> int:
    return sum(count > 0 for count, _ in records)
