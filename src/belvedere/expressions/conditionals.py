"""CASE, IF, COALESCE and their relatives. Branches that are not taken are not evaluated."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions.casts import cast_to
from belvedere.expressions.coercion import common_type, tightest_type
from belvedere.expressions.predicates import compared, condition, is_null
from belvedere.expressions.rules import Lower, lowers
from belvedere.expressions.typed import NULL, Typed
from belvedere.types import SqlType


def choose(branches: Sequence[tuple[Typed, Typed]], otherwise: Typed) -> Typed:
    """The value of the first branch whose condition is true."""
    values = [value for _, value in branches] + [otherwise]
    kind = common_type(v.type for v in values)
    cast = [cast_to(v, kind) for v in values]
    arms = " ".join(
        f"WHEN {test.sql} THEN {value.sql}"
        for (test, _), value in zip(branches, cast, strict=False)
    )
    raises = any(v.raises for v in cast) or any(test.raises for test, _ in branches)
    return Typed(
        f"(CASE {arms} ELSE {cast[-1].sql} END)", kind, raises, any(v.nullable for v in cast)
    )


@lowers(exp.Case, args="this ifs default")
def case(node: exp.Case, lower: Lower) -> Typed:
    default = node.args.get("default")
    otherwise = lower(default) if default is not None else NULL
    subject = lower(node.this) if node.this is not None else None
    branches = [(_test(subject, arm, lower), lower(arm.args["true"])) for arm in node.args["ifs"]]
    return choose(branches, otherwise)


def _test(subject: Typed | None, arm: exp.If, lower: Lower) -> Typed:
    test = lower(arm.this)
    if subject is not None:
        return compared(subject, test, "=")
    if test.is_null:
        raise SqlError("a condition needs a boolean, not NULL: write false")
    return condition(test, "a condition")


@lowers(exp.If, args="this true false")
def if_function(node: exp.If, lower: Lower) -> Typed:
    if node.args.get("false") is None:
        raise SqlError("IF needs a condition and two values")
    return choose(
        [(condition(lower(node.this), "IF"), lower(node.args["true"]))], lower(node.args["false"])
    )


@lowers(exp.Coalesce, args="this expressions is_nvl is_null")
def coalesce(node: exp.Coalesce, lower: Lower) -> Typed:
    values = [lower(e) for e in (node.this, *node.expressions)]
    kind = common_type(v.type for v in values)
    cast = [cast_to(v, kind) for v in values]
    return Typed(
        f"COALESCE({', '.join(v.sql for v in cast)})",
        kind,
        any(v.raises for v in cast),
        all(v.nullable for v in cast),
    )


@lowers(exp.Nullif, args="this expression")
def nullif(node: exp.Nullif, lower: Lower) -> Typed:
    a, b = lower(node.this), lower(node.expression)
    equal = compared(a, b, "=")
    if a.type is None:
        raise Unsupported("NULLIF of NULL", "write CAST(NULL AS a type)")
    return Typed(f"(CASE WHEN {equal.sql} THEN NULL ELSE {a.sql} END)", a.type, equal.raises)


@lowers(exp.Nvl2, args="this true false")
def nvl2(node: exp.Nvl2, lower: Lower) -> Typed:
    return choose(
        [(is_null(lower(node.this)), lower(node.args["false"]))], lower(node.args["true"])
    )


@lowers(exp.Greatest, args="this expressions ignore_nulls")
def greatest(node: exp.Greatest, lower: Lower) -> Typed:
    return _extreme("greatest", node, lower)


@lowers(exp.Least, args="this expressions ignore_nulls")
def least(node: exp.Least, lower: Lower) -> Typed:
    return _extreme("least", node, lower)


def _extreme(name: str, node: exp.Func, lower: Lower) -> Typed:
    """NULLs are skipped."""
    values = [lower(e) for e in (node.this, *node.expressions)]
    if len(values) < 2:
        raise SqlError(f"{name} needs at least two values")
    kind: SqlType = tightest_type(v.type for v in values)
    cast = [cast_to(v, kind) for v in values]
    return Typed(
        f"{name}({', '.join(v.sql for v in cast)})",
        kind,
        any(v.raises for v in cast),
        all(v.nullable for v in cast),
    )
