"""Tuple keys: bytes whose order is the order of the tuples.

    key(t) < key(u)  <=>  t < u          column by column, NULL first, NaN last
    t begins with p  <=>  key(p) <= key(t) < key(p) + FF

Per column a tag, 00 for NULL or 01 for a value, then the value:

    boolean                    1 byte
    int, date                  4 bytes, big endian, sign bit flipped
    bigint, timestamp          8 bytes, the same
    decimal(p,s)               value * 10**s in 8 bytes for p <= 18, else 16, the same
    double                     8 bytes, big endian; the sign bit flipped, or all bits if it was set
    string, binary             the bytes with 00 written as 00 FF, then 00

The second law holds because a tag is never FF, and after the end of a string only a tag can follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

from belvedere.encoding import one_key
from belvedere.encoding.binaries import (
    Mask,
    Numbers,
    Packed,
    Piece,
    arrays_of,
    as_binary,
    checked_text,
    fixed_binary,
    has_zero_byte,
    row_count,
    unpack,
    valid_mask,
    weave,
)
from belvedere.encoding.fields import from_limbs, limb_dtypes, to_limbs, width
from belvedere.encoding.scalars import MISFIT
from belvedere.errors import Damaged
from belvedere.libraries import np, npt, pa, pc
from belvedere.types import SqlType

_INFINITY = 0x7FF0_0000_0000_0000

Positions: TypeAlias = "npt.NDArray[np.int64]"
_LOW_BITS, _HIGH_BITS = 0x0101_0101_0101_0101, 0x8080_8080_8080_8080
_REACH = 17  # the widest read past the end of a key: a tag and a 16-byte decimal
_SHORT_WORDS = 64  # of a string whose end is looked for word by word
_Typed: TypeAlias = "tuple[pa.Array, SqlType]"


@dataclass(frozen=True, slots=True)
class KeyCodec:
    """Keys of columns of these types.

    With `normalize`, equal means equal in SQL: -0.0 is 0.0. Without, -0.0 is apart and just below
    0.0. All NaNs are one NaN either way.
    """

    types: tuple[SqlType, ...]
    normalize: bool = True
    encode_one: Callable[[Sequence[Any]], bytes] = field(init=False, repr=False, compare=False)
    """The key of one tuple of Python values.

    Of fewer values than columns: the prefix of the keys that begin with them.
    """
    decode_one: Callable[[bytes], tuple[Any, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encode_one", one_key.encoder(self.types, self.normalize))
        object.__setattr__(self, "decode_one", one_key.decoder(self.types))

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyCodec, (self.types, self.normalize)

    def encode(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], rows: int | None = None
    ) -> pa.BinaryArray:
        """The keys of the rows; `rows` is needed only when there are no columns."""
        arrays = arrays_of(columns, self.types)
        count = row_count(arrays, rows)
        pieces: list[Piece] = []
        for plain, run in groupby(zip(arrays, self.types, strict=True), _is_plain):
            neighbours = list(run)
            pieces += self._plain(neighbours) if plain else self._others(neighbours)
        return weave(pieces, count)

    def decode(self, keys: pa.BinaryArray) -> list[pa.Array]:
        """The columns of keys, none of them NULL."""
        try:
            return _Reader(unpack(keys, _REACH)).columns(self.types)
        except MISFIT as cause:
            raise Damaged(
                f"some of {len(keys)} keys are not of ({', '.join(map(str, self.types))})"
            ) from cause

    def lengths(self, records: pa.BinaryArray) -> Positions:
        """How long the key is that each record begins with; what follows it may be anything that
        does not begin with FF.
        """
        packed = unpack(records, _REACH)
        at = packed.starts
        for kind in self.types:
            valid = packed.gather(at, "u1") == 1
            at = at + 1
            at = np.where(
                valid, at + width(kind) if width(kind) else _string_ends(packed, at) + 1, at
            )
        return at - packed.starts

    def _plain(self, run: list[_Typed]) -> list[Piece]:
        """Neighbouring fixed-width columns without NULLs, as one array of records."""
        return [fixed_binary(_records([(kind, self._ordered(array, kind)) for array, kind in run]))]

    def _others(self, run: list[_Typed]) -> list[Piece]:
        return [
            piece
            for array, kind in run
            for piece in (self._nullable(array, kind) if width(kind) else _variable(array))
        ]

    def _nullable(self, array: pa.Array, kind: SqlType) -> list[Piece]:
        tagged = fixed_binary(_records([(kind, self._ordered(array, kind))]), valid_mask(array))
        return [tagged.fill_null(one_key.NULL)]

    def _ordered(self, array: pa.Array, kind: SqlType) -> list[Numbers]:
        first, *rest = to_limbs(array, kind)
        if kind.name == "double":
            return [_ordered_doubles(first, self.normalize)]
        return [first if kind.name == "boolean" else first ^ _sign_bit(first.dtype), *rest]


def prefix_range(prefix: bytes) -> tuple[bytes, bytes]:
    """[from, to): the keys of the tuples that begin with the values of
    the prefix, and no others.
    """
    return prefix, prefix + b"\xff"


def too_long(keys: pa.BinaryArray, longest: int) -> pa.BooleanArray:
    return pc.greater(pc.binary_length(keys), longest)


def _is_plain(item: _Typed) -> bool:
    array, kind = item
    return width(kind) > 0 and array.null_count == 0


def _variable(array: pa.Array) -> list[Piece]:
    raw = as_binary(array)
    if has_zero_byte(raw):
        raw = pc.replace_substring(raw, one_key.ZERO, one_key.ESCAPED_ZERO)
    tagged: list[Piece] = [one_key.VALUE, raw, one_key.END]
    return tagged if raw.null_count == 0 else [weave(tagged, len(raw)).fill_null(one_key.NULL)]


def _records(columns: list[tuple[SqlType, list[Numbers]]]) -> Numbers:
    """A tag and big-endian limbs for each column; the tags all say value."""
    layout: list[tuple[str, str]] = []
    for i, (kind, _) in enumerate(columns):
        layout += [
            (f"tag{i}", "u1"),
            *((f"limb{i}.{j}", ">" + dtype) for j, dtype in enumerate(limb_dtypes(kind))),
        ]
    records = np.empty(len(columns[0][1][0]), np.dtype(layout))
    for i, (_, limbs) in enumerate(columns):
        records[f"tag{i}"] = 1
        for j, limb in enumerate(limbs):
            records[f"limb{i}.{j}"] = limb
    return records


def _sign_bit(dtype: np.dtype[Any]) -> Any:
    return dtype.type(1 << (8 * dtype.itemsize - 1))


def _ordered_doubles(bits: Numbers, normalize: bool) -> Numbers:
    """In integers throughout: float arithmetic on a signalling NaN would warn."""
    sign, ones, nan = map(np.uint64, (one_key.SIGN_64, one_key.ONES_64, one_key.CANONICAL_NAN))
    if normalize:
        bits = np.where(bits == sign, np.uint64(0), bits)  # the bits of -0.0 are the sign alone
    ordered = bits ^ np.where(bits & sign, ones, sign)
    return np.where((bits & ~sign) > np.uint64(_INFINITY), nan, ordered)


class _Reader:
    """Reads the columns of all keys in step; `at` is where the next column of each key begins."""

    def __init__(self, packed: Packed) -> None:
        self.packed, self.at = packed, packed.starts

    def columns(self, kinds: Sequence[SqlType]) -> list[pa.Array]:
        return [self._column(kind, i == len(kinds) - 1) for i, kind in enumerate(kinds)]

    def _column(self, kind: SqlType, last: bool) -> pa.Array:
        tags = self.packed.gather(self.at, "u1")
        valid = None if tags.all() else tags == 1
        self.at = self.at + 1
        return self._fixed(kind, valid) if width(kind) else self._variable(kind, valid, last)

    def _fixed(self, kind: SqlType, valid: Mask | None) -> pa.Array:
        limbs, at = [], self.at
        for dtype in limb_dtypes(kind):
            limbs.append(self.packed.gather(at, ">" + dtype).astype(dtype))
            at = at + np.dtype(dtype).itemsize
        self.at = at if valid is None else np.where(valid, at, self.at)
        return from_limbs(_unordered(limbs, kind), valid, kind)

    def _variable(self, kind: SqlType, valid: Mask | None, last: bool) -> pa.Array:
        ends = self.packed.ends - 1 if last else _string_ends(self.packed, self.at)
        after = ends + 1
        if valid is not None:
            ends, after = np.where(valid, ends, self.at), np.where(valid, after, self.at)
        raw = self.packed.slices(self.at, ends, valid, pa.binary())
        if has_zero_byte(raw):
            raw = pc.replace_substring(raw, one_key.ESCAPED_ZERO, one_key.ZERO)
        self.at = after
        return raw if kind.name == "binary" else checked_text(raw.view(pa.string()))


def _string_ends(packed: Packed, at: Positions) -> Positions:
    """For each key the first 00 from `at` on that is not an escape, found a word at a time in all
    keys at once.
    """
    ends, seeking = at.copy(), np.arange(len(at))
    for _ in range(_SHORT_WORDS):
        here = ends[seeking]
        steps = _bytes_before_zero(packed.gather(here, "<u8"))
        here += steps
        escaped = (steps < 8) & (packed.data[here + 1] == 0xFF)
        here[escaped] += 2
        ends[seeking] = here
        seeking = seeking[(steps == 8) | escaped]
        if not len(seeking):
            return ends
    ends[seeking] = _far_ends(packed, ends[seeking])
    return ends


def _far_ends(packed: Packed, at: Positions) -> Positions:
    """The same for long strings: what could end one is found in all bytes at once."""
    is_end = (packed.data[:-1] == 0) & (packed.data[1:] != 0xFF)
    stops = np.flatnonzero(is_end)
    return stops[np.searchsorted(stops, at)]


def _bytes_before_zero(words: Numbers) -> Numbers:
    """How many bytes of a little-endian word precede its first zero byte; 8 when there is none.

    The lowest bit of (w - 0101..) & ~w & 8080.. is in the first zero byte; the bits below it are 8
    per byte before.
    """
    zeros = (words - np.uint64(_LOW_BITS)) & ~words & np.uint64(_HIGH_BITS)
    return np.bitwise_count((zeros & (~zeros + np.uint64(1))) - np.uint64(1)) >> np.uint8(3)


def _unordered(limbs: list[Numbers], kind: SqlType) -> list[Numbers]:
    first, *rest = limbs
    if kind.name == "double":
        sign, ones = np.uint64(one_key.SIGN_64), np.uint64(one_key.ONES_64)
        return [first ^ np.where(first & sign, sign, ones)]
    return limbs if kind.name == "boolean" else [first ^ _sign_bit(first.dtype), *rest]
