"""The register of lowering rules: one rule per sqlglot node type, or per name for functions that
sqlglot does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions.casts import cast_to
from belvedere.expressions.typed import Typed
from belvedere.types import STRING, SqlType

Lower = Callable[[exp.Expr], Typed]
Rule = Callable[[Any, Lower], Typed]
_R = TypeVar("_R", bound=Rule)

NODES: dict[type[exp.Expr], tuple[Rule, frozenset[str]]] = {}
FUNCTIONS: dict[str, tuple[Rule, range]] = {}


def lowers(*kinds: type[exp.Expr], args: str = "this") -> Callable[[_R], _R]:
    """The rule for these nodes.

    A node with any other argument than `args` set is not what the rule understands.
    """

    def register(rule: _R) -> _R:
        for kind in kinds:
            NODES[kind] = (rule, frozenset(args.split()))
        return rule

    return register


def function(name: str, least: int, most: int | None = None) -> Callable[[_R], _R]:
    """The rule for a function by name, with the number of arguments it takes."""

    def register(rule: _R) -> _R:
        FUNCTIONS[name] = (rule, range(least, (least if most is None else most) + 1))
        return rule

    return register


def typed_as(value: Typed, kind: SqlType, where: str) -> Typed:
    """`value` as an argument that must be of `kind`; only NULL is converted silently."""
    if value.is_null:
        return cast_to(value, kind)
    if value.type != kind:
        raise SqlError(f"{where} needs {kind}, not {value.type}: cast it explicitly")
    return value


def as_string(value: Typed) -> Typed:
    """Spark turns every other type into a string where a string is asked for."""
    return cast_to(value, STRING)


def literal_text(value: Typed, where: str) -> str:
    if not isinstance(value.literal, str):
        raise SqlError(f"{where} must be a string literal")
    return value.literal


def literal_number(value: Typed, where: str) -> int:
    if not isinstance(value.literal, int):
        raise SqlError(f"{where} must be a whole number literal")
    return value.literal
