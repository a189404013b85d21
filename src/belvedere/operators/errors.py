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
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, WEIGHT
from belvedere.operators.grouping import group
from belvedere.stores.base import Shard, TableId, Write

COUNT = struct.Struct("<qi")  # weight and the number of the expression that raised
COUNTER = b""
ROW = b"\x01"  # stands before a row's identity, which may be empty itself


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
    ids, codes = group(rows.column(ID).combine_chunks())
    keys = _within_limits(pc.binary_join_element_wise(ROW, ids, b""))
    weights = np.bincount(codes, rows.column(WEIGHT).to_numpy(), len(keys)).astype(np.int64)
    expression = np.zeros(len(keys), np.int32)
    np.maximum.at(expression, codes, rows.column("expression").to_numpy())
    before = shard.get_many(table, keys)
    old = [COUNT.unpack(v) if v is not None else (0, 0) for v in before.to_pylist()]
    new = [
        (n + int(w), int(x) if w > 0 else y)
        for (n, y), w, x in zip(old, weights, expression, strict=True)
    ]
    total_before = shard.get_many(table, pa.array([COUNTER], pa.binary()))
    count: int = COUNT.unpack(total_before[0].as_py())[0] if total_before[0].is_valid else 0
    count += sum(n[0] > 0 for n in new) - sum(o[0] > 0 for o in old)
    values = [COUNT.pack(count, 0)] + [COUNT.pack(*n) if n[0] else None for n in new]
    shard.write(
        Write(
            table,
            pa.concat_arrays([pa.array([COUNTER], pa.binary()), keys]),
            pa.array(values, pa.binary()),
            pa.concat_arrays([total_before, before]),
        )
    )
    return count
