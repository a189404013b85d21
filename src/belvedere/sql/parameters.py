"""Parameters: `?` and `:name` in a statement, and the values that are bound to them.

A value becomes a literal of its type in the parsed statement; it is never written into a text and
read again.

    None        NULL                  str         STRING
    bool        BOOLEAN               bytes       BINARY
    int         INT, BIGINT or        date        DATE
                DECIMAL, as digits    datetime    TIMESTAMP; without a zone, UTC
    float       DOUBLE                Decimal     DECIMAL with its own digits
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Any, TypeAlias

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import SparkSql, with_room
from belvedere.expressions.dialect import PLACE
from belvedere.expressions.literals import decimal_of
from belvedere.libraries import np
from belvedere.sql.dialect import TokenType, words_of

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Values: TypeAlias = list[Any] | dict[str, Any]  # of Python's own kinds
Place: TypeAlias = int | str  # of a parameter's value in those that are given

_NAMES = (exp.Table, exp.TableAlias, exp.Schema, exp.DataType, exp.DataTypeParam, exp.Dot)
_GIVEN = "parameter"
_TYPES = "None, bool, int, float, str, bytes, Decimal, date or datetime"


def check_parameters(values: object) -> Parameters | None:
    """What a caller gave as parameters, if it can be some."""
    if values is None or isinstance(values, Mapping):
        return values
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return values
    raise SqlError(
        "parameters are a list of values for ?, or a dict of values for :name, not a"
        f" {type(values).__name__}: for one value write [value]"
    )


def has_parameters(text: str) -> bool:
    """Whether there may be parameters in a text."""
    kinds = {word.token_type for word in words_of(text)}
    return bool(kinds & {TokenType.COLON, TokenType.PLACEHOLDER})


def has_names(text: str) -> bool:
    """Whether a statement's parameters are written :name, and not ?."""
    kinds = [word.token_type for word in words_of(text)]
    return TokenType.COLON in kinds and TokenType.PLACEHOLDER not in kinds


def parameters_in(statement: exp.Expr) -> list[exp.Placeholder]:
    """The parameters in the order in which they are written."""
    found = [p for p in statement.find_all(exp.Placeholder) if not p.args.get("widget")]
    return sorted(found, key=lambda parameter: parameter.meta.get(PLACE, 0))


@with_room
def bind(statement: exp.Expr, given: Parameters | None) -> Values | None:
    """Put literals in the place of a statement's parameters; returns the values as Spark takes
    them.
    """
    parameters = parameters_in(statement)
    for parameter in parameters:
        _check_place(parameter)
    values = _values(parameters, given)
    plain = {word: plain_value(value, word) for word, value in values.items()}
    for number, parameter in enumerate(parameters, 1):
        place = _name(parameter) or number - 1
        _replace(parameter, plain[_word(parameter, number)], place)
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {word.removeprefix(":"): value for word, value in plain.items()}
    return list(plain.values())


def refuse_parameters(statement: exp.Expr, words: str) -> None:
    """In statements whose text is kept, there is nobody who could give values later."""
    if parameters_in(statement):
        raise SqlError(
            f"a parameter cannot stand in {words}: write the value itself. SELECT, INSERT, UPDATE"
            " and DELETE take parameters"
        )


def _name(parameter: exp.Placeholder) -> str:
    """Its name, or nothing for ?."""
    return str(parameter.args.get("this") or "")


def _word(parameter: exp.Placeholder, number: int) -> str:
    """What a message calls a parameter."""
    return f":{_name(parameter)}" if _name(parameter) else f"? number {number}"


def _check_place(parameter: exp.Placeholder) -> None:
    """A parameter is a value: it is no name, and no number of a column."""
    child: exp.Expr = parameter
    while isinstance(child.parent, exp.Paren):
        child = child.parent
    parent = child.parent
    written = f":{_name(parameter)}" if _name(parameter) else "?"
    if isinstance(parent, _NAMES) or child.arg_key == "alias" or _is_assigned(child):
        raise SqlError(f"{written} stands where a name is expected: only values can be parameters")
    if isinstance(parent, exp.Ordered | exp.Group):
        raise SqlError(
            f"{written} cannot stand alone in ORDER BY or GROUP BY: write the column, or its number"
        )


def _is_assigned(node: exp.Expr) -> bool:
    """Whether it stands where UPDATE names a column."""
    parent = node.parent
    return (
        isinstance(parent, exp.EQ)
        and node.arg_key == "this"
        and isinstance(parent.parent, exp.Update)
        and parent.arg_key == "expressions"
    )


def _values(parameters: Sequence[exp.Placeholder], given: Parameters | None) -> Mapping[str, Any]:
    """The values by what messages call their parameters."""
    names = [name for name in map(_name, parameters) if name]
    if names and len(names) < len(parameters):
        raise SqlError(f"the statement has both ? and :{names[0]}: write all parameters one way")
    if given is None:
        if parameters:
            raise _missing(parameters)
        return {}
    if isinstance(given, Mapping):
        return _named_values(parameters, names, given)
    return _listed_values(parameters, names, given)


def _missing(parameters: Sequence[exp.Placeholder]) -> SqlError:
    names = list(dict.fromkeys(map(_name, parameters)))  # one empty name, if they are written ?
    words = ", ".join(f":{name}" for name in names) if names[0] else "?"
    example = f'{{"{names[0]}": value}}' if names[0] else "[value]"
    option = f"--param {names[0]}=VALUE" if names[0] else "--param VALUE"
    return SqlError(
        f"the statement has parameters ({words}): give their values, as in {example}, or on the"
        f" command line {option}"
    )


def _named_values(
    parameters: Sequence[exp.Placeholder], names: Sequence[str], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    if len(names) < len(parameters):
        raise SqlError("the parameters are written ?, so their values are a list, not a dict")
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        known = ", ".join(f":{name}" for name in dict.fromkeys(names)) or "no parameters"
        raise SqlError(f"there is no parameter :{unknown[0]}: the statement has {known}")
    missing = [name for name in names if name not in given]
    if missing:
        raise SqlError(f"the parameter :{missing[0]} has no value: give one")
    return {f":{name}": given[name] for name in dict.fromkeys(names)}


def _listed_values(
    parameters: Sequence[exp.Placeholder], names: Sequence[str], given: Sequence[Any]
) -> Mapping[str, Any]:
    if names:
        raise SqlError(f"the parameters have names (:{names[0]}), so their values are a dict")
    if len(given) != len(parameters):
        raise SqlError(
            f"the statement has {len(parameters)} parameter(s), and {len(given)} value(s) are given"
        )
    return {f"? number {number}": value for number, value in enumerate(given, 1)}


def plain_value(value: Any, word: str) -> Any:
    """A value as one of Python's own kinds; a datetime has a zone."""
    if isinstance(value, np.bool_):
        return bool(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return _whole_number(int(value), word)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, datetime):
        return _instant(value, word)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        return _text(value, word)
    if isinstance(value, Decimal):
        return _check_digits(value, word)
    if isinstance(value, date):
        return value
    kind = type(value).__name__
    raise SqlError(f"{word} is of the type {kind}, which SQL does not know: give one of {_TYPES}")


def _whole_number(value: int, word: str) -> int | Decimal:
    is_bigint = -(1 << 63) <= value < 1 << 63
    return value if is_bigint else _check_digits(Decimal(value), word)


def _check_digits(value: Decimal, word: str) -> Decimal:
    if not value.is_finite():
        raise SqlError(f"{word} is the decimal {value}, which SQL has not: use a float")
    try:
        decimal_of(value)
    except SqlError as error:
        raise SqlError(f"{word}: a DECIMAL has at most 38 digits") from error
    return value


def _text(value: str, word: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SqlError(f"{word} is text that is not Unicode: decode it first") from None
    return str(value)


def _instant(value: datetime, word: str) -> datetime:
    if getattr(value, "nanosecond", 0):
        raise SqlError(f"{word} has nanoseconds: round it to microseconds")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise SqlError(f"{word} is not within the years 1 to 9999 in UTC") from None


def place_of(node: exp.Expr) -> Place | None:
    """Which parameter stood where there is a literal now, if one did."""
    place: Place | None = node.meta.get(_GIVEN)
    return place


def _replace(parameter: exp.Placeholder, value: Any, place: Place) -> None:
    literal = literal_of(value)
    literal.meta[_GIVEN] = place
    # a cast of a plain literal is the notation of some literals, which have rules of their own
    is_cast = isinstance(parameter.parent, exp.Cast)
    parameter.replace(exp.Paren(this=literal) if is_cast else literal)


def literal_of(value: Any) -> exp.Expr:
    """The literal of a value from `plain_value`."""
    return next(make for kinds, make in _LITERALS if isinstance(value, kinds))(value)


def _number(text: str) -> exp.Expr:
    """In the tree of a statement a minus sign stands before its literal."""
    digits = exp.Literal.number(text.removeprefix("-"))
    return exp.Neg(this=digits) if text.startswith("-") else digits


def _decimal(value: Decimal) -> exp.Expr:
    """Digits without a point would be an INT."""
    digits, kind = f"{value:f}", decimal_of(value)
    return _number(digits) if "." in digits else _cast(_number(digits), str(kind))


def _double(value: float) -> exp.Expr:
    if not math.isfinite(value):
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return _cast(exp.Literal.string(names.get(value, "NaN")), "double")
    text = repr(value)
    return _number(text if "e" in text else f"{text}E0")


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect=SparkSql))


def _timestamp(value: datetime) -> exp.Expr:
    return _cast(exp.Literal.string(value.isoformat(" ")), "timestamp")


# bool before int, and datetime before date: each is a kind of the other
_LITERALS: list[tuple[type[Any], Callable[[Any], exp.Expr]]] = [
    (type(None), lambda _: exp.Null()),
    (bool, lambda value: exp.Boolean(this=value)),
    (int, lambda value: _number(str(value))),
    (float, _double),
    (Decimal, _decimal),
    (str, exp.Literal.string),
    (bytes, lambda value: exp.HexString(this=value.hex())),
    (datetime, _timestamp),
    (date, lambda value: _cast(exp.Literal.string(value.isoformat()), "date")),
]
