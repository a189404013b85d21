"""Comparisons of a key column with constants, as spans of the column's encoding.

    id = 7              the encoding of 7
    id > 1.5            all after the encoding of 1, of an integer
    id IN (1, 2, NULL)  the encodings of 1 and 2
    id <=> NULL         the encoding of NULL
    id = 1 OR id > 8    what is in the spans of either

A comparison is of the common type of both sides. It bounds a column only if the column's values
stand in that type in the order of the column's own, none lost and none raising:

    column         common type                        values are compared
    any            the same                           as they are encoded
    int, bigint    bigint, or a decimal wide enough   as exact numbers
    decimal        a decimal wide enough              as exact numbers
    int            double                             as exact numbers
    bigint         double                             as exact numbers, up to 2^53

Any other comparison, such as one that casts a string column to a number, says nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from sqlglot import exp

from belvedere.encoding import KeyCodec
from belvedere.encoding.ranges import (
    NOTHING,
    NULLS,
    VALUES,
    Spans,
    above,
    below,
    in_order,
    intersect,
    point,
    union,
)
from belvedere.errors import SchemaError, SqlError
from belvedere.evaluation import shared
from belvedere.expressions import Typed, cast_to, common_type, lower
from belvedere.expressions.coercion import INTEGRAL, as_decimal
from belvedere.libraries import duckdb, pa
from belvedere.types import DOUBLE, Column, SqlType

Sign = Literal["=", "<", "<=", ">", ">=", "<=>"]

_SIGNS: dict[type[exp.Expr], Sign] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_MIRRORED: dict[Sign, Sign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT_CONSTANT = (exp.Column, exp.Query, exp.AggFunc, exp.Window, exp.Star)
_EXACT_DOUBLES = 2**53  # whole numbers below it are doubles, every one of them


@dataclass(frozen=True, slots=True)
class Bound:
    """What a term says of a column: it is true where the column is in `spans`, and nowhere else.

    `rejects_null`: it is not true where the column is NULL. `decides`: it is never NULL, if the
    column is not.
    """

    column: exp.Column
    spans: Spans
    rejects_null: bool = True
    decides: bool = True


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key; `normalize` as in KeyCodec."""

    column: Column
    normalize: bool

    @property
    def type(self) -> SqlType:
        return self.column.type


Find = Callable[[exp.Column], KeyColumn | None]


def bound_by(term: exp.Expr, find: Find) -> Bound | None:
    """What a condition says of the one key column that it compares with constants."""
    term = term.unnest()
    if isinstance(term, exp.Or):
        return _either(bound_by(side, find) for side in term.flatten())
    column = _compared_column(term)
    key = find(column) if column is not None else None
    if column is None or key is None:
        return None
    try:
        return _bound(term, column, key)
    except (SqlError, SchemaError, duckdb.Error):
        return None  # a constant that raises, that does not compare, or that no column holds


def _either(bounds: Iterable[Bound | None]) -> Bound | None:
    """What conditions joined by OR say together, if all are about one column."""
    known: list[Bound] = []
    for bound in bounds:
        if bound is None or (known and _spelled(bound.column) != _spelled(known[0].column)):
            return None
        known.append(bound)
    return Bound(
        known[0].column,
        union(span for bound in known for span in bound.spans),
        rejects_null=all(bound.rejects_null for bound in known),
        decides=all(bound.decides for bound in known),
    )


def _spelled(column: exp.Column) -> tuple[str, str]:
    return column.table.lower(), column.name.lower()


def _compared_column(term: exp.Expr) -> exp.Column | None:
    sides = [term.this, term.expression] if type(term) in _SIGNS else [term.args.get("this")]
    columns = [side.unnest() for side in sides if isinstance(side, exp.Expr)]
    return next((side for side in columns if isinstance(side, exp.Column)), None)


def _bound(term: exp.Expr, column: exp.Column, key: KeyColumn) -> Bound | None:
    if isinstance(term, exp.Is) and isinstance(term.expression, exp.Null):
        return Bound(column, NULLS, rejects_null=False)
    if isinstance(term, exp.In) and term.expressions and not term.args.get("query"):
        return _compare(column, key, "=", term.expressions)
    if isinstance(term, exp.Between):
        low = _compare(column, key, ">=", [term.args["low"]])
        high = _compare(column, key, "<=", [term.args["high"]])
        if low is None or high is None:
            return None
        return Bound(column, intersect(low.spans, high.spans), True, low.decides and high.decides)
    if type(term) not in _SIGNS:
        return None
    sign, other = _SIGNS[type(term)], term.expression
    if term.this.unnest() is not column:
        sign, other = _MIRRORED.get(sign, sign), term.this
    return _compare(column, key, sign, [other])


def _compare(
    column: exp.Column, key: KeyColumn, sign: Sign, others: Sequence[exp.Expr]
) -> Bound | None:
    """The column beside constants: one, or those of an IN list, which all have one type."""
    if any(other.find(*_NOT_CONSTANT) for other in others):
        return None
    typed = [lower(other, _no_column) for other in others]
    common = common_type([key.type, *(each.type for each in typed)])
    if not _keeps_order(key.type, common):
        return None
    if all(_is_plain(each, common) for each in typed):
        given = [each.constant for each in typed if not each.is_null]
        places = _places(given, key, common)
    else:
        computed = _evaluate(typed, common).drop_null()
        given, places = computed, _places_of_computed(computed, key, common)
    if places is None:
        return None
    spans = in_order(span for place in places for span in _spans(place, sign))
    has_null = len(given) < len(typed)
    if sign == "<=>" and has_null:
        return Bound(column, NULLS, rejects_null=False)
    return Bound(column, spans, decides=not has_null)


def _no_column(column: exp.Column) -> Typed:
    raise SqlError(f"{column.name} is a column")


def _keeps_order(kind: SqlType, common: SqlType) -> bool:
    """Whether a column's values stand in the common type as they are, each apart from the others.

    Of bigints as doubles only those below 2^53 do: see `_places`.
    """
    if kind == common:
        return True
    if kind.name not in (*INTEGRAL, "decimal"):
        return False
    if common.name in INTEGRAL:
        return kind.name in INTEGRAL
    if common == DOUBLE:
        return kind.name in INTEGRAL
    own = as_decimal(kind)
    return (
        common.name == "decimal"
        and common.scale >= own.scale
        and common.precision - common.scale >= own.precision - own.scale
    )


def _evaluate(typed: Sequence[Typed], common: SqlType) -> pa.Array:
    """The constants in their common type, computed by DuckDB."""
    rows = ", ".join(f"({cast_to(each, common).sql})" for each in typed)
    table = shared().sql(f"SELECT x FROM (VALUES {rows}) AS v (x)").to_arrow_table()
    return table.column(0).cast(common.arrow).combine_chunks()


def _is_plain(typed: Typed, common: SqlType) -> bool:
    """Whether a constant is NULL, or known, and itself in the common type: nothing is to compute.

    Of numbers only doubles are doubles: of others the cast may round.
    """
    if typed.type is None:
        return True
    if typed.constant is None or (common == DOUBLE and typed.type != DOUBLE):
        return False
    return _keeps_order(typed.type, common)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a constant stands among the values of a column.

    `low` and `high` are the first and last encoding of the column's value that is equal to it, or,
    if `between`, of the one before it. `beyond` tells that it is before (-1) or after (1) all.
    """

    low: bytes = b""
    high: bytes = b""
    between: bool = False
    beyond: int = 0


def _spans(place: _Place, sign: Sign) -> Spans:
    if place.beyond:
        matches_all = sign in (("<", "<=") if place.beyond > 0 else (">", ">="))
        return VALUES if matches_all else NOTHING
    if sign in ("=", "<=>"):
        return NOTHING if place.between else in_order(map(point, (place.low, place.high)))
    inclusive = sign in ("<=", ">=")
    if sign in ("<", "<="):
        last = inclusive or place.between
        return (below(place.high if last else place.low, last),)
    first = inclusive and not place.between
    return (above(place.low if first else place.high, first),)


def _places(values: Sequence[Any], key: KeyColumn, common: SqlType) -> Sequence[_Place] | None:
    """Of constants in the common type, none of them NULL; None if one has no certain place."""
    codec = _codec(key.type, key.normalize)
    if common == DOUBLE and key.type == DOUBLE:
        return [_place_of_double(value, codec) for value in values]
    if common == key.type and common.name != "decimal":
        encoded = [codec.encode_one([value]) for value in values]
        return [_Place(each, each) for each in encoded]
    if common == DOUBLE and not all(_is_exact(value, key.type) for value in values):
        return None
    return [_place_of_number(Fraction(value), key.type, codec) for value in values]


def _places_of_computed(
    values: pa.Array, key: KeyColumn, common: SqlType
) -> Sequence[_Place] | None:
    """The same; some dates that DuckDB computes are none in Python."""
    if common == key.type and common.name in ("date", "timestamp"):
        encoded = _codec(key.type, key.normalize).encode([values]).to_pylist()
        return [_Place(each, each) for each in encoded]
    return _places(values.to_pylist(), key, common)


@lru_cache(maxsize=256)
def _codec(kind: SqlType, normalize: bool) -> KeyCodec:
    return KeyCodec((kind,), normalize)


def _place_of_double(value: float, codec: KeyCodec) -> _Place:
    """Without `normalize`, zero has two encodings, that of -0.0 first."""
    low, high = (-0.0, 0.0) if value == 0 else (value, value)
    return _Place(codec.encode_one([low]), codec.encode_one([high]))


def _is_exact(number: float, kind: SqlType) -> bool:
    if not math.isfinite(number):
        return False
    return kind.name == "int" or abs(number) < _EXACT_DOUBLES


def _place_of_number(number: Fraction, kind: SqlType, codec: KeyCodec) -> _Place:
    """Of an exact number among whole numbers of the column's unit."""
    units = number * 10**kind.scale
    whole = math.floor(units)
    least, most = _limits(kind)
    if whole < least or whole > most:
        return _Place(beyond=-1 if whole < least else 1)
    encoded = codec.encode_one([_value(whole, kind)])
    return _Place(encoded, encoded, between=whole != units)


def _limits(kind: SqlType) -> tuple[int, int]:
    if kind.name == "decimal":
        return -(10**kind.precision) + 1, 10**kind.precision - 1
    bits = 31 if kind.name == "int" else 63
    return -(1 << bits), (1 << bits) - 1


def _value(whole: int, kind: SqlType) -> int | Decimal:
    # from text, because arithmetic would round to the digits of the context
    return Decimal(f"{whole}E-{kind.scale}") if kind.name == "decimal" else whole
