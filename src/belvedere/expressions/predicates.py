"""Comparisons, AND/OR/NOT, IS, IN, BETWEEN, LIKE and RLIKE.

DuckDB may evaluate both sides of AND and OR in any order; where a side may raise, CASE keeps
Spark's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from belvedere.errors import SqlError, Unsupported
from belvedere.expressions import patterns
from belvedere.expressions.casts import cast_to
from belvedere.expressions.coercion import common_type
from belvedere.expressions.rules import Lower, as_string, function, literal_text, lowers
from belvedere.expressions.typed import Typed, let, null_of, strict, text_sql
from belvedere.types import BOOLEAN, STRING

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MANY = 16  # conditions from which on they become a balanced tree
_LOOSER = (
    exp.Is,
    exp.In,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.Between,
    exp.Escape,
    exp.Not,
    exp.And,
    exp.Or,
)


def aligned(*values: Typed) -> list[Typed]:
    """The values cast to their common type."""
    if all(v.is_null for v in values):
        return [cast_to(v, BOOLEAN) for v in values]
    kind = common_type(v.type for v in values)
    return [cast_to(v, kind) for v in values]


def compared(a: Typed, b: Typed, sign: str) -> Typed:
    if a.is_null or b.is_null:
        aligned(a, b)
        return null_of(BOOLEAN)
    return strict(aligned(a, b), lambda x, y: f"({x} {sign} {y})", BOOLEAN)


@lowers(*_SIGNS, args="this expression")
def compare(node: exp.Binary, lower: Lower) -> Typed:
    _check_parentheses(node)
    return compared(lower(node.this), lower(node.expression), _SIGNS[type(node)])


def _check_parentheses(node: exp.Binary) -> None:
    """Spark reads a = b IN (c) as (a = b) IN (c), sqlglot as a = (b IN (c))."""
    if isinstance(node.this, _LOOSER) or isinstance(node.expression, _LOOSER):
        raise Unsupported(
            f"{node.sql('spark')} without parentheses", "put parentheses around the inner condition"
        )


@lowers(exp.NullSafeEQ, args="this expression")
def same(node: exp.NullSafeEQ, lower: Lower) -> Typed:
    _check_parentheses(node)
    return _distinct(lower(node.this), lower(node.expression), "IS NOT DISTINCT FROM")


@lowers(exp.NullSafeNEQ, args="this expression")
def different(node: exp.NullSafeNEQ, lower: Lower) -> Typed:
    _check_parentheses(node)
    return _distinct(lower(node.this), lower(node.expression), "IS DISTINCT FROM")


def _distinct(a: Typed, b: Typed, words: str) -> Typed:
    x, y = aligned(a, b)
    if x.sql == y.sql:  # Spark's optimizer does not evaluate it, so it cannot raise
        return Typed("TRUE" if "NOT" in words else "FALSE", BOOLEAN, nullable=False)
    return Typed(f"({x.sql} {words} {y.sql})", BOOLEAN, x.raises or y.raises, nullable=False)


def condition(value: Typed, where: str) -> Typed:
    """`value` as a boolean; Spark casts only NULL and strings, and we leave the strings to the
    user.
    """
    if value.is_null or value.type == BOOLEAN:
        return cast_to(value, BOOLEAN)
    raise SqlError(f"{where} needs a boolean, not {value.type}: compare or cast it explicitly")


@lowers(exp.And, args="this expression")
def conjunction(node: exp.And, lower: Lower) -> Typed:
    return _connected(node, lower, "AND", "FALSE")


@lowers(exp.Or, args="this expression")
def disjunction(node: exp.Or, lower: Lower) -> Typed:
    return _connected(node, lower, "OR", "TRUE")


def _connected(node: exp.Connector, lower: Lower, word: str, decides: str) -> Typed:
    """The right side is evaluated unless the left side decides: also when the left side is NULL."""
    # the parser has balanced a long condition
    if isinstance(node.this, type(node)) and isinstance(node.expression, type(node)):
        return _decided_by_all(
            [condition(lower(term), word) for term in node.flatten(unnest=False)], word, decides
        )
    a, b = (condition(lower(side), word) for side in (node.this, node.expression))
    return _decided(a, b, word, decides)


def all_of(values: Sequence[Typed]) -> Typed:
    """Conditions that must all hold, tested in their order; many of them as
    a tree of little depth.
    """
    tests = [condition(value, "a condition") for value in values]
    if len(tests) < _MANY:
        return reduce(lambda a, b: _decided(a, b, "AND", "FALSE"), tests)
    return _decided_by_all(tests, "AND", "FALSE")


def _decided_by_all(tests: Sequence[Typed], word: str, decides: str) -> Typed:
    """As `_decided` for many: a text of little depth, in which a test that raises is not evaluated
    after one that decides.
    """
    if any(t.sql == decides for t in tests):
        return Typed(decides, BOOLEAN, nullable=False)
    raises, nullable = any(t.raises for t in tests), any(t.nullable for t in tests)
    if not raises:
        return Typed(_paired([t.sql for t in tests], word), BOOLEAN, nullable=nullable)
    arms = " ".join(
        f"WHEN {t.sql if decides == 'TRUE' else f'NOT {t.sql}'} THEN {decides}" for t in tests
    )
    unknown = _paired([f"({t.sql} IS NULL)" for t in tests if t.nullable] or ["FALSE"], "OR")
    other = "FALSE" if decides == "TRUE" else "TRUE"
    return Typed(
        f"(CASE {arms} WHEN {unknown} THEN NULL ELSE {other} END)", BOOLEAN, True, nullable
    )


def _paired(texts: Sequence[str], word: str) -> str:
    level = list(texts)
    while len(level) > 1:
        pairs = [f"({a} {word} {b})" for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0]


def _decided(a: Typed, b: Typed, word: str, decides: str) -> Typed:
    if decides in (a.sql, b.sql):  # Spark's optimizer drops the other side, even one that raises
        return Typed(decides, BOOLEAN, nullable=False)
    nullable = a.nullable or b.nullable
    if not (a.raises or b.raises):
        return Typed(f"({a.sql} {word} {b.sql})", BOOLEAN, nullable=nullable)
    test = "NOT {0}" if decides == "FALSE" else "{0}"
    sql = let(
        a.sql, lambda x: f"CASE WHEN {test.format(x)} THEN {decides} ELSE ({x} {word} {b.sql}) END"
    )
    return Typed(f"({sql})", BOOLEAN, True, nullable)


@lowers(exp.Not)
def negation(node: exp.Not, lower: Lower) -> Typed:
    return strict([condition(lower(node.this), "NOT")], lambda v: f"(NOT {v})", BOOLEAN)


@lowers(exp.Is, args="this expression")
def is_value(node: exp.Is, lower: Lower) -> Typed:
    value = lower(node.this)
    if isinstance(node.expression, exp.Null):
        return is_null(value)
    if not isinstance(node.expression, exp.Boolean):
        raise Unsupported(node.sql("spark"), "use IS NULL, IS TRUE or IS FALSE")
    word = "TRUE" if node.expression.this else "FALSE"
    return Typed(
        f"({condition(value, 'IS ' + word).sql} IS NOT DISTINCT FROM {word})",
        BOOLEAN,
        value.raises,
        nullable=False,
    )


def is_null(value: Typed) -> Typed:
    return (
        Typed("TRUE", BOOLEAN, nullable=False)
        if value.is_null
        else Typed(f"({value.sql} IS NULL)", BOOLEAN, value.raises, nullable=False)
    )


@function("isnull", 1)
def isnull(node: exp.Anonymous, lower: Lower) -> Typed:
    return is_null(lower(node.expressions[0]))


@function("isnotnull", 1)
def isnotnull(node: exp.Anonymous, lower: Lower) -> Typed:
    value = is_null(lower(node.expressions[0]))
    return Typed(f"(NOT {value.sql})", BOOLEAN, value.raises, nullable=False)


@lowers(exp.In, args="this expressions")
def member(node: exp.In, lower: Lower) -> Typed:
    value, *items = aligned(lower(node.this), *(lower(e) for e in node.expressions))
    if not items:
        raise SqlError("IN needs a list of values")
    raises, nullable = (
        any(v.raises for v in (value, *items)),
        any(v.nullable for v in (value, *items)),
    )
    if not any(i.raises for i in items):
        return Typed(
            f"({value.sql} IN ({', '.join(i.sql for i in items)}))", BOOLEAN, raises, nullable
        )
    # Item by item, because Spark stops at the first match.
    nulls = " OR ".join(f"{i.sql} IS NULL" for i in items)

    def body(v: str) -> str:
        matches = " ".join(f"WHEN {v} = {i.sql} THEN TRUE" for i in items)
        return f"CASE WHEN {v} IS NULL THEN NULL {matches} WHEN {nulls} THEN NULL ELSE FALSE END"

    return Typed(f"({let(value.sql, body)})", BOOLEAN, raises, nullable)


@lowers(exp.Between, args="this low high")
def between(node: exp.Between, lower: Lower) -> Typed:
    value = node.this
    both = exp.And(
        this=exp.GTE(this=value, expression=node.args["low"]),
        expression=exp.LTE(this=value.copy(), expression=node.args["high"]),
    )
    return conjunction(both, lower)


@lowers(exp.Like, args="this expression negate")
def like(node: exp.Like, lower: Lower) -> Typed:
    return _like(node, "\\", lower)


@lowers(exp.Escape, args="this expression")
def like_escape(node: exp.Escape, lower: Lower) -> Typed:
    mark = literal_text(lower(node.expression), "the ESCAPE character")
    if not isinstance(node.this, exp.Like) or len(mark) != 1 or mark in "%_":
        raise Unsupported(node.sql("spark"), "use LIKE with an escape character other than % and _")
    return _like(node.this, mark, lower)


def _like(node: exp.Like, mark: str, lower: Lower) -> Typed:
    if not isinstance(node.expression, (exp.Literal, exp.RawString, exp.Null)):
        raise Unsupported(
            "LIKE with a pattern that is not a string literal",
            "use contains, startswith or endswith",
        )
    value, pattern = as_string(lower(node.this)), lower(node.expression)
    if pattern.is_null or value.is_null:
        return null_of(BOOLEAN)
    checked = text_sql(patterns.like(literal_text(pattern, "the LIKE pattern"), mark))
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return strict([value], lambda v: f"({v} {word} {checked} ESCAPE '\\')", BOOLEAN)


@lowers(exp.RegexpLike, args="this expression")
def rlike(node: exp.RegexpLike, lower: Lower) -> Typed:
    value, pattern = as_string(lower(node.this)), lower(node.expression)
    checked = text_sql(patterns.regular(literal_text(pattern, "the RLIKE pattern")))
    return strict([cast_to(value, STRING)], lambda v: f"regexp_matches({v}, {checked})", BOOLEAN)
