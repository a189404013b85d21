"""A stage of a query: what stands after FROM, and the values that expressions above it may use.

    FROM and JOIN -> WHERE -> GROUP BY -> HAVING -> window functions -> SELECT

A stage knows its values by the text of their bound expressions (`sql.binding`). Stages of an outer
query give the values of correlated columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.expressions import Typed, lower
from belvedere.expressions.predicates import condition
from belvedere.sql.binding import (
    VALUE,
    Field,
    field_of,
    has_computed,
    no_such_column,
    over_values,
    text_of,
)
from belvedere.sql.query.refusal import NotAnswered, reworded
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
class Relation:
    """A table, or the text of a SELECT."""

    text: str
    outputs: tuple[Output, ...]
    is_table: bool = False

    @property
    def source(self) -> str:
        return self.text if self.is_table else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Stage:
    sql: str
    fields: tuple[Field, ...]
    values: Mapping[str, Typed]
    outer: Stage | None = None
    missing: str = "is not known here"

    def find(self, column: exp.Column) -> exp.Expr:
        """The bound form of a column."""
        found = self.found(column)
        if found is None:
            raise no_such_column(column, self.fields)
        return found

    def found(self, column: exp.Column) -> exp.Expr | None:
        if isinstance(column.this, exp.Star):
            raise NotAnswered(f"{text_of(column)} inside an expression", "list the columns")
        field = field_of(self.fields, column)
        if field is not None:
            return field.bound
        return self.outer.found(column) if self.outer else None

    def value(self, text: str) -> Typed | None:
        own = self.values.get(text)
        return own if own is not None or self.outer is None else self.outer.value(text)

    @property
    def computed(self) -> bool:
        """Whether this stage or one around it has values that are more than columns."""
        return has_computed(self.values) or (self.outer is not None and self.outer.computed)

    def lower(self, node: exp.Expr) -> Typed:
        """DuckDB text of a bound expression over this stage."""
        part, found = over_values(node, self.value, self.missing, self.computed)
        try:
            return lower(part, lambda column: found[int(column.name[1:])][1])
        except SqlError as error:
            raise reworded(
                error, {f"{VALUE}.v{i}": text for i, (text, _) in enumerate(found)}
            ) from error

    def condition(self, node: exp.Expr, where: str) -> Typed:
        value = self.lower(node)
        if value.is_null:
            raise SqlError(f"{where} needs a boolean, not NULL: write false")
        return condition(value, where)

    def filtered(self, node: exp.Expr | None, where: str) -> Stage:
        return (
            replace(self, sql=f"{self.sql} WHERE {self.condition(node, where).sql}")
            if node is not None
            else self
        )

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


def stage_of(
    relation: Relation, alias: str, name: str, key_of: Callable[[str], str], outer: Stage | None
) -> Stage:
    """A relation in FROM: `name` is what the user calls it, `alias` what DuckDB does."""
    fields = tuple(
        Field(key_of(f"{name}.{o.name}" if name else o.name), name, o.name)
        for o in relation.outputs
    )
    values = {
        f.text: column_of(f"{alias}.{o.column}", o.type)
        for f, o in zip(fields, relation.outputs, strict=True)
    }
    return Stage(f"{relation.source} AS {alias}", fields, values, outer)
