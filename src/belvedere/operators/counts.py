"""Counts as they are stored: eight bytes each, and no record for 0."""

from __future__ import annotations

import struct

from belvedere.encoding.arrays import Ints
from belvedere.libraries import np, pa, pc

_COUNT = struct.Struct("<q")


def counts_of(values: pa.BinaryArray) -> Ints:
    """Counts kept as 8-byte values; 0 where absent."""
    filled = values.fill_null(_COUNT.pack(0))
    return np.frombuffer(b"".join(filled.to_pylist()), np.int64).copy()


def counted(counts: Ints) -> pa.BinaryArray:
    """8-byte values of counts, NULL for 0: a row that occurs no more is deleted."""
    values = pa.Array.from_buffers(
        pa.binary(8), len(counts), [None, pa.py_buffer(np.ascontiguousarray(counts))]
    ).cast(pa.binary())
    return pc.if_else(pa.array(counts != 0), values, pa.scalar(None, pa.binary()))
