"""Slots: which of `count` files a key lives in.

    slot(key) = hash(key) mod count
    hash(key) = zlib.crc32(key, 0xFFFFFFFF)

The hash is persisted in where keys are, so it is fixed for ever. This CRC is the one of zip files,
begun with an empty register. So zero bytes in front of a key change nothing, and many keys are
worked on together as if all were filled up to whole words in front:

    register = 0
    for each 8-byte little-endian word:  register = step(register xor word)
    hash = not register

A step is linear: it is the xor of what each 16 bits of the word contribute, and that is looked up.
Bytes of keys mostly begin with 1 (a value that is not NULL), so the zeros in front do not make keys
equal either.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias
from zlib import crc32

from belvedere.encoding.binaries import unpack
from belvedere.libraries import np, npt, pa

_Registers: TypeAlias = "npt.NDArray[np.uint32]"
_ONES = 0xFFFFFFFF
# keys whose intermediate arrays stay in the processor's cache: nearly twice as fast as a million at
# once
_PIECE = 1 << 14
_FEW = 64  # keys that are hashed one by one in less time
_LONG = 64  # words of a key; one that has more is hashed alone in less time
_POLYNOMIAL = 0xEDB88320


def slot_hash_one(key: bytes) -> int:
    return crc32(key, _ONES)


def slot_of(key: bytes, count: int) -> int:
    return crc32(key, _ONES) % count


def slot_hash(keys: pa.BinaryArray) -> _Registers:
    if len(keys) <= _FEW:
        return np.array([crc32(key, _ONES) for key in keys.to_pylist()], np.uint32)
    return np.concatenate(
        [_hash_piece(keys.slice(start, _PIECE)) for start in range(0, max(len(keys), 1), _PIECE)]
    )


def _hash_piece(keys: pa.BinaryArray) -> _Registers:
    packed = unpack(keys, reach=8)
    lengths = packed.ends - packed.starts
    words, rest = lengths >> 3, lengths & 7
    most = int(words.max(initial=0))
    if most > _LONG:
        return _hash_apart(keys, words > _LONG)
    register = _step(packed.gather(packed.starts, "<u8") * _to_the_end()[rest])
    at = packed.starts + rest
    longer: npt.NDArray[np.int64] | slice = slice(None)
    for done in range(most):
        left = words[longer]
        if left.min() <= done:
            longer = (
                np.flatnonzero(words > done) if isinstance(longer, slice) else longer[left > done]
            )
        register[longer] = _step(packed.gather(at[longer] + 8 * done, "<u8") ^ register[longer])
    return ~register


def _hash_apart(keys: pa.BinaryArray, is_long: npt.NDArray[np.bool_]) -> _Registers:
    """Long keys one by one, the others together."""
    hashes = np.empty(len(keys), np.uint32)
    hashes[~is_long] = _hash_piece(keys.filter(pa.array(~is_long)))
    long = keys.filter(pa.array(is_long))
    hashes[is_long] = [crc32(key, _ONES) for key in long.to_pylist()]
    return hashes


def slots_of(keys: pa.BinaryArray, count: int) -> npt.NDArray[np.int64]:
    return (slot_hash(keys) % np.uint32(count)).astype(np.int64)


def _step(words: npt.NDArray[np.uint64]) -> _Registers:
    """The registers after these words, each already joined with the register before it."""
    parts = words.view(np.uint16).reshape(-1, 4)
    tables = _tables()
    register: _Registers = tables[0].take(parts[:, 0])
    for i in (1, 2, 3):
        register ^= tables[i].take(parts[:, i])
    return register


@cache
def _to_the_end() -> npt.NDArray[np.uint64]:
    """Times a word: its first n bytes become its last."""
    return np.array([0] + [1 << 64 - 8 * n for n in range(1, 8)], np.uint64)


@cache
def _tables() -> list[_Registers]:
    """What 16 bits contribute to the register at the end of their word, by
    their place in the word.
    """
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(
            one & np.uint32(1), one >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), one >> np.uint32(1)
        )
    found, register = [], np.arange(1 << 16, dtype=np.uint32)
    for byte in range(1, 9):
        register = one[register & np.uint32(0xFF)] ^ register >> np.uint32(8)
        if byte % 2 == 0:
            found.append(register)
    return found[::-1]
