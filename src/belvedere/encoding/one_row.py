"""One row of Python values as bytes, and back: the plain form of rows.py.

One compiled `struct` holds the bitmap and all fixed fields; only columns that are not their own
field (dates, decimals, strings, ...) cost a call. A NULL is its bit and the field of a blank value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

from belvedere.encoding.fields import width
from belvedere.encoding.scalars import MISFIT, from_integer, misfit, to_integer
from belvedere.errors import Damaged
from belvedere.types import SqlType

DictDecoder = Callable[[tuple[Any, ...], bytes], dict[str, Any]]
_FORMATS = {
    "boolean": "?",
    "int": "i",
    "date": "i",
    "bigint": "q",
    "timestamp": "q",
    "double": "d",
    "string": "I",
    "binary": "I",
}
_OWN_FIELD = {"int", "bigint", "double"}
_BLANKS: dict[str, Any] = {
    "boolean": False,
    "int": 0,
    "bigint": 0,
    "double": 0.0,
    "decimal": Decimal(0),
    "date": date(1970, 1, 1),
    "timestamp": datetime(1970, 1, 1, tzinfo=UTC),
    "string": "",
    "binary": b"",
}


def bitmap_size(kinds: Sequence[SqlType]) -> int:
    return (len(kinds) + 7) // 8


def encoder(kinds: Sequence[SqlType]) -> Callable[[Sequence[Any]], bytes]:
    pack, no_nulls = _layout(kinds).pack, bytes(bitmap_size(kinds))
    converted = [(i, _to_field(kind)) for i, kind in _converted(kinds)]
    variable = [(i, kind.name == "string") for i, kind in _variable(kinds)]
    blanks = [_BLANKS[kind.name] for kind in kinds]

    def encode(values: Sequence[Any]) -> bytes:
        fields, bitmap, tail = list(values), no_nulls, b""
        try:
            if None in fields:
                bitmap = _take_nulls(fields, blanks)
            for i, to_field in converted:
                fields[i] = to_field(fields[i])
            for i, is_string in variable:
                raw = fields[i].encode() if is_string else fields[i]
                fields[i] = len(raw)
                tail += raw
            return pack(bitmap, *fields) + tail
        except MISFIT as cause:
            raise misfit(values, kinds) from cause

    return encode


def decoder(kinds: Sequence[SqlType]) -> Callable[[bytes], tuple[Any, ...]]:
    unpack, size, no_nulls = (
        _layout(kinds).unpack_from,
        _layout(kinds).size,
        bytes(bitmap_size(kinds)),
    )
    converted = [(i, _from_field(kind)) for i, kind in _converted(kinds)]
    variable = [(i, kind.name == "string") for i, kind in _variable(kinds)]

    def decode(data: bytes) -> tuple[Any, ...]:
        try:
            bitmap, *fields = unpack(data)
            at = size
            for i, is_string in variable:
                end = at + fields[i]
                fields[i] = data[at:end].decode() if is_string else data[at:end]
                at = end
            for i, from_field in converted:
                fields[i] = from_field(fields[i])
        except MISFIT as cause:
            raise _damaged(data, kinds) from cause
        if at != len(data):
            raise _damaged(data, kinds)
        return tuple(fields) if bitmap == no_nulls else _with_nulls(fields, bitmap)

    return decode


@lru_cache(maxsize=256)
def dict_decoder(
    kinds: tuple[SqlType, ...], columns: tuple[tuple[str, bool, int], ...]
) -> DictDecoder:
    """A function from key values and a row to a dict.

    For each name: whether its value is in the key, and at which place.

    Its source text is made for the columns, as `dataclasses` makes `__init__`: 0.3 us for a small
    row, where loops over the columns take 1.2. Rows with NULLs or damage go through `decoder`,
    which knows what to do and to say.
    """
    decode, layout = decoder(kinds), _layout(kinds)

    def plain(key: tuple[Any, ...], data: bytes) -> dict[str, Any]:
        fields = decode(data)
        return {name: key[place] if in_key else fields[place] for name, in_key, place in columns}

    fields, ends = [f"f{i}" for i in range(len(kinds))], [str(layout.size)]
    values = {i: f"c{i}(f{i})" for i, _ in _converted(kinds)}
    for i, kind in _variable(kinds):
        values[i] = f"data[{ends[-1]}:e{i}]" + (".decode()" if kind.name == "string" else "")
        ends.append(f"e{i}")
    pairs = (
        f"{name!r}: " + (f"key[{place}]" if in_key else values.get(place, f"f{place}"))
        for name, in_key, place in columns
    )
    additions = "; ".join(f"{after} = {before} + f{after[1:]}" for before, after in pairwise(ends))
    source = f"""
def made(key, data):
    try:
        {", ".join(["nulls", *fields])}, = unpack(data)
        {additions or "pass"}
        if nulls == no_nulls and {ends[-1]} == len(data):
            return {{{", ".join(pairs)}}}
    except misfit:
        pass
    return plain(key, data)
"""
    names = {
        "unpack": layout.unpack_from,
        "no_nulls": bytes(bitmap_size(kinds)),
        "misfit": MISFIT,
        "plain": plain,
    }
    made: dict[str, Any] = names | {f"c{i}": _from_field(kind) for i, kind in _converted(kinds)}
    exec(source, made)  # the text consists of our own words, numbers and quoted names
    return cast(DictDecoder, made["made"])


def _layout(kinds: Sequence[SqlType]) -> struct.Struct:
    return struct.Struct("<" + f"{bitmap_size(kinds)}s" + "".join(_format(kind) for kind in kinds))


def _format(kind: SqlType) -> str:
    if kind.name == "decimal":
        return "q" if width(kind) == 8 else "16s"
    return _FORMATS[kind.name]


def _converted(kinds: Sequence[SqlType]) -> list[tuple[int, SqlType]]:
    """The fixed-width columns whose Python value is not what `struct` wants."""
    return [
        (i, kind) for i, kind in enumerate(kinds) if width(kind) and kind.name not in _OWN_FIELD
    ]


def _variable(kinds: Sequence[SqlType]) -> list[tuple[int, SqlType]]:
    return [(i, kind) for i, kind in enumerate(kinds) if not width(kind)]


def _to_field(kind: SqlType) -> Callable[[Any], Any]:
    convert = to_integer(kind) or int
    return (
        convert
        if width(kind) <= 8
        else lambda value: convert(value).to_bytes(16, "little", signed=True)
    )


def _from_field(kind: SqlType) -> Callable[[Any], Any]:
    convert = from_integer(kind) or int
    return (
        convert
        if width(kind) <= 8
        else lambda raw: convert(int.from_bytes(raw, "little", signed=True))
    )


def _take_nulls(fields: list[Any], blanks: list[Any]) -> bytes:
    """Puts blanks in the place of NULLs and returns the bitmap that remembers them."""
    bits = 0
    for i, value in enumerate(fields):
        if value is None:
            fields[i] = blanks[i]
            bits |= 1 << i
    return bits.to_bytes((len(blanks) + 7) // 8, "little")


def _with_nulls(fields: list[Any], bitmap: bytes) -> tuple[Any, ...]:
    bits = int.from_bytes(bitmap, "little")
    return tuple([None if bits >> i & 1 else value for i, value in enumerate(fields)])


_SHOWN = 60  # bytes of what is damaged


def _damaged(data: bytes, kinds: Sequence[SqlType]) -> Damaged:
    return Damaged(f"{data[:_SHOWN]!r} is not a row of ({', '.join(map(str, kinds))})")
