"""Relations while a view is planned: rows of a node that pass tests, with computed values.

A stateless step is not made at once. It is carried along as tests and values over the columns of
the node below, and becomes one Select when an operator with state asks for rows. So a subquery
costs nothing of its own, and two queries that compute the same over the same node meet in one
Select. A UNION ALL is a relation with several branches: what is computed over it is computed over
each.

Values are known by the text of their bound expression (`sql.front.binding`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, all_of, lower_condition
from belvedere.operators.select import Expression
from belvedere.sql.front.binding import VALUE, has_computed, over_values, text_of
from belvedere.sql.front.values import lower_over
from belvedere.sql.plan.refusal import VIEW
from belvedere.types import INT, SqlType

_PLAIN = re.compile(r'"c(\d+)"')
Place = tuple[tuple[int, str], ...]  # what a value is, branch by branch
_ROW_NUMBER = Typed("", INT)  # a value that is not computed yet


@dataclass(frozen=True, slots=True)
class Test:
    value: Typed
    text: str


@dataclass(frozen=True, slots=True)
class Branch:
    node: int
    values: Mapping[str, Typed]
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a row unique: per part the texts of values that are equal to it, any of which will
    do.

    `exact`: the row's `_id` is the KeyCodec of the parts, in this order. `ordered`: rows ordered by
    the parts, each ascending and NULLs first, are in the order of `_id`. `longest`: an `_id` never
    has more bytes.
    """

    parts: tuple[frozenset[str], ...]
    exact: bool = True
    ordered: bool = True
    longest: int = field(kw_only=True)

    def renamed(self, names: Mapping[str, frozenset[str]]) -> Identity:
        return replace(self, parts=renamed(self.parts, names))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a relation: an expression per branch, all of one type, and the user's words for
    it.
    """

    each: tuple[Typed, ...]
    text: str

    @property
    def type(self) -> SqlType:
        kind = self.each[0].type
        if kind is None:
            raise SqlError(f"{self.text} has no type: write CAST(NULL AS ...)")
        return kind

    @property
    def nullable(self) -> bool:
        return any(v.nullable for v in self.each)

    @property
    def place(self) -> Place:
        """Two queries list their columns in this order: columns of the node by number, then
        expressions by text.
        """
        return tuple(
            (number_of(v), v.sql) if number_of(v) >= 0 else (1 << 30, v.sql) for v in self.each
        )


@dataclass(frozen=True, slots=True)
class Ranking:
    """Row numbers that wait for a bound: `key` is the text of the value that holds them."""

    key: str
    partition: tuple[Value, ...]
    order: tuple[tuple[Value, bool], ...]  # True: descending
    words: str


@dataclass(frozen=True, slots=True)
class Relation:
    """`partition` lists what the rows are partitioned by, as `Identity` lists its parts; None if
    that is not known.
    """

    branches: tuple[Branch, ...]
    identity: Identity | None = None
    partition: tuple[frozenset[str], ...] | None = None
    ranking: Ranking | None = None
    missing: str = "is not known here"

    def __contains__(self, text: str) -> bool:
        return text in self.branches[0].values

    @property
    def texts(self) -> Iterable[str]:
        return self.branches[0].values.keys()

    def known(self, text: str, words: str) -> Value:
        return Value(tuple(b.values[text] for b in self.branches), words)

    def value(self, node: exp.Expr, words: str) -> Value:
        return Value(tuple(_lowered(node, b, self.missing) for b in self.branches), words)

    def equal(self, value: Value) -> frozenset[str]:
        """The texts of all values that are this one."""
        return frozenset(
            t
            for t in self.texts
            if all(b.values[t].sql == v.sql for b, v in zip(self.branches, value.each, strict=True))
        )

    def tested(self, nodes: Sequence[exp.Expr], words: Callable[[exp.Expr], str]) -> Relation:
        """The rows for which bound conditions are true, each tested in the
        order of the conditions.
        """
        if not nodes:
            return self
        assert self.ranking is None  # a test below a ranking would change the row numbers
        texts = [words(node) for node in nodes]
        return replace(self, branches=tuple(self._tested(b, nodes, texts) for b in self.branches))

    def _tested(self, branch: Branch, nodes: Sequence[exp.Expr], texts: Sequence[str]) -> Branch:
        tests: list[Test] = []
        for node, text in zip(nodes, texts, strict=True):
            tests.append(Test(_condition(node, branch, self.missing), text))
            value = branch.values.get(given := _not_null(node))
            if value is not None:
                branch = replace(
                    branch, values={**branch.values, given: replace(value, nullable=False)}
                )
        return replace(branch, tests=(*branch.tests, *tests))

    def where(self, tests: Sequence[Test]) -> Relation:
        """The same with one test for each branch; a branch that tests it already
        is left as it is.
        """
        branches = [
            (
                b
                if any(t.value.sql == test.value.sql for t in b.tests)
                else replace(b, tests=(*b.tests, test))
            )
            for b, test in zip(self.branches, tests, strict=True)
        ]
        return replace(self, branches=tuple(branches))

    def used(self, nodes: Iterable[exp.Expr]) -> dict[str, None]:
        """The texts of the values that expressions are made of, in the order of their use."""
        values = self.branches[0].values
        if self.ranking is not None:
            values = {**values, self.ranking.key: _ROW_NUMBER}
        found: dict[str, None] = {}
        for node in nodes:
            found.update(
                dict.fromkeys(text for text, _ in over_values(node, values.get, self.missing)[1])
            )
        return found


def sort_values(values: Iterable[Value]) -> list[Value]:
    """Each value once, in an order that does not depend on the query (`Value.place`)."""
    return sorted({v.place: v for v in values}.values(), key=lambda v: v.place)


def number_of(value: Typed) -> int:
    """The number of the column that a value only passes on, else -1."""
    match = _PLAIN.fullmatch(value.sql)
    return int(match[1]) if match else -1


def column(number: int, kind: SqlType, nullable: bool = True) -> Typed:
    return Typed(f'"c{number}"', kind, nullable=nullable)


def expression(value: Typed, text: str) -> Expression:
    assert value.type is not None  # `Value.type` has refused it
    return Expression(value.sql, value.type, text, value.raises, number_of(value))


def conjunction(tests: Sequence[Test]) -> Expression | None:
    """All tests as one condition, in their order: a test that raises is not evaluated where one
    before it is false.
    """
    if not tests:
        return None
    return expression(all_of([t.value for t in tests]), " AND ".join(t.text for t in tests))


def renamed(
    parts: Sequence[frozenset[str]], names: Mapping[str, frozenset[str]]
) -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset().union(*(names.get(text, frozenset()) for text in part)) for part in parts
    )


def _not_null(node: exp.Expr) -> str:
    """The text of the value of which a condition says that it is not NULL, or ""."""
    inner = node.this.unnest() if isinstance(node, exp.Not) else None
    return (
        text_of(inner.this.unnest())
        if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
        else ""
    )


def _lowered(node: exp.Expr, branch: Branch, missing: str) -> Typed:
    values = branch.values
    return lower_over(node, values.get, missing, has_computed(values), VIEW)


def _condition(node: exp.Expr, branch: Branch, missing: str) -> Typed:
    value = _lowered(node, branch, missing)
    return lower_condition(exp.column("v0", table=VALUE), lambda c: value)
