"""Columns of fixed-width types as unsigned numpy limbs, and back.

A value of 1, 4 or 8 bytes is one limb; a decimal of more than 18 digits is two of 8 bytes, the most
significant first. Signed values are in two's complement, doubles are their IEEE bits. Keys and rows
differ only in how they write these limbs: big endian with the sign flipped, or little endian.
"""

from __future__ import annotations

from belvedere.encoding.binaries import Mask, Numbers, valid_mask, validity
from belvedere.libraries import np, npt, pa
from belvedere.types import SqlType

_LIMBS = {
    "boolean": ("u1",),
    "int": ("u4",),
    "date": ("u4",),
    "bigint": ("u8",),
    "timestamp": ("u8",),
    "double": ("u8",),
}
_NARROW_DIGITS = 18  # 10**18 < 2**63


def limb_dtypes(kind: SqlType) -> tuple[str, ...]:
    """The dtypes of the limbs without byte order; empty for strings and binaries."""
    if kind.name == "decimal":
        return ("u8",) if kind.precision <= _NARROW_DIGITS else ("u8", "u8")
    return _LIMBS.get(kind.name, ())


def width(kind: SqlType) -> int:
    """Bytes of a value; 0 for strings and binaries."""
    return sum(int(dtype[1]) for dtype in limb_dtypes(kind))


def to_limbs(array: pa.Array, kind: SqlType) -> list[Numbers]:
    """The limbs of a column; NULLs are zero, so that equal columns are equal limbs."""
    valid = valid_mask(array)
    limbs = _raw_limbs(array, kind)
    return limbs if valid is None else [np.where(valid, limb, limb.dtype.type(0)) for limb in limbs]


def from_limbs(limbs: list[Numbers], valid: Mask | None, kind: SqlType) -> pa.Array:
    if kind.name == "boolean":
        return pa.array(limbs[0] != 0, mask=None if valid is None else ~valid)
    data = _decimal_words(limbs) if kind.name == "decimal" else np.ascontiguousarray(limbs[0])
    return pa.Array.from_buffers(kind.arrow, len(limbs[0]), [validity(valid), pa.py_buffer(data)])


def _raw_limbs(array: pa.Array, kind: SqlType) -> list[Numbers]:
    dtypes = limb_dtypes(kind)
    if len(array) == 0:
        return [np.zeros(0, dtype) for dtype in dtypes]
    if kind.name == "boolean":
        array = array.cast(pa.uint8())
    words = np.frombuffer(array.buffers()[1], dtypes[0])
    if kind.name == "decimal":
        halves = words.reshape(-1, 2)[array.offset : array.offset + len(array)]
        return [halves[:, 1], halves[:, 0]] if len(dtypes) == 2 else [halves[:, 0]]
    return [words[array.offset : array.offset + len(array)]]


def _decimal_words(limbs: list[Numbers]) -> npt.NDArray[np.uint64]:
    """Arrow's 16 little-endian bytes; one limb is extended by its sign."""
    words = np.empty((len(limbs[0]), 2), np.uint64)
    words[:, 0] = limbs[-1]
    words[:, 1] = (
        limbs[0] if len(limbs) == 2 else (words[:, 0].view(np.int64) >> 63).view(np.uint64)
    )
    return words
