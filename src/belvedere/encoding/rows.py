"""Row values: bytes that are compact and decode column by column.

    row = null bitmap | fixed fields | variable parts

    null bitmap     one bit per column, set for NULL, column i in byte i // 8, bit i % 8
    fixed fields    little endian, in column order: boolean 1 byte, int and date 4, bigint,
                    timestamp and double 8, decimal 8 for p <= 18, else 16, string and binary a
                    length of 4
    variable parts  the bytes of strings and binaries, in column order

Every fixed field is at the same place in every row, so a column is one gather. NULL fields are
zero. Doubles keep their bits: -0.0 and the payload of a NaN come back as they went in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from belvedere.encoding import one_row
from belvedere.encoding.binaries import (
    Mask,
    Numbers,
    Packed,
    arrays_of,
    as_binary,
    checked_text,
    fixed_binary,
    one_array,
    row_count,
    unpack,
    valid_mask,
    weave,
)
from belvedere.encoding.fields import from_limbs, limb_dtypes, to_limbs, width
from belvedere.encoding.scalars import MISFIT
from belvedere.errors import Damaged
from belvedere.libraries import np, pa, pc
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class RowCodec:
    """Rows of columns of these types."""

    types: tuple[SqlType, ...]
    encode_one: Callable[[Sequence[Any]], bytes] = field(init=False, repr=False, compare=False)
    decode_one: Callable[[bytes], tuple[Any, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encode_one", one_row.encoder(self.types))
        object.__setattr__(self, "decode_one", one_row.decoder(self.types))

    def __reduce__(self) -> tuple[Any, ...]:
        return RowCodec, (self.types,)

    def encode(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], rows: int | None = None
    ) -> pa.BinaryArray:
        """The rows as bytes, none of them NULL; `rows` is needed only when there are no columns."""
        arrays = arrays_of(columns, self.types)
        count = row_count(arrays, rows)
        if not arrays:
            return weave([], count)
        records, tails = np.zeros(count, _layout(self.types)), []
        for i, (array, kind) in enumerate(zip(arrays, self.types, strict=True)):
            _mark_nulls(records, i, array)
            if width(kind):
                _put_limbs(records, i, to_limbs(array, kind))
            else:
                tails.append(_tail(array))
                records[f"0.{i}"] = pc.binary_length(tails[-1]).to_numpy()
        return weave([fixed_binary(records), *tails], count)

    def decode(self, values: pa.BinaryArray, only: Collection[int] | None = None) -> list[pa.Array]:
        """The columns of the rows, or `only` some, in order; a NULL among the values is NULL in
        every column.
        """
        try:
            return self._columns(one_array(values, pa.binary()), only)
        except MISFIT as cause:
            raise Damaged(
                f"some of {len(values)} rows are not of ({', '.join(map(str, self.types))})"
            ) from cause

    def _columns(
        self, array: pa.BinaryArray, only: Collection[int] | None = None
    ) -> list[pa.Array]:
        layout = _layout(self.types)
        present, packed = valid_mask(array), unpack(array, layout.itemsize)
        records = packed.gather(packed.starts, layout)
        tails = _Tails(packed, records)
        columns = []
        for i, kind in enumerate(self.types):
            valid = _valid(records, i, present)
            if only is None or i in only:
                columns.append(_column(records, i, kind, valid, tails))
            elif not width(kind):
                tails.skip(i, valid)
        whole = tails.at == packed.ends
        if not (whole if present is None else whole | ~present).all():
            raise ValueError("rows are longer or shorter than their columns")
        return columns


class _Tails:
    """Reads the variable parts in column order; `at` is where the next one of each row begins."""

    def __init__(self, packed: Packed, records: Numbers) -> None:
        self.packed, self.records = packed, records
        self.at = packed.starts + records.dtype.itemsize

    def column(self, i: int, valid: Mask | None, kind: pa.DataType) -> pa.Array:
        starts = self.at
        self.skip(i, valid)
        return self.packed.slices(starts, self.at, valid, kind)

    def skip(self, i: int, valid: Mask | None) -> None:
        lengths = self.records[f"0.{i}"]
        # The record of a row that is absent is made of its neighbour's bytes, so its length means
        # nothing.
        self.at = self.at + (lengths if valid is None else np.where(valid, lengths, 0))


@lru_cache(maxsize=4096)
def _layout(kinds: tuple[SqlType, ...]) -> np.dtype[Any]:
    """Limb j of column i is field `j.i`, the least significant first; the length of a string is
    field `0.i`.
    """
    layout: list[Any] = [("nulls", "u1", (one_row.bitmap_size(kinds),))]
    for i, kind in enumerate(kinds):
        dtypes = limb_dtypes(kind) or ("u4",)
        layout += [(f"{j}.{i}", "<" + dtypes[j]) for j in reversed(range(len(dtypes)))]
    return np.dtype(layout)


def _mark_nulls(records: Numbers, i: int, array: pa.Array) -> None:
    valid = valid_mask(array)
    if valid is not None:
        records["nulls"][:, i // 8] |= (~valid).view(np.uint8) << np.uint8(i % 8)


def _put_limbs(records: Numbers, i: int, limbs: list[Numbers]) -> None:
    for j, limb in enumerate(limbs):
        records[f"{j}.{i}"] = limb


def _tail(array: pa.Array) -> pa.Array:
    raw = as_binary(array)
    return raw.fill_null(b"") if raw.null_count else raw


def _valid(records: Numbers, i: int, present: Mask | None) -> Mask | None:
    """Which values of column i are not NULL; None when all are."""
    nulls = records["nulls"][:, i // 8] & np.uint8(1 << i % 8)
    if not nulls.any():
        return present
    valid: Mask = nulls == 0
    return valid if present is None else valid & present


def _column(records: Numbers, i: int, kind: SqlType, valid: Mask | None, tails: _Tails) -> pa.Array:
    if not width(kind):
        return checked_text(tails.column(i, valid, kind.arrow))
    return from_limbs([records[f"{j}.{i}"] for j in range(len(limb_dtypes(kind)))], valid, kind)
