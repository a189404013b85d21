"""A stage of a query: what stands after FROM, and the values that expressions above it may use.

    FROM and JOIN -> WHERE -> GROUP BY -> HAVING -> window functions -> SELECT

A stage knows its values by the text of their bound expressions (`sql.front.binding`). Stages of an
outer query give the values of correlated columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed
from belvedere.expressions.predicates import condition
from belvedere.sql.front.binding import has_computed
from belvedere.sql.front.names import Names
from belvedere.sql.front.values import lower_over
from belvedere.sql.query.refusal import QUERY
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation: its name for the user, its type (None for an untyped NULL), its
    quoted name in DuckDB.
    """

    name: str
    type: SqlType | None
    column: str


@dataclass(frozen=True, slots=True)
class Text:
    """A table, or the text of a SELECT."""

    sql: str
    outputs: tuple[Output, ...]
    is_table: bool = False

    @property
    def source(self) -> str:
        """As it stands in FROM."""
        return self.sql if self.is_table else f"({self.sql})"


@dataclass(frozen=True, slots=True)
class Stage:
    """`names` are the columns that the user may name above this stage, `values` what they and other
    bound expressions are in DuckDB.
    """

    sql: str
    names: Names
    values: Mapping[str, Typed]
    outer: Stage | None = None
    missing: str = "is not known here"

    def value(self, text: str) -> Typed | None:
        own = self.values.get(text)
        return own if own is not None or self.outer is None else self.outer.value(text)

    @property
    def computed(self) -> bool:
        """Whether this stage or one around it has values that are more than columns."""
        return has_computed(self.values) or (self.outer is not None and self.outer.computed)

    def lower(self, node: exp.Expr) -> Typed:
        """DuckDB text of a bound expression over this stage."""
        return lower_over(node, self.value, self.missing, self.computed, QUERY)

    def condition(self, node: exp.Expr, where: str) -> Typed:
        value = self.lower(node)
        if value.is_null:
            raise SqlError(f"{where} needs a boolean, not NULL: write false")
        return condition(value, where)

    def filtered(self, nodes: Sequence[exp.Expr], where: str) -> Stage:
        """The rows for which bound conditions are true."""
        if not nodes:
            return self
        tests = " AND ".join(self.condition(node, where).sql for node in nodes)
        return replace(self, sql=f"{self.sql} WHERE {tests}")

    def carried(self, extra: Mapping[str, Typed], alias: str) -> Stage:
        """This stage as a subquery that computes `extra` beside the values that it has."""
        every = {**self.values, **extra}
        columns = ", ".join(f"{value.sql} AS v{i}" for i, value in enumerate(every.values()))
        values = {
            text: column_of(f"{alias}.v{i}", value.type)
            for i, (text, value) in enumerate(every.items())
        }
        return replace(self, sql=f"(SELECT {columns} FROM {self.sql}) AS {alias}", values=values)


def column_of(sql: str, kind: SqlType | None) -> Typed:
    """A column as a value.

    It may always be NULL, because outer joins make NULLs; an untyped NULL stays one.
    """
    return Typed(sql, kind) if kind is not None else Typed("NULL", None)
