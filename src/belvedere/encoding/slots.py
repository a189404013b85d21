"""Slots: which of `count` files a key lives in.

    slot(key) = hash(key) mod count

The hash is persisted in where keys are, so it is fixed for ever. With all arithmetic mod 2**64, the
key read as 8-byte little-endian words, the last one filled up with zero bytes:

    h = length of the key
    for each word:  h = (h xor word) * 9E3779B97F4A7C15;  h = h xor (h >> 32)
    h = h * BF58476D1CE4E5B9;  hash = h xor (h >> 32)

The multipliers are the golden ratio and the first one of splitmix64. The length is mixed in first, so
the filling does not make keys equal, and the last shift brings the well-mixed high bits down for mod.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from belvedere.encoding.binaries import unpack

_WORD, _LAST, _ONES = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, (1 << 64) - 1
_HALF = np.uint64(32)
_KEEP = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)  # the lowest n bytes of a word


def slot_hash_one(key: bytes) -> int:
    h = size = len(key)
    if size & 7:
        size = (size | 7) + 1
        key = key.ljust(size, b"\0")
    for word in _words(size)(key):
        h = (h ^ word) * _WORD & _ONES
        h ^= h >> 32
    h = h * _LAST & _ONES
    return h ^ h >> 32


def slot_of(key: bytes, count: int) -> int:
    return slot_hash_one(key) % count


def slot_hash(keys: pa.BinaryArray) -> npt.NDArray[np.uint64]:
    packed = unpack(keys, reach=8)
    lengths = packed.ends - packed.starts
    h = lengths.astype(np.uint64)
    longer: npt.NDArray[np.int64] | slice = slice(None)
    for done in range(0, int(lengths.max(initial=0)), 8):
        left = lengths[longer] - done
        if left.min() <= 0:
            longer = np.flatnonzero(lengths > done) if isinstance(longer, slice) else longer[left > 0]
            left = lengths[longer] - done
        words = packed.gather(packed.starts[longer] + done, "<u8")
        if left.min() < 8:
            words &= _KEEP[np.minimum(left, 8)]
        h[longer] = _mix(h[longer] ^ words, _WORD)
    return _mix(h, _LAST)


def slots_of(keys: pa.BinaryArray, count: int) -> npt.NDArray[np.int64]:
    return (slot_hash(keys) % np.uint64(count)).astype(np.int64)


def _mix(h: npt.NDArray[np.uint64], multiplier: int) -> npt.NDArray[np.uint64]:
    product = h * np.uint64(multiplier)
    product ^= product >> _HALF
    return product


@lru_cache(maxsize=128)
def _words(size: int) -> Callable[[bytes], tuple[int, ...]]:
    return struct.Struct(f"<{size // 8}Q").unpack
