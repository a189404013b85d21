"""Values as other clients of a store write and read them, one cell for each.

    bytes   as HBase's `Bytes` does: string UTF-8; boolean FF or 00; int 4 and bigint 8 bytes, big
            endian; double its IEEE bits, big endian; date an int of days since 1970-01-01;
            timestamp a bigint of microseconds since then, UTC; binary itself; decimal the scale in
            4 bytes, then the unscaled value, big endian, in two's complement
    text    as people and the HBase shell do: the value's usual spelling, in UTF-8

Foreign clients may have written anything. What does not decode as its type is told apart from NULL:
`decode_some` says which values do not.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from belvedere.encoding.binaries import (
    Mask,
    Numbers,
    as_binary,
    fixed_binary,
    one_array,
    unpack,
    valid_mask,
)
from belvedere.encoding.fields import from_limbs, limb_dtypes, to_limbs, width
from belvedere.encoding.scalars import (
    FIRST_DAY,
    FIRST_MICROSECOND,
    LAST_DAY,
    LAST_MICROSECOND,
)
from belvedere.errors import Damaged
from belvedere.libraries import np, pa, pc
from belvedere.types import SqlType

Form = Literal["bytes", "text"]

_SCALE = 4  # bytes before the unscaled value of a decimal
_LONGEST = 16  # bytes of an unscaled value that 38 digits need
_RANGES = {
    "date": (FIRST_DAY, LAST_DAY),
    "timestamp": (FIRST_MICROSECOND, LAST_MICROSECOND),
}


def encode(values: pa.Array | pa.ChunkedArray, kind: SqlType, form: Form = "bytes") -> pa.Array:
    """A column as cells; NULL stays NULL."""
    array = one_array(values, kind.arrow)
    if kind.name in ("string", "binary"):
        return as_binary(array)
    if form == "text":
        return _text(array, kind)
    valid = valid_mask(array)
    if kind.name == "boolean":
        return fixed_binary(np.where(to_limbs(array, kind)[0], 0xFF, 0).astype("u1"), valid)
    return fixed_binary(_records(to_limbs(array, kind), kind), valid)


def decode(cells: pa.BinaryArray, kind: SqlType, form: Form = "bytes") -> pa.Array:
    """The column again; Damaged if a cell is not of the type."""
    column, bad = decode_some(cells, kind, form)
    if bad is not None:
        first = cells[int(np.flatnonzero(bad)[0])].as_py()
        raise Damaged(f"{int(bad.sum())} of {len(cells)} cells are no {kind}: {first[:40]!r}")
    return column


def decode_some(
    cells: pa.BinaryArray, kind: SqlType, form: Form = "bytes"
) -> tuple[pa.Array, Mask | None]:
    """The column with NULL where a cell is not of the type, and which ones these are; None if all
    are.
    """
    array = one_array(cells, pa.binary())
    if kind.name == "binary":
        return array, None
    if kind.name == "string":
        return _strings(array)
    if form == "text":
        return _from_text(array, kind)
    return _from_decimals(array, kind) if kind.name == "decimal" else _from_fixed(array, kind)


def _records(limbs: list[Numbers], kind: SqlType) -> Numbers:
    """The limbs in big endian, behind the scale if it is a decimal."""
    dtypes = limb_dtypes(kind)
    layout: list[Any] = [(f"limb{i}", ">" + dtype) for i, dtype in enumerate(dtypes)]
    if kind.name == "decimal":
        layout.insert(0, ("scale", ">u4"))
    records = np.empty(len(limbs[0]), layout)
    if kind.name == "decimal":
        records["scale"] = kind.scale
    for i, limb in enumerate(limbs):
        records[f"limb{i}"] = limb
    return records


def _strings(array: pa.BinaryArray) -> tuple[pa.Array, Mask | None]:
    try:
        return array.cast(pa.string()), None
    except pa.ArrowInvalid:
        texts = [None if value is None else _utf8(value) for value in array.to_pylist()]
    return _one_by_one(array, texts, pa.string())


def _utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _one_by_one(
    array: pa.BinaryArray, values: list[Any], kind: pa.DataType
) -> tuple[pa.Array, Mask | None]:
    """Values that were decoded one by one, None for what was not, or was NULL."""
    column = pa.array(values, kind)
    bad: Mask = pc.and_(array.is_valid(), column.is_null()).to_numpy(zero_copy_only=False)
    return column, bad if bad.any() else None


def _from_fixed(array: pa.BinaryArray, kind: SqlType) -> tuple[pa.Array, Mask | None]:
    (dtype,), size = limb_dtypes(kind), width(kind)
    packed = unpack(array, size)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    words = packed.gather(packed.starts, ">" + dtype).astype(dtype)
    good = present & (packed.ends - packed.starts == size)
    if kind.name in _RANGES:
        low, high = _RANGES[kind.name]
        numbers = words.view(f"i{size}")
        good &= (numbers >= low) & (numbers <= high)
    column = from_limbs([np.where(good, words, words.dtype.type(0))], good, kind)
    return column, _bad(present, good)


def _bad(present: Mask, good: Mask) -> Mask | None:
    bad: Mask = present & ~good
    return bad if bad.any() else None


def _from_decimals(array: pa.BinaryArray, kind: SqlType) -> tuple[pa.Array, Mask | None]:
    """Decimals of the declared scale at once; those of another one by one."""
    packed = unpack(array, _SCALE + _LONGEST)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    lengths = packed.ends - packed.starts - _SCALE
    scales = packed.gather(packed.starts, ">u4")
    plain = present & (scales == kind.scale) & (lengths >= 1) & (lengths <= _LONGEST)
    if (present & ~plain).any():
        return _one_by_one(array, [_one_decimal(v, kind) for v in array.to_pylist()], kind.arrow)
    high, low = _two_limbs(
        packed.gather(packed.starts + _SCALE, "V16"), np.where(plain, lengths, 1)
    )
    column = from_limbs([high, low], plain, SqlType("decimal", 38, kind.scale))
    try:
        return column.cast(kind.arrow), None
    except pa.ArrowInvalid:  # a value has more digits than were declared
        return _one_by_one(array, [_one_decimal(v, kind) for v in array.to_pylist()], kind.arrow)


def _two_limbs(words: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """Numbers of 1 to 16 bytes at the front of 16, as two limbs with their sign extended: shifted
    right by the bytes that do not belong to them.
    """
    halves = words.view(">u8").reshape(-1, 2).astype(np.uint64)
    high, low = halves[:, 0].view(np.int64), halves[:, 1]
    shift = (_LONGEST - lengths.astype(np.int64)) * 8
    is_far = shift >= 64  # nothing of the lower half belongs to the number
    near = np.where(is_far, 0, shift)
    carried = np.where(near == 0, 0, high << ((64 - near) % 64)).view(np.uint64)
    near_low = (low >> near.astype(np.uint64)) | carried
    far_low = (high >> np.where(is_far, shift - 64, 0)).view(np.uint64)
    new_high = np.where(is_far, high >> 63, high >> near)
    return new_high.view(np.uint64), np.where(is_far, far_low, near_low)


def _one_decimal(value: bytes | None, kind: SqlType) -> Decimal | None:
    """None for what is no decimal, or would lose digits as one of this type."""
    if value is None or len(value) <= _SCALE:
        return None
    scale = int.from_bytes(value[:_SCALE], "big", signed=True)
    unscaled = int.from_bytes(value[_SCALE:], "big", signed=True)
    return _scaled(unscaled, scale, kind)


def _scaled(unscaled: int, scale: int, kind: SqlType) -> Decimal | None:
    if abs(scale) > 1000:
        return None
    power = 10 ** abs(kind.scale - scale)
    number, lost = (unscaled * power, 0) if kind.scale >= scale else divmod(unscaled, power)
    if lost or abs(number) >= 10**kind.precision:
        return None
    return Decimal(f"{number}E-{kind.scale}")


def _text(array: pa.Array, kind: SqlType) -> pa.BinaryArray:
    if kind.name == "timestamp":
        shown = pc.strftime(array, "%Y-%m-%dT%H:%M:%SZ")
    else:
        shown = array.cast(pa.string())
    return as_binary(shown)


def _from_text(array: pa.BinaryArray, kind: SqlType) -> tuple[pa.Array, Mask | None]:
    try:
        return array.cast(pa.string()).cast(kind.arrow), None
    except pa.ArrowInvalid:
        values = [None if value is None else _one_text(value, kind) for value in array.to_pylist()]
    return _one_by_one(array, values, kind.arrow)


def _one_text(value: bytes, kind: SqlType) -> Any:
    text = _utf8(value)
    if text is None:
        return None
    try:
        if kind.name == "decimal":
            number = Decimal(text)
            sign, digits, exponent = number.as_tuple()
            if not isinstance(exponent, int):
                return None
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return _scaled(unscaled, -exponent, kind)
        return pa.scalar(text).cast(kind.arrow).as_py()
    except (pa.ArrowInvalid, InvalidOperation):
        return None
