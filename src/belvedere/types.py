"""Shared words: SQL types, columns, schemas, positions and epochs.

Everything here is a plain immutable value that can be written to the catalog as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from belvedere.errors import SchemaError
from belvedere.libraries import pa

Row = dict[str, Any]
Key = Any  # a scalar for keys of one column, a tuple for keys of several
Position = int  # number of operations before this point of a stream: 0 is the beginning
Epoch = int  # 0 is the empty beginning, the first committed epoch is 1


class Vector(Mapping[str, Position]):
    """How far of every stream: all that was logged before these positions.

    What a write returns, what a cut shows, what a session must see. A stream that is not named
    stands at 0, so streams may come and go.
    """

    __slots__ = ("_positions",)

    def __init__(self, positions: Mapping[str, Position] | None = None) -> None:
        self._positions = {s: p for s, p in positions.items() if p} if positions else {}

    def covers(self, other: Mapping[str, Position]) -> bool:
        """Whether everything that the other one contains is in this one too."""
        return all(self[stream] >= position for stream, position in other.items())

    def behind(self, other: Mapping[str, Position]) -> int:
        """How many operations of the other one are not in this one."""
        return sum(max(0, position - self[stream]) for stream, position in other.items())

    def merge(self, other: Mapping[str, Position]) -> Vector:
        """The smallest vector that covers both."""
        return Vector({**self, **{s: max(p, self[s]) for s, p in other.items()}})

    def lowest(self, other: Vector) -> Vector:
        """The largest vector that both cover."""
        return Vector({s: min(self[s], other[s]) for s in self})

    @property
    def operations(self) -> int:
        """How many operations it contains."""
        return sum(self._positions.values())

    def to_json(self) -> dict[str, Position]:
        return dict(self._positions)

    def __getitem__(self, stream: str) -> Position:
        return self._positions.get(stream, 0)

    def __contains__(self, stream: object) -> bool:
        return stream in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self._positions == Vector(other)._positions
        return NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._positions.items()))

    def __deepcopy__(self, memo: object) -> Vector:
        return self

    def __repr__(self) -> str:
        return f"Vector({self._positions})"

    def __str__(self) -> str:
        """Of a store with one stream the number, as users know it."""
        if len(self._positions) < 2:
            return f"{self.operations:,}"
        return ", ".join(f"{stream} {position:,}" for stream, position in sorted(self.items()))


_DUCKDB = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}
_ALIASES = {
    "bool": "boolean",
    "integer": "int",
    "long": "bigint",
    "varchar": "string",
    "text": "string",
    "char": "string",
    "bytes": "binary",
    "numeric": "decimal",
    "dec": "decimal",
    "timestamptz": "timestamp",
    "timestamp_ltz": "timestamp",
}
_PATTERN = re.compile(r"^\s*([a-z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*$")


@dataclass(frozen=True, slots=True)
class SqlType:
    """One of the nine column types; `precision` and `scale` are those of
    a decimal and 0 otherwise.
    """

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def arrow(self) -> pa.DataType:
        if self.name == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return _arrow()[self.name]

    @property
    def duckdb(self) -> str:
        if self.name == "decimal":
            return f"DECIMAL({self.precision},{self.scale})"
        return _DUCKDB[self.name]

    @property
    def spark(self) -> str:
        """The type as Spark SQL spells it, which is also how the catalog and DESCRIBE spell it."""
        return str(self)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


BOOLEAN = SqlType("boolean")
INT = SqlType("int")
BIGINT = SqlType("bigint")
DOUBLE = SqlType("double")
STRING = SqlType("string")
BINARY = SqlType("binary")
DATE = SqlType("date")
TIMESTAMP = SqlType("timestamp")


def decimal(precision: int, scale: int = 0) -> SqlType:
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise SchemaError(
            f"decimal({precision},{scale}) is out of range: use 1 <= precision <= 38 and 0 <= scale"
            " <= precision"
        )
    return SqlType("decimal", precision, scale)


def parse_type(text: str) -> SqlType:
    """`bigint`, `DECIMAL(10,2)`, ... as a type; the usual synonyms are understood."""
    match = _PATTERN.match(text.lower())
    name = _ALIASES.get(match[1], match[1]) if match else ""
    if match and name == "decimal":
        return decimal(int(match[2] or 10), int(match[3] or 0))
    if name in _DUCKDB:
        return SqlType(name)
    known = ", ".join([*_DUCKDB, "decimal(p,s)"])
    raise SchemaError(f"type {text!r} is not supported: use one of {known}")


@cache
def _arrow() -> dict[str, pa.DataType]:
    return {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }


def from_arrow(kind: pa.DataType) -> SqlType:
    """The column type that holds values of an Arrow type without loss."""
    if pa.types.is_decimal(kind):
        return decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    for name, arrow in _arrow().items():
        if arrow == kind:
            return SqlType(name)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return STRING
    raise SchemaError(f"Arrow type {kind} has no column type here: cast the column first")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in order, and the names of the key columns in key order."""

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type.arrow, c.nullable) for c in self.columns])

    @property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.column(name) for name in self.key)

    @property
    def value_columns(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if c.name not in self.key)

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise SchemaError(f"there is no column {name!r}: the columns are {', '.join(self.names)}")

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [[c.name, str(c.type), c.nullable] for c in self.columns],
            "key": list(self.key),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        columns = tuple(
            Column(name, parse_type(kind), nullable) for name, kind, nullable in data["columns"]
        )
        return cls(columns, tuple(data["key"]))
