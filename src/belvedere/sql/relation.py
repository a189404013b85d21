"""Expressions over the columns of one relation, as UPDATE, DELETE and tests of operators have them.

Columns are found as everywhere (`sql.front.binding`); there is no query around, and no alias.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, lower, lower_condition
from belvedere.operators.select import Expression
from belvedere.sql.dialect import sql_of
from belvedere.sql.front.binding import Field, field_of, no_such_column
from belvedere.sql.front.conjuncts import refuse_null
from belvedere.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Scope:
    """Columns, and by their keys how DuckDB finds each of them."""

    fields: tuple[Field, ...]
    values: Mapping[str, Typed] = field(default_factory=dict)

    def find(self, column: exp.Column) -> Field:
        found = field_of(self.fields, column)
        if found is None:
            raise no_such_column(column, self.fields)
        return found

    def resolve(self, column: exp.Column) -> Typed:
        return self.values[self.find(column).key]


def scope_of(relation: str, columns: Sequence[Column], sql: Callable[[int], str]) -> Scope:
    fields = tuple(Field(f"f{i}", relation, c.name) for i, c in enumerate(columns))
    values = {
        f.key: Typed(sql(i), c.type, nullable=c.nullable)
        for i, (f, c) in enumerate(zip(fields, columns, strict=True))
    }
    return Scope(fields, values)


def expression_of(node: exp.Expr, scope: Scope) -> Expression:
    text = sql_of(node)
    typed = lower(node, scope.resolve)
    if typed.type is None:
        raise SqlError(f"{text} has no type: write CAST(NULL AS ...)")
    number = scope.fields.index(scope.find(node)) if isinstance(node, exp.Column) else -1
    return Expression(typed.sql, typed.type, text, typed.raises, number)


def condition_of(node: exp.Expr | None, scope: Scope) -> Expression | None:
    if node is None:
        return None
    refuse_null(node)
    typed = lower_condition(node, scope.resolve)
    return Expression(typed.sql, SqlType("boolean"), sql_of(node), typed.raises)
