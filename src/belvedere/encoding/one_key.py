"""One tuple of Python values as an ordered key, and back: the plain form of keys.py.

Each column becomes a closure once, so that encoding is a call per column and a join.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from belvedere.encoding.fields import width
from belvedere.encoding.scalars import MISFIT, from_integer, misfit, to_integer
from belvedere.errors import Damaged
from belvedere.types import SqlType

Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes, int], tuple[Any, int]]

NULL, VALUE, END = b"\x00", b"\x01", b"\x00"
ZERO, ESCAPED_ZERO = b"\x00", b"\x00\xff"
SIGN_64, ONES_64 = 1 << 63, (1 << 64) - 1
CANONICAL_NAN = 0xFFF8_0000_0000_0000  # as encoded: the quiet NaN, above +infinity

_DOUBLE, _WORD = struct.Struct(">d"), struct.Struct(">Q")
_NAN = VALUE + _WORD.pack(CANONICAL_NAN)


def encoder(kinds: Sequence[SqlType], normalize: bool) -> Callable[[Sequence[Any]], bytes]:
    """A function from values, of all columns or of the first few, to the key."""
    columns = [_column_encoder(kind, normalize) for kind in kinds]
    return _encode_first(columns[0], kinds) if len(columns) == 1 else _encode_all(columns, kinds)


def decoder(kinds: Sequence[SqlType]) -> Callable[[bytes], tuple[Any, ...]]:
    columns = [_column_decoder(kind) for kind in kinds]

    def decode(key: bytes) -> tuple[Any, ...]:
        values, at = [], 0
        try:
            for column in columns:
                value, at = column(key, at)
                values.append(value)
        except MISFIT as cause:
            raise _damaged(key, kinds) from cause
        if at != len(key):
            raise _damaged(key, kinds)
        return tuple(values)

    return decode


def prefix_length(key: bytes, kinds: Sequence[SqlType]) -> int:
    """Where the tuple of these columns ends at the beginning of a longer key."""
    at = 0
    for kind in kinds:
        value = key[at : at + 1] == VALUE
        at += 1
        if value and width(kind):
            at += width(kind)
        elif value:
            at = key.find(END, at)
            while at >= 0 and key[at : at + 2] == ESCAPED_ZERO:
                at = key.find(END, at + 2)
            if at < 0:
                raise _damaged(key, kinds)
            at += 1
    return at


_SHOWN = 60  # bytes of what is damaged


def _damaged(key: bytes, kinds: Sequence[SqlType]) -> Damaged:
    return Damaged(f"{key[:_SHOWN]!r} is not a key of ({', '.join(map(str, kinds))})")


def _encode_first(column: Encoder, kinds: Sequence[SqlType]) -> Callable[[Sequence[Any]], bytes]:
    def encode(values: Sequence[Any]) -> bytes:
        try:
            (value,) = values
            return column(value)
        except MISFIT as cause:
            if len(values) == 0:
                return b""
            raise misfit(values, kinds) from cause

    return encode


def _encode_all(
    columns: list[Encoder], kinds: Sequence[SqlType]
) -> Callable[[Sequence[Any]], bytes]:
    def encode(values: Sequence[Any]) -> bytes:
        key, i = b"", 0
        try:
            for value in values:
                key += columns[i](value)
                i += 1
            return key
        except MISFIT as cause:
            raise misfit(values, kinds) from cause

    return encode


def _column_encoder(kind: SqlType, normalize: bool) -> Encoder:
    if kind.name == "string":
        return _encode_string
    if kind.name == "binary":
        return _encode_binary
    if kind.name == "double":
        return _encode_normal_double if normalize else _encode_double
    return _integer_encoder(kind)


def _column_decoder(kind: SqlType) -> Decoder:
    if kind.name == "string":
        return _decode_string
    if kind.name == "binary":
        return _decode_binary
    return _decode_double if kind.name == "double" else _integer_decoder(kind)


def _encode_string(value: str | None) -> bytes:
    if value is None:
        return NULL
    if "\0" in value:
        return _encode_binary(value.encode())
    return f"\x01{value}\0".encode()


def _encode_binary(value: bytes | None) -> bytes:
    return NULL if value is None else VALUE + value.replace(ZERO, ESCAPED_ZERO) + END


def _encode_normal_double(value: float | None) -> bytes:
    return NULL if value is None else _encode_double(value + 0.0)  # -0.0 + 0.0 is 0.0


def _encode_double(value: float | None) -> bytes:
    if value is None:
        return NULL
    if value != value:
        return _NAN
    (bits,) = _WORD.unpack(_DOUBLE.pack(value))
    return VALUE + _WORD.pack(bits ^ (ONES_64 if bits & SIGN_64 else SIGN_64))


def _integer_encoder(kind: SqlType) -> Encoder:
    size, bias, convert = width(kind), _bias(kind), to_integer(kind)
    if convert is None:
        pack = struct.Struct(">BI" if size == 4 else ">BQ").pack
        return lambda value: NULL if value is None else pack(1, value + bias)
    return lambda value: (
        NULL if value is None else VALUE + (convert(value) + bias).to_bytes(size, "big")
    )


def _bias(kind: SqlType) -> int:
    """Adding it flips the sign bit of a two's complement number."""
    return 0 if kind.name == "boolean" else 1 << (8 * width(kind) - 1)


def _decode_null(key: bytes, at: int) -> tuple[None, int]:
    if key[at] != 0:
        raise ValueError(f"byte {at} is {key[at]}, neither NULL nor a value")
    return None, at + 1


def _decode_string(key: bytes, at: int) -> tuple[str | None, int]:
    if key[at] != 1:
        return _decode_null(key, at)
    raw, after = _unescape(key, at + 1)
    return raw.decode(), after


def _decode_binary(key: bytes, at: int) -> tuple[bytes | None, int]:
    return _unescape(key, at + 1) if key[at] == 1 else _decode_null(key, at)


def _unescape(key: bytes, at: int) -> tuple[bytes, int]:
    end, last = key.index(0, at), len(key) - 1
    if end == last or key[end + 1] != 0xFF:
        return key[at:end], end + 1
    while end < last and key[end + 1] == 0xFF:
        end = key.index(0, end + 2)
    return key[at:end].replace(ESCAPED_ZERO, ZERO), end + 1


def _decode_double(key: bytes, at: int) -> tuple[float | None, int]:
    if key[at] != 1:
        return _decode_null(key, at)
    (bits,) = _WORD.unpack_from(key, at + 1)
    (value,) = _DOUBLE.unpack(_WORD.pack(bits ^ (SIGN_64 if bits & SIGN_64 else ONES_64)))
    return value, at + 9


def _integer_decoder(kind: SqlType) -> Decoder:
    size, bias = width(kind), _bias(kind)
    convert = from_integer(kind) or int

    def decode(key: bytes, at: int) -> tuple[Any, int]:
        if key[at] != 1:
            return _decode_null(key, at)
        after = at + 1 + size
        return convert(int.from_bytes(key[at + 1 : after], "big") - bias), after

    return decode
