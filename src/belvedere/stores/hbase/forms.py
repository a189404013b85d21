"""How the records of a state table are cells.

OneCell     the stamp holds the encoded row: for tables that only Belvedere reads
ManyCells   one cell per column, in the encodings of HBase's `Bytes`; the stamp holds the bitmap
            of NULLs, and a NULL has no cell: for views, which other clients read too
Counted     the same for views without a key, whose rows are their keys, counted
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from belvedere.encoding import RowCodec
from belvedere.encoding.binaries import fixed_binary, unpack
from belvedere.encoding.natural import decode, encode
from belvedere.errors import Damaged
from belvedere.libraries import pa, pc
from belvedere.types import Column

STAMP = "_"


class Form(Protocol):
    @property
    def family(self) -> str: ...

    def names(self) -> list[str]:
        """Qualifiers, the stamp's first."""

    def cells(self, values: pa.BinaryArray) -> list[pa.BinaryArray]:
        """Columns of cells of encoded rows; a NULL is a deleted one."""

    def values(self, cells: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
        """Encoded rows of columns of cells; NULL where the stamp is NULL."""


@dataclass(frozen=True, slots=True)
class OneCell:
    family: str = "s"

    def names(self) -> list[str]:
        return [STAMP]

    def cells(self, values: pa.BinaryArray) -> list[pa.BinaryArray]:
        return [values]

    def values(self, cells: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
        return cells[0]


@dataclass(frozen=True, slots=True)
class ManyCells:
    columns: tuple[Column, ...]
    family: str = "v"
    _codec: RowCodec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_codec", RowCodec(tuple(c.type for c in self.columns)))

    def names(self) -> list[str]:
        return [STAMP, *(qualifier(column.name) for column in self.columns)]

    def cells(self, values: pa.BinaryArray) -> list[pa.BinaryArray]:
        decoded = zip(self.columns, self._codec.decode(values), strict=True)
        return [self._nulls(values), *(encode(array, c.type) for c, array in decoded)]

    def values(self, cells: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
        stamp, *rest = cells
        found = zip(self.columns, rest, strict=True)
        rows = self._codec.encode([decode(array, c.type) for c, array in found], len(stamp))
        is_same = pc.equal(self._nulls(rows), stamp)  # NULL where there is no record
        if not pc.all(is_same, min_count=0).as_py():
            raise Damaged(
                "a cell of a view is missing, or is not Belvedere's: other clients must not write"
                " or delete there"
            )
        return pc.if_else(pc.is_valid(stamp), rows, pa.scalar(None, pa.binary()))

    def _nulls(self, rows: pa.BinaryArray) -> pa.BinaryArray:
        """The bitmap of NULLs, with which an encoded row begins."""
        return pc.binary_slice(rows, 0, (len(self.columns) + 7) // 8)


@dataclass(frozen=True, slots=True)
class Counted:
    """How often a row is there, as a cell of eight bytes, big endian."""

    family: str = "v"

    def names(self) -> list[str]:
        return [STAMP, "count"]

    def cells(self, values: pa.BinaryArray) -> list[pa.BinaryArray]:
        stamps = pc.if_else(pc.is_valid(values), pa.scalar(b""), pa.scalar(None, pa.binary()))
        return [stamps, _turned(values)]

    def values(self, cells: Sequence[pa.BinaryArray]) -> pa.BinaryArray:
        stamp, counts = cells
        if pc.any(pc.xor(pc.is_valid(stamp), pc.is_valid(counts))).as_py():
            raise Damaged("a count of a view is missing: other clients must not delete there")
        return _turned(counts)


def _turned(values: pa.BinaryArray) -> pa.BinaryArray:
    """Values of eight bytes, each with its bytes in the other order."""
    packed = unpack(values, 8)
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    words = packed.gather(packed.starts, "<u8").byteswap()
    return fixed_binary(words, valid)


def qualifier(name: str) -> str:
    """A column's name, which must not be the stamp's."""
    return name + STAMP if not name.strip(STAMP) else name
