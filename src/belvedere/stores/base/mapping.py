"""How a foreign table looks as a table here: what of its rows are keys, what of its cells columns.

A store that does not own its base tables keeps one mapping for each. Keys and rows are ours from
then on: foreign clients never see them, and the engine never sees foreign ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.encoding.binaries import Mask, unpack, weave
from belvedere.encoding.fields import width
from belvedere.encoding.natural import Form, decode_some, encode
from belvedere.errors import SchemaError
from belvedere.libraries import np, pa, pc
from belvedere.types import SqlType, parse_type

ODD = b"\xff"  # no key begins so: the tag of a column is never FF
_LONGEST_ODD = 400  # bytes of the key of an odd row; of a longer row it has a digest


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column that is a cell: `family` is a number in the mapping's list.

    What is not `nullable` should have a cell in every row, but foreign clients do not know.
    """

    type: SqlType
    family: int
    qualifier: bytes
    form: Form = "bytes"
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class MappedKey:
    """Columns that are the row's key, in natural form.

    Several columns stand one behind the other. All but the last must tell where they end: by a
    fixed width, or by `separator`, which no value of theirs may contain.
    """

    types: tuple[SqlType, ...]
    form: Form = "bytes"
    separator: bytes = b""

    def __post_init__(self) -> None:
        if self.separator or (self.form == "bytes" and all(map(_is_fixed, self.types[:-1]))):
            return
        if len(self.types) > 1:
            raise SchemaError(
                "a row key of several columns needs a separator, unless all but the last have a"
                " fixed width: set separator = '|', or whatever stands between them"
            )


@dataclass(frozen=True, slots=True)
class Mapping:
    """`source` is the foreign table; `columns` are those that are not the key, in order."""

    source: str
    key: MappedKey
    families: tuple[bytes, ...]
    columns: tuple[MappedColumn, ...]

    def keys_of(self, rows: pa.BinaryArray) -> tuple[pa.BinaryArray, Mask]:
        """Keys of foreign rows, and which of the rows have one: others are not of the types.

        Of two spellings of one key only the one that we would write is a key.
        """
        parts, good = self._parts(rows)
        columns = []
        for part, kind in zip(parts, self.key.types, strict=True):
            column, _ = decode_some(part, kind, self.key.form)
            columns.append(column)
            good &= column.is_valid().to_numpy(zero_copy_only=False)
        mask = pa.array(good)
        keys = KeyCodec(self.key.types).encode([c.filter(mask) for c in columns])
        if all(_has_one_spelling(kind, self.key.form) for kind in self.key.types):
            return keys, good
        same = pc.equal(self.rows_of(keys), rows.filter(mask))
        good[good] = same.to_numpy(zero_copy_only=False)
        return keys.filter(same), good

    def all_keys_of(self, rows: pa.BinaryArray) -> pa.BinaryArray:
        """Keys of foreign rows; a row that has none stands under a key that is none (`is_odd`)."""
        keys, good = self.keys_of(rows)
        if good.all():
            return keys
        odd = [ODD + _shortened(row) for row in rows.filter(pa.array(~good)).to_pylist()]
        place = np.where(good, np.cumsum(good) - 1, len(keys) + np.cumsum(~good) - 1)
        return pa.concat_arrays([keys, pa.array(odd, pa.binary())]).take(pa.array(place))

    def all_rows_of(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """The rows of such keys; NULL where the key of an odd row does not tell."""
        odd = is_odd(keys)
        if not pc.any(odd).as_py():
            return self.rows_of(keys)
        named = [None if len(key) > _LONGEST_ODD else key[1:] for key in keys.to_pylist()]
        regular = pc.replace_with_mask(
            pa.array(named, pa.binary()), pc.invert(odd), self.rows_of(keys.filter(pc.invert(odd)))
        )
        return regular

    def rows_of(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """The foreign rows of keys; an error if a value contains the separator."""
        columns = KeyCodec(self.key.types).decode(keys)
        parts = [encode(c, k, self.key.form) for c, k in zip(columns, self.key.types, strict=True)]
        self._check_separator(parts)
        pieces: list[Any] = [parts[0]]
        for part in parts[1:]:
            pieces += [self.key.separator, part]
        return weave(pieces, len(keys))

    def _check_separator(self, parts: Sequence[pa.BinaryArray]) -> None:
        separator = self.key.separator
        for part in parts[:-1] if separator else ():
            if pc.any(pc.match_substring(part, separator)).as_py():
                raise SchemaError(
                    f"a key contains {separator!r}, which stands between the columns of a row key"
                    f" of {self.source}: use other values"
                )

    def _parts(self, rows: pa.BinaryArray) -> tuple[list[pa.BinaryArray], Mask]:
        """The bytes of every key column, and which rows have all of them."""
        good: Mask = np.ones(len(rows), bool)
        if len(self.key.types) == 1:
            return [rows], good
        if self.key.separator:
            return self._divided(rows)
        packed = unpack(rows, 0)
        parts, at = [], packed.starts
        for kind in self.key.types[:-1]:
            end = np.minimum(at + width(kind), packed.ends)
            parts.append(packed.slices(at, end, None, pa.binary()))
            at = end
        return [*parts, packed.slices(at, packed.ends, None, pa.binary())], good

    def _divided(self, rows: pa.BinaryArray) -> tuple[list[pa.BinaryArray], Mask]:
        most = len(self.key.types) - 1
        lists = [row.split(self.key.separator, most) for row in rows.to_pylist()]
        good: Mask = np.array([len(each) == most + 1 for each in lists], bool)
        filled = [each if len(each) == most + 1 else [None] * (most + 1) for each in lists]
        columns = zip(*filled, strict=True) if filled else [()] * (most + 1)
        return [pa.array(column, pa.binary()) for column in columns], good

    def to_bytes(self) -> bytes:
        columns = [
            [str(c.type), c.family, c.qualifier.hex(), c.form, c.nullable] for c in self.columns
        ]
        key = [[str(kind) for kind in self.key.types], self.key.form, self.key.separator.hex()]
        data = {"source": self.source, "key": key, "columns": columns}
        return json.dumps({**data, "families": [f.hex() for f in self.families]}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Mapping:
        d = json.loads(data)
        types, form, separator = d["key"]
        return cls(
            d["source"],
            MappedKey(tuple(map(parse_type, types)), form, bytes.fromhex(separator)),
            tuple(map(bytes.fromhex, d["families"])),
            tuple(
                MappedColumn(parse_type(kind), family, bytes.fromhex(qualifier), *rest)
                for kind, family, qualifier, *rest in d["columns"]
            ),
        )

    @property
    def row_codec(self) -> RowCodec:
        return RowCodec(tuple(column.type for column in self.columns))


def is_odd(keys: pa.BinaryArray) -> pa.BooleanArray:
    """Which keys stand for foreign rows whose key is not of the declared types."""
    return pc.greater_equal(keys, pa.scalar(ODD, pa.binary()))


def _shortened(row: bytes) -> bytes:
    if len(row) < _LONGEST_ODD:
        return row
    return row[: _LONGEST_ODD - 16] + hashlib.blake2b(row, digest_size=16).digest()


def _is_fixed(kind: SqlType) -> bool:
    return bool(width(kind)) and kind.name != "decimal"


def _has_one_spelling(kind: SqlType, form: Form) -> bool:
    """Whether different bytes are always different values."""
    if form == "text":
        return kind.name in ("string", "binary")
    return kind.name not in ("boolean", "double", "decimal")
