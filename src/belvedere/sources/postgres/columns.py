"""Types of PostgreSQL: which can be held exactly, how they are read and asked for.

boolean, smallint, integer, bigint, oid     boolean, int, int, bigint, bigint
real, double precision                      double
numeric(p, s) of at most 38 digits          decimal
text, varchar, char(n), names of enums,
uuid, json, jsonb, xml, inet, cidr          string, as the server prints them
bytea                                       binary
date, timestamptz                           date, timestamp
timestamp without time zone                 timestamp, taken as UTC
"""

from __future__ import annotations

from dataclasses import dataclass

from belvedere.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal,
)

_SIMPLE = {
    "bool": BOOLEAN,
    "int2": INT,
    "int4": INT,
    "int8": BIGINT,
    "oid": BIGINT,
    "float4": DOUBLE,
    "float8": DOUBLE,
    "text": STRING,
    "varchar": STRING,
    "bpchar": STRING,
    "char": STRING,
    "name": STRING,
    "uuid": STRING,
    "json": STRING,
    "jsonb": STRING,
    "xml": STRING,
    "inet": STRING,
    "cidr": STRING,
    "bytea": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMP,
}
ENUM = "enum"
_ADVICE = {
    "numeric": "give it a size, as in ALTER COLUMN ... TYPE numeric(38, 10)",
    "money": "use numeric(19, 2)",
    "time": "store the time with its date as a TIMESTAMPTZ, or as seconds in an INTEGER",
    "timetz": "store the time with its date as a TIMESTAMPTZ",
    "interval": "store seconds as a BIGINT or a NUMERIC",
}
_MOST_DIGITS = 38

# As which type values are compared with those that are asked for; others are compared as texts.
# Wider than the column where ours is wider: a value that the column cannot have is then no error.
_ASKED = {
    "bool": "bool",
    "int2": "int4",
    "int4": "int4",
    "int8": "int8",
    "float4": "float8",
    "float8": "float8",
    "numeric": "numeric",
    "text": "text",
    "varchar": "text",
    "bpchar": "bpchar",
    "bytea": "bytea",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "uuid": "uuid",
}


@dataclass(frozen=True, slots=True)
class Wire:
    """A column's type at the server: `base` below domains, its name or `enum`; its modifier."""

    base: str
    modifier: int = -1

    @property
    def type(self) -> SqlType | None:
        """The type here that holds all its values; None if there is none."""
        if self.base == ENUM:
            return STRING
        if self.base == "numeric":
            return _decimal(self.modifier)
        return _SIMPLE.get(self.base)

    @property
    def advice(self) -> str:
        return _ADVICE.get(self.base, "store it as TEXT or JSONB")

    @property
    def asked(self) -> str | None:
        """The type to compare with; None: compare texts."""
        return _ASKED.get(self.base)

    @property
    def is_vague(self) -> bool:
        """Whether values that are written differently may be equal there."""
        return self.base in ("bpchar", "float4", "float8", "uuid")

    def text(self, column: str) -> str:
        """The expression of its text, as the log has it."""
        if self.base == "bpchar":  # a cast would take its blanks away
            return f"textin(bpcharout({column}))"
        return f"{column}::text"


def _decimal(modifier: int) -> SqlType | None:
    """The server packs both sizes into the modifier; a scale may be negative, or above all."""
    if modifier < 4:
        return None
    precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    scale = (scale ^ 1024) - 1024
    digits = max(precision, scale) if scale >= 0 else precision - scale
    return decimal(digits, max(scale, 0)) if digits <= _MOST_DIGITS else None
