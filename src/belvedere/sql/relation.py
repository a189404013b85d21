"""Relations that a query can name, and how columns are found in them.

Names are compared without case, as Spark does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, lower, lower_condition
from belvedere.operators.select import Expression
from belvedere.sql.dialect import sql_of
from belvedere.sql.front.conjuncts import refuse_null
from belvedere.types import Column, SqlType


@dataclass(frozen=True, slots=True)
class Field:
    """A column that an expression may refer to: `sql` is how DuckDB finds it."""

    relation: str
    name: str
    type: SqlType
    sql: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Scope:
    fields: tuple[Field, ...]

    def find(self, column: exp.Column) -> Field:
        wanted, relation = column.name.lower(), column.table.lower()
        found = [
            f
            for f in self.fields
            if f.name.lower() == wanted and (not relation or f.relation.lower() == relation)
        ]
        found = [] if column.args.get("db") else found
        if len(found) == 1:
            return found[0]
        name = ".".join(part.name for part in column.parts)
        if not found:
            known = ", ".join(dict.fromkeys(f.name for f in self.fields)) or "none"
            raise SqlError(f"there is no column {name}: the columns are {known}")
        raise SqlError(f"column {name} is ambiguous: write it with its table")

    def resolve(self, column: exp.Column) -> Typed:
        found = self.find(column)
        return Typed(sql=found.sql, type=found.type, raises=False, nullable=found.nullable)


def scope_of(relation: str, columns: Sequence[Column], sql: Callable[[int], str]) -> Scope:
    return Scope(
        tuple(Field(relation, c.name, c.type, sql(i), c.nullable) for i, c in enumerate(columns))
    )


def expression_of(node: exp.Expr, scope: Scope) -> Expression:
    text = sql_of(node)
    typed = lower(node, scope.resolve)
    if typed.type is None:
        raise SqlError(f"{text} has no type: write CAST(NULL AS ...)")
    column = (
        next((i for i, f in enumerate(scope.fields) if f.sql == typed.sql), -1)
        if isinstance(node, exp.Column)
        else -1
    )
    return Expression(typed.sql, typed.type, text, typed.raises, column)


def condition_of(node: exp.Expr | None, scope: Scope) -> Expression | None:
    if node is None:
        return None
    refuse_null(node)
    typed = lower_condition(node, scope.resolve)
    return Expression(typed.sql, SqlType("boolean"), sql_of(node), typed.raises)
