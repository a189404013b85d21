"""A lowered expression, and the small pieces of SQL text that every rule builds on."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from belvedere.types import SqlType

_INLINE = 60  # texts up to this length are repeated, longer ones are bound once by a lambda


@dataclass(frozen=True, slots=True)
class Typed:
    """DuckDB text of an expression, already of the DuckDB type of `type`.

    `type` is None for the untyped NULL. `raises` means: evaluation may fail for some row.
    `literal` is the constant's value where rules must know it (patterns, units, digits). `constant`
    is the Python value of a literal of any type, as its column would have it.
    """

    sql: str
    type: SqlType | None
    raises: bool = False
    nullable: bool = True
    literal: str | int | Decimal | None = None
    constant: Any = None

    @property
    def is_null(self) -> bool:
        return self.type is None

    @property
    def kind(self) -> str:
        return self.type.name if self.type else "void"


Resolver = Callable[[exp.Column], Typed]

NULL = Typed("NULL", None)


def null_of(kind: SqlType) -> Typed:
    return Typed(f"CAST(NULL AS {kind.duckdb})", kind)


def text_sql(value: str) -> str:
    """A DuckDB string literal. A zero byte cannot stand in SQL text, so it is spelled chr(0)."""
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"


def raise_sql(code: str, value_sql: str, duckdb_type: str) -> str:
    """Fail for this row with `code` in the message, as a value of `duckdb_type`.

    A cast that cannot succeed, because error() is volatile and DuckDB refuses it below TRY.
    """
    failing = f"concat('{code}: ', {value_sql})"
    if duckdb_type in ("VARCHAR", "BLOB"):
        failing = f"CAST(CAST({failing} AS INTEGER) AS VARCHAR)"
        return f"encode({failing})" if duckdb_type == "BLOB" else failing
    return f"CAST({failing} AS {duckdb_type})"


def let(value: str, body: Callable[[str], str]) -> str:
    """`body` with `value` bound once, so that nested expressions do not double in length at every
    level.
    """
    if len(value) <= _INLINE:
        return body(value)
    name = f"v{zlib.crc32(value.encode())}"
    return f"list_transform([{value}], lambda {name}: {body(name)})[1]"


def strict(
    args: Sequence[Typed],
    build: Callable[..., str],
    kind: SqlType,
    *,
    raises: bool = False,
    nullable: bool | None = None,
    order: Sequence[int] | None = None,
) -> Typed:
    """A function that is NULL as soon as an argument is NULL.

    Spark evaluates the arguments in `order` and stops at the first NULL, so an argument that would
    raise after it does not; a NULL literal makes the whole call NULL. Both are kept here.
    """
    if any(a.is_null for a in args):
        return null_of(kind)
    may = raises or any(a.raises for a in args)
    null = any(a.nullable for a in args) if nullable is None else nullable
    return Typed(_guarded(args, build, list(order or range(len(args)))), kind, may, null)


def _guarded(args: Sequence[Typed], build: Callable[..., str], order: list[int]) -> str:
    names: list[str] = [a.sql for a in args]

    def guard(rest: list[int]) -> str:
        if not any(args[i].raises for i in rest[1:]):
            return build(*names)
        first = rest[0]
        if not args[first].nullable:
            return guard(rest[1:])

        def body(name: str) -> str:
            names[first] = name
            return f"CASE WHEN {name} IS NULL THEN NULL ELSE {guard(rest[1:])} END"

        return let(names[first], body)

    return f"({guard(order)})"
